"""Did-you-mean: the nearest of some known words."""

from __future__ import annotations

from collections.abc import Iterable
from math import nextafter

LEAST_ALIKE = 0.6
"""How alike two words must be, by difflib's measure."""

LEAST_BEGINNING = 3
"""From this length on the beginning of a word is near enough to it."""

BEGINNING = 0.1
"""What is added where one word is the beginning of the other."""

MOST_COMPARED = 5_000
"""Words longer lists are cut to, so that a suggestion never costs more than a few milliseconds."""


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like ``word``, or None when nothing is near enough.

    Case counts for nothing at first; ties go to the candidate that comes first.
    """
    ranked = ranking(word, candidates, 1)
    return ranked[0] if ranked else None


def ranking(word: str, candidates: Iterable[str], most: int = 3) -> list[str]:
    """Return up to ``most`` candidates that are near enough, the most similar first."""
    from difflib import SequenceMatcher  # only needed once something is wrong; costs 3 ms to import

    wanted = word.casefold()
    counts = [(char, wanted.count(char)) for char in dict.fromkeys(wanted)]
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    scored: list[tuple[float, int, str]] = []
    least = LEAST_ALIKE  # rises to what the best so far ask for, so that few words are compared in full
    for at, candidate in enumerate(candidates):
        if at >= MOST_COMPARED:
            break
        folded = candidate.casefold()
        if not folded and wanted:
            continue
        begins = len(wanted) >= LEAST_BEGINNING and folded.startswith(wanted)
        bonus = BEGINNING if begins or wanted.startswith(folded) else 0.0
        score = 0.0
        if folded == wanted:
            score = 2.0
        elif _most_alike(counts, len(wanted), folded) + bonus >= least:
            matcher.set_seq1(folded)
            score = matcher.ratio()
        if score < 2.0 and (begins or (bonus and score >= LEAST_ALIKE)):
            score = max(score, LEAST_ALIKE) + bonus
        if score >= least:
            scored.append((score, -at, candidate))
            scored.sort(reverse=True)
            del scored[most:]
            if len(scored) == most:
                least = nextafter(scored[-1][0], 3)  # of equal ones the first stays
    return [candidate for _, _, candidate in scored]


def _most_alike(counts: list[tuple[str, int]], length: int, folded: str) -> float:
    """Return the most that the measure can give, from the characters that two words share; costs a tenth of the measure itself."""
    shared = 0
    for char, count in counts:
        shared += min(count, folded.count(char))
    return 2 * shared / (length + len(folded))
