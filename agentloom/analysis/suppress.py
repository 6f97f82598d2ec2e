"""Suppression comments: ``# agentloom: ignore[AL401]`` on a line or above a key, ``# agentloom: ignore-file[AL4]``.

A comment behind a value covers its own line. One on a line of its own covers the entry that begins on the next line of
content, the whole value included, block texts too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentloom.syntax.nodes import Comment, Mapping, Node, Sequence
from agentloom.syntax.tree import Tree
from agentloom.text import LineTable, Span

_MARK = "agentloom:"
_DIRECTIVE = re.compile(r"#\s*agentloom:\s*(?P<verb>ignore-file|ignore)\b\s*(?:\[(?P<codes>[^\]]*)\])?")
_WORD = re.compile(r"[^\s,]+")


class Suppression(NamedTuple):
    """One code in one comment. ``covers`` is None for a whole file; ``words`` is the span of the code's text."""

    code: str
    words: Span
    comment: Span
    covers: Span | None

    def matches(self, code: str, name: str, span: Span) -> bool:
        """Tell whether it hides a diagnostic; a family prefix such as ``AL4`` works, and so does a rule's name."""
        if not (code.startswith(self.code) or name == self.code):
            return False
        return self.covers is None or self.covers.start <= span.start <= self.covers.end


def suppressions(tree: Tree, lines: LineTable) -> tuple[Suppression, ...]:
    """Return every suppression in a text; costs nothing when it has none."""
    if _MARK not in tree.text:
        return ()
    return tuple(_of_comments(tree, lines, tree.comments))


def _of_comments(tree: Tree, lines: LineTable, comments: Iterable[Comment]) -> Iterator[Suppression]:
    for comment in comments:
        for found in _DIRECTIVE.finditer(comment.text):
            if found["verb"] == "ignore-file":
                covers: Span | None = None
            elif comment.own_line:
                covers = _entry_below(tree, lines, comment)
            else:
                covers = lines.line_span(lines.line_of(comment.span.start))
            codes = found["codes"]
            if codes is None:
                at = comment.span.start + found.end()
                yield Suppression("AL", Span(at, at), comment.span, covers)
                continue
            start = comment.span.start + found.start("codes")
            for word in _WORD.finditer(codes):
                yield Suppression(word[0], Span(start + word.start(), start + word.end()), comment.span, covers)


def _entry_below(tree: Tree, lines: LineTable, comment: Comment) -> Span:
    """Return the range that a comment on its own line covers: the outermost node that begins on the next line of content."""
    line = lines.line_of(comment.span.start) + 1
    while line < len(lines):
        span = lines.line_span(line)
        text = lines.text[span.start : span.end].strip()
        if text and not text.startswith("#"):
            break
        line += 1
    here = lines.line_span(line)
    found = _beginning_in(tree.root, here)
    return Span(here.start, max(here.end, found.end if found else here.end))


def _beginning_in(node: Node | None, line: Span) -> Span | None:
    """Return the span of the first entry or item, from the outside in, that begins on a line."""
    todo = [node]
    while todo:
        at = todo.pop()
        if isinstance(at, Mapping):
            inner: list[Node | None] = []
            for entry in at.entries:
                start, end = entry.key.span.start, max(entry.key.span.end, entry.value.span.end)
                if line.start <= start <= line.end:
                    return Span(start, end)
                if start <= line.end and end >= line.start:
                    inner.append(entry.value)
            todo.extend(inner)
        elif isinstance(at, Sequence):
            for item in at.items:
                if line.start <= item.span.start <= line.end:
                    return item.span
                if item.span.start <= line.end and item.span.end >= line.start:
                    todo.append(item)
    return None
