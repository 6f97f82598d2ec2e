"""A provider's circuit breaker: after failures in a row its calls are left out for a while, then one of them tries it again.

Time is that of the event loop. A run's gateway has one breaker a provider, shared by all steps; a new gateway starts with closed ones.
"""

from __future__ import annotations

from enum import Enum

import anyio

from agentloom.errors import CircuitOpenError, ProviderError, RecordingMismatchError

THRESHOLD = 5
"""Failures in a row that open a circuit."""
RESET_SECONDS = 60.0
"""How long an open circuit keeps calls away."""

TIMED_OUT = 408
CLIENT_ERRORS = range(400, 500)


class State(Enum):
    """Whether calls go through: closed lets all pass, open none, half-open one that tries."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Meaning(Enum):
    """What the end of a call says about the provider."""

    WELL = "well"
    ILL = "ill"
    NOTHING = "nothing"


def meaning_of(error: ProviderError) -> Meaning:
    """Tell what a failed call says about its provider.

    An answer that refuses the request (400, 401, 404 …) is about the request: a prompt that no provider takes must not keep others away,
    and is no sign of health either. It doesn't count, and neither do 429, requests over our own limits and replay misses: failures before
    and after one of those are still in a row.
    """
    if error.permanent or isinstance(error, RecordingMismatchError):
        return Meaning.NOTHING
    if error.status_code in CLIENT_ERRORS and error.status_code != TIMED_OUT:
        return Meaning.NOTHING
    return Meaning.ILL


class Breaker:
    """The breaker of one provider."""

    def __init__(self, name: str, threshold: int = THRESHOLD, reset_s: float = RESET_SECONDS) -> None:
        self.name = name
        self._threshold = threshold
        self._reset_s = reset_s
        self._failures = 0
        self._opened: float | None = None
        self._trying = False

    @property
    def state(self) -> State:
        """The state now."""
        if self._opened is None:
            return State.CLOSED
        return State.OPEN if anyio.current_time() < self._opened + self._reset_s else State.HALF_OPEN

    def enter(self) -> bool:
        """Let a call begin, and tell whether it is the one that tries; it has to ``leave``. Raises ``CircuitOpenError``."""
        state = self.state
        if state is State.CLOSED:
            return False
        if state is State.OPEN or self._trying:
            raise CircuitOpenError(
                f"Provider '{self.name}': circuit open after {self._failures} failures in a row", provider=self.name
            )
        self._trying = True
        return True

    def leave(self, meaning: Meaning, trial: bool = False) -> None:
        """Take in how a call ended."""
        if trial:
            self._trying = False
        if meaning is Meaning.WELL:
            self._failures = 0
            self._opened = None
        elif meaning is Meaning.ILL:
            self._failures += 1
            # A call that began before the circuit opened doesn't keep it open for longer.
            if trial or (self._opened is None and self._failures >= self._threshold):
                self._opened = anyio.current_time()
