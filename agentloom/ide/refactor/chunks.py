"""The text of steps as it can be moved: an item of a block list with the comments above it, whole lines only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.edits.places import after_break, column_of, keeps_blank_lines, line_start
from agentloom.diagnostics import Edit, apply_edits
from agentloom.ide.results import Refusal
from agentloom.syntax.nodes import Node
from agentloom.syntax.nodes import Sequence as SequenceNode
from agentloom.syntax.values import find
from agentloom.text import Span

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class Chunk(NamedTuple):
    """The lines of one item, with the blank ones behind it; a comment below those belongs to the list. ``open`` tells that blank lines at its end belong to its last value."""

    span: Span
    node: Node
    open: bool


class Chunks(NamedTuple):
    """The items of a list of steps; ``column`` is that of their dashes."""

    column: int
    items: tuple[Chunk, ...]


def chunks_of(document: WorkflowDocument, steps: Node | None) -> Chunks:
    """Return the lines of each item of a list; ``steps`` is in offsets of the document's text. Raises ``Refusal``."""
    text = document.source.text
    if not isinstance(steps, SequenceNode) or not steps.items:
        raise Refusal("`steps` is no list of steps")
    if steps.flow:
        raise Refusal("the steps stand in brackets; write them as a list with dashes first")
    column = column_of(text, steps.span.start)
    starts: list[int] = []
    for item in steps.items:
        dash = _dash_of(text, item, column)
        starts.append(_with_comments(text, dash, column, starts[-1] if starts else 0))
    chunks: list[Chunk] = []
    for at, item in enumerate(steps.items):
        end = _end_of(text, item, column)
        if at + 1 < len(steps.items):
            end = _behind_blank_lines(text, end, starts[at + 1])
        chunks.append(Chunk(Span(starts[at], end), item, keeps_blank_lines(item)))
    return Chunks(column, tuple(chunks))


def steps_of(document: WorkflowDocument) -> Node | None:
    """Return the list of steps of a file, in offsets of its text."""
    return find(document.tree.root, ("steps",))


def cut(text: str, chunk: Chunk, edits: Iterable[Edit]) -> str:
    """Return a chunk's text with those of the edits carried out that lie in it."""
    start, end = chunk.span
    inside = [
        Edit(edit.span.shift(-start), edit.text) for edit in edits if start <= edit.span.start and edit.span.end <= end
    ]
    return apply_edits(text[start:end], inside)


def joined(parts: Sequence[tuple[Chunk, str]], break_: str) -> str:
    """Return the texts of chunks one after the other, with nothing blank behind the last one unless it belongs to its value."""
    text = ""
    for at, (chunk, part) in enumerate(parts):
        if not part.endswith(("\n", "\r")):
            part += break_
        if at == len(parts) - 1 and not chunk.open:
            part = part.rstrip(" \t\r\n") + break_
        text += part
    return text


def indented(text: str, by: int) -> str:
    """Return lines moved to the right, or to the left as far as they are blank there; empty lines stay empty."""
    lines = _LINE.findall(text)
    if by >= 0:
        return "".join(" " * by + line if line.strip("\r\n") else line for line in lines)
    return "".join(line[min(-by, len(line) - len(line.lstrip(" "))) :] for line in lines)


def with_breaks(text: str, break_: str) -> str:
    """Return a text with all its line ends of one kind."""
    return re.sub(r"\r\n|\r|\n", lambda _: break_, text)


def _dash_of(text: str, item: Node, column: int) -> int:
    """Return where the dash of an item stands: on its line, or on an earlier one."""
    at = item.span.start if not (hasattr(item, "anchor") and item.anchor) else min(item.span.start, item.anchor.start)
    start = line_start(text, at)
    while start > 0:
        head = text[start : start + column + 1].lstrip("\ufeff")
        if head.endswith("-") and not head[:-1].strip():
            return start
        start = _line_above(text, start)
    return start


def _line_above(text: str, start: int) -> int:
    """Return where the line before the one that starts at ``start`` begins."""
    return line_start(text, start - (2 if text.startswith("\r\n", start - 2) else 1))


def _with_comments(text: str, start: int, column: int, least: int) -> int:
    """Return where the comments directly above a line begin that stand no deeper than its dash."""
    while start > least:
        above = _line_above(text, start)
        line = text[above:start]
        blank = len(line) - len(line.lstrip(" "))
        if above < least or not line.lstrip(" \ufeff").startswith("#") or blank > column:
            break
        start = above
    return start


def _end_of(text: str, item: Node, column: int) -> int:
    """Return where the last item ends: behind its lines, and the comments below them that are indented deeper than its dash."""
    end = after_break(text, item.span.end)
    at = end
    while at < len(text):
        stop = after_break(text, at)
        line = text[at:stop]
        if line.strip() and not (line.lstrip(" ").startswith("#") and len(line) - len(line.lstrip(" ")) > column):
            break
        at = stop
        if line.strip():
            end = at
    if keeps_blank_lines(item):
        end = _behind_blank_lines(text, end, len(text))
    return end


def _behind_blank_lines(text: str, at: int, limit: int) -> int:
    """Return where the blank lines that begin at a place end."""
    while at < limit and not text[at : after_break(text, at)].strip():
        at = after_break(text, at)
    return at
