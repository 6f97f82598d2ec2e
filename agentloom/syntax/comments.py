"""Comments of a piece of text: a `#` at the start of a line or behind a blank, outside of every scalar."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Comment, Node, Scalar
from agentloom.text import Span

# Compiled where they are used: comments matter where one of them is a suppression.
_CANDIDATE = r"(?:(?<=[ \t\r\n\ufeff])|\A)#[^\r\n]*"
_LINE_END = r"[\r\n]|\Z"


def find_comments(text: str, node: Node | None) -> Iterator[Comment]:
    """Yield the comments of ``text`` in order; ``node`` holds its nodes, in the same offsets."""
    if "#" not in text:
        return
    candidates = re.compile(_CANDIDATE)
    taken = _taken(text, node)
    at = position = 0
    while match := candidates.search(text, position):
        start, position = match.span()
        while at < len(taken) and taken[at].end <= start:
            at += 1
        if at < len(taken) and taken[at].start <= start:
            position = taken[at].end
            continue
        line = text.rfind("\n", 0, start) + 1
        line = max(line, text.rfind("\r", line, start) + 1)
        yield Comment(Span(start, position), match.group(), not text[line:start].strip(" \t\ufeff"))


def _taken(text: str, node: Node | None) -> list[Span]:
    """Return the ranges of the scalars that hold a `#`; a block's header line is not part of it."""
    taken: list[Span] = []
    for found in walk(node):
        if isinstance(found, Scalar) and "#" in found.raw:
            start, end = found.span
            if found.style in ("literal", "folded"):
                start = re.compile(_LINE_END).search(text, start).end()  # type: ignore[union-attr]
                if start >= end:
                    continue
            taken.append(Span(start, end))
    return taken
