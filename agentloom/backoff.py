"""The waits between attempts: one set of formulas for the engine, the checks and the editor. Pure; no clock, no randomness.

Before retry n a step waits the base to the power of n, in seconds, cut to the maximum. Jitter varies that by a quarter either way, and
comes after the cut, so it may exceed the maximum. A provider's Retry-After is honoured up to the maximum.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MAX_RETRIES: Final = 3
BACKOFF_BASE: Final = 2.0
BACKOFF_MAX: Final = 60.0
JITTER: Final = True

JITTER_SHARE: Final = 0.25
"""The share by which jitter lengthens or shortens a wait."""


class Backoff(NamedTuple):
    """How a step waits between its attempts. Negative times count as zero."""

    base: float = BACKOFF_BASE
    most: float = BACKOFF_MAX
    jitter: bool = JITTER

    def delay(self, retry: int, at_random: float = 0.5, retry_after: float | None = None) -> float:
        """Return the seconds to wait before retry ``retry``, counted from 1.

        ``at_random`` is a number from 0 to 1 that decides the jitter: 0 the shortest wait, 1 the longest. ``retry_after`` is what a
        provider asked for: the longer of both counts, up to the maximum.
        """
        wait = self.nominal(retry)
        if self.jitter:
            wait *= 1 + JITTER_SHARE * (2 * at_random - 1)
        if retry_after is not None:
            wait = max(wait, min(retry_after, max(0.0, self.most)))
        return wait

    def nominal(self, retry: int) -> float:
        """Return the wait before a retry, cut to the maximum, without jitter."""
        base, most = max(0.0, self.base), max(0.0, self.most)
        if base == 0 or most == 0:
            return 0.0
        if retry * math.log(base) >= math.log(most):
            return most
        return min(float(base**retry), most)

    def bounds(self, retry: int) -> tuple[float, float]:
        """Return the shortest and the longest wait before a retry."""
        return self.delay(retry, 0.0), self.delay(retry, 1.0)

    def longest_total(self, retries: int, retry_after: bool = False) -> float:
        """Return the most that the waits before all of some retries can take; quick for any number of them.

        With ``retry_after`` a provider may ask for the maximum each time.
        """
        share = 1 + JITTER_SHARE if self.jitter else 1.0
        total = self._nominal_total(retries) * share
        if retry_after:
            return max(total, retries * max(0.0, self.most))
        return total

    def _nominal_total(self, retries: int) -> float:
        base, most = max(0.0, self.base), max(0.0, self.most)
        if retries <= 0 or base == 0 or most == 0:
            return 0.0
        if base == 1:
            return retries * min(1.0, most)
        if base < 1:  # the first waits are cut, the rest shrink
            cut = min(retries, int(math.log(most) / math.log(base))) if most < base else 0
            return cut * most + base ** (cut + 1) * (1 - base ** (retries - cut)) / (1 - base)
        growing = min(retries, int(math.log(most) / math.log(base))) if most >= base else 0
        return base * ((base**growing - 1) / (base - 1)) + (retries - growing) * most
