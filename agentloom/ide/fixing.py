"""Many fixes at once: those of one code, or all that are safe, again and again until nothing is left to do."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from agentloom.analysis.analyze import analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Diagnostic, Edit, Fix, apply_edits
from agentloom.text import Span

MOST_ROUNDS = 10
"""Rounds of fixing; each cures what only showed after the one before."""

Choose = Callable[[Diagnostic], Fix | None]
Piece = Span | str


def safe_fix(diagnostic: Diagnostic) -> Fix | None:
    """Return the first safe fix of a diagnostic."""
    return next((fix for fix in diagnostic.fixes if fix.safe), None)


def first_fix_of(code: str) -> Choose:
    """Return what chooses the preferred fix of each diagnostic of a code, safe or not."""
    return lambda diagnostic: diagnostic.fixes[0] if diagnostic.code == code and diagnostic.fixes else None


def chosen_edits(diagnostics: Iterable[Diagnostic], choose: Choose = safe_fix) -> tuple[Edit, ...]:
    """Return the edits of the chosen fixes, in ascending order, without the fixes that touch one taken before."""
    taken: list[Edit] = []
    known: set[Edit] = set()
    for diagnostic in diagnostics:
        fix = choose(diagnostic)
        if fix is None:
            continue
        edits = [edit for edit in fix.edits if edit not in known]
        if not any(_touches(taken, edit.span) for edit in edits):
            known.update(edits)
            for edit in edits:
                insort(taken, edit)
    return tuple(taken)


def fix_all(document: WorkflowDocument, choose: Choose = safe_fix) -> tuple[Edit, ...]:
    """Return the edits that make every chosen fix, also of what shows only after others are made.

    A round that would leave the text less readable than it was is not made, and none comes after it.
    """
    text = document.source.text
    pieces: list[Piece] = [Span(0, len(text))]
    seen = {text}
    now = document
    for _ in range(MOST_ROUNDS):
        edits = chosen_edits(now.diagnostics, choose)
        if not edits:
            break
        mended = apply_edits(now.source.text, edits)
        if mended in seen:
            break
        after = analyze(now.source._replace(text=mended), document.context, kind=document.kind)
        if faults_of_reading(after) - faults_of_reading(now):
            break
        seen.add(mended)
        pieces = list(_spliced(pieces, edits))
        now = after
    return tuple(_edits_of(pieces, len(text)))


def faults_of_reading(document: WorkflowDocument) -> Counter[str]:
    """Return how often each fault of the text itself was found: what can't be read, by code."""
    return Counter(d.code for d in document.diagnostics if d.code < "AL1" and d.refuses)


def _touches(taken: Sequence[Edit], span: Span) -> bool:
    """Tell whether a range overlaps one of the sorted edits, or begins where one begins."""
    at = bisect_left(taken, span.start, key=lambda edit: edit.span.start)
    if at > 0 and taken[at - 1].span.end > span.start:
        return True
    return at < len(taken) and (taken[at].span.start == span.start or taken[at].span.start < span.end)


def _spliced(pieces: Iterable[Piece], edits: Sequence[Edit]) -> Iterator[Piece]:
    """Carry out edits of the text that pieces make up: parts of the first text, and what was written since."""
    at = 0
    todo = list(reversed(edits))
    for piece in pieces:
        length = piece.end - piece.start if isinstance(piece, Span) else len(piece)
        done = 0
        while todo and todo[-1].span.start <= at + length:
            edit = todo[-1]
            if edit.span.start >= at + done:
                if edit.span.start == at + length and edit.span.end > edit.span.start:
                    break  # it begins with the next piece
                yield _part(piece, done, edit.span.start - at)
                yield edit.text
            done = min(length, max(done, edit.span.end - at))
            if edit.span.end > at + length:
                break
            todo.pop()
        yield _part(piece, done, length)
        at += length


def _part(piece: Piece, start: int, end: int) -> Piece:
    if isinstance(piece, Span):
        return Span(piece.start + start, piece.start + end)
    return piece[start:end]


def _edits_of(pieces: Iterable[Piece], length: int) -> Iterator[Edit]:
    """Return what turns the first text into the one that pieces make up."""
    at = 0
    written: list[str] = []
    for piece in (*pieces, Span(length, length)):
        if not isinstance(piece, Span):
            written.append(piece)
        elif piece.end > piece.start or piece.start == length:
            if (written and "".join(written)) or piece.start > at:
                yield Edit(Span(at, piece.start), "".join(written))
            written = []
            at = piece.end
