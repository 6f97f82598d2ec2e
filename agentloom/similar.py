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


def slip_of(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that ``word`` is most likely a slip of: other case or separators, or a letter or two wrong in a long word.

    Much stricter than ``closest``, for words that may well be right: a plural, another number or another suffix (`text_de` for `text_en`,
    `draft_a` for `draft_b`) is another word. Needs no difflib.
    """
    if len(word) < 3:
        return None
    best: tuple[int, str] | None = None
    for at, candidate in enumerate(candidates):
        if at >= MOST_COMPARED:
            break
        if abs(len(candidate) - len(word)) > 3 or candidate == word:
            continue
        if _plain(candidate) == _plain(word):
            return candidate
        distance = _slips(_words(word), _words(candidate))
        if distance is not None and (best is None or distance < best[0]):
            best = distance, candidate
    return best[1] if best else None


def _words(text: str) -> list[str]:
    return text.casefold().replace("-", "_").split("_")


def _slips(one: list[str], other: list[str]) -> int | None:
    """Return how many letters are wrong in words that are meant to be the same; None when they aren't."""
    differing = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    if len(one) != len(other) or len(differing) != 1:
        return None
    a, b = differing[0]
    if min(len(a), len(b)) < 5 or a.rstrip("s") == b.rstrip("s") or _letters(a) == _letters(b) or a[0] != b[0]:
        return None
    if len(a) == len(b) < 7 and sorted(a) != sorted(b):
        return None  # one letter for another makes another word
    allowed = 2 if min(len(a), len(b)) >= 8 else 1
    distance = _distance(a, b, allowed)
    return distance if distance <= allowed else None


def _plain(word: str) -> str:
    return word.casefold().replace("-", "").replace("_", "")


def _letters(word: str) -> str:
    return "".join(char for char in word if not char.isdigit())


def _distance(one: str, other: str, most: int) -> int:
    """Return how many letters are wrong, missing, too many or swapped; anything above ``most`` is only known to be above it."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, char in enumerate(one, 1):
        before, last, row = row, before, [at]
        for to, wanted in enumerate(other, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (char != wanted))
            if at > 1 and to > 1 and char == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
