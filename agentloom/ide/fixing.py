"""Many fixes at once, as one change of the text: all that are safe, or those of one code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from agentloom.analysis import fixing
from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit
from agentloom.text import Span

Piece = Span | str


def fix_all(document: WorkflowDocument, code: str | None = None) -> tuple[Edit, ...]:
    """Return the edits of every safe fix, also of what shows only after others are made; with a ``code``, of its preferred fixes.

    Nothing is fixed that would bring an error: what `agentloom validate --fix` does.
    """
    again = partial(_analyze, document, AnalysisCache())
    wanted = fixing.fix_all(document, again, code is not None, lambda found: code in (None, found.code))
    length = len(document.source.text)
    pieces: list[Piece] = [Span(0, length)]
    for edits in wanted.rounds:
        pieces = list(_spliced(pieces, edits))
    return tuple(_edits_of(pieces, length))


def _analyze(document: WorkflowDocument, cache: AnalysisCache, text: str) -> WorkflowDocument:
    return analyze(document.source._replace(text=text), document.context, cache, document.kind)


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
