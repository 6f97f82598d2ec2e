"""Times in words."""

from __future__ import annotations

from itertools import pairwise

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """Return a time for people: `0.5 s`, `17.5 s`, `2 min 5 s`, `1 h 3 min`; at most two units, rounded to the smaller."""
    if seconds < 99.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds >= 3_650 * 86_400:
        return "more than 10 years"
    for (size, name), (below, smaller) in pairwise(_UNITS):
        whole, rest = divmod(round(seconds / below), size // below)
        if whole:
            return f"{whole} {name}" + (f" {rest} {smaller}" if rest else "")
    raise AssertionError("more than a minute")
