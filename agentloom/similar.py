"""Did-you-mean: the nearest of some known words."""

from __future__ import annotations

from collections.abc import Iterable

LEAST_ALIKE = 0.6
"""How alike two words must be, by difflib's measure."""

LEAST_BEGINNING = 3
"""From this length on the beginning of a word is near enough to it."""

MOST_COMPARED = 5_000
"""Words longer lists are cut to, so that a suggestion never costs more than a few milliseconds."""


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like ``word``, or None when nothing is near enough.

    Case counts for nothing at first; ties go to the candidate that comes first.
    """
    ranked = ranking(word, candidates)
    return ranked[0] if ranked else None


def ranking(word: str, candidates: Iterable[str], most: int = 3) -> list[str]:
    """Return up to ``most`` candidates that are near enough, the most similar first."""
    from difflib import SequenceMatcher  # only needed once something is wrong; costs 3 ms to import

    wanted = word.casefold()
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    scored: list[tuple[float, int, str]] = []
    for at, candidate in enumerate(candidates):
        if at >= MOST_COMPARED:
            break
        folded = candidate.casefold()
        if folded == wanted:
            scored.append((2.0, -at, candidate))
            continue
        if not folded:
            continue
        begins = len(wanted) >= LEAST_BEGINNING and folded.startswith(wanted)
        score = 0.0
        if _lengths_near(len(wanted), len(folded)):
            matcher.set_seq1(folded)
            score = matcher.ratio() if matcher.quick_ratio() >= LEAST_ALIKE else 0.0
        if begins or (score >= LEAST_ALIKE and wanted.startswith(folded)):
            score = max(score, LEAST_ALIKE) + 0.1
        if score >= LEAST_ALIKE:
            scored.append((score, -at, candidate))
    scored.sort(reverse=True)
    return [candidate for _, _, candidate in scored[:most]]


def _lengths_near(a: int, b: int) -> bool:
    return 2 * min(a, b) >= LEAST_ALIKE * (a + b)
