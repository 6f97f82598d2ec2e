"""Suppression comments: ``# agentloom: ignore[AL401]`` on a line or above a key, ``# agentloom: ignore-file[AL4]``.

A comment behind a value covers its own line. One on a line of its own covers the entry that begins on the next line of
content, the whole value included, block texts too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentloom.diagnostics import Diagnostic
from agentloom.syntax.nodes import Comment, Mapping, Sequence
from agentloom.syntax.tree import Tree
from agentloom.text import LineTable, Span

_MARK = "agentloom:"
# Compiled where they are used: few files have such a comment.
DIRECTIVE = r"#\s*agentloom:\s*(?P<verb>ignore-file|ignore)\b\s*(?:\[(?P<codes>[^\]]*)\])?"
_WORD = r"[^\s,]+"


class Suppression(NamedTuple):
    """One code in one comment. ``covers`` is None for a whole file; ``words`` is the span of the code's text."""

    code: str
    words: Span
    comment: Span
    covers: Span | None


class Hiding:
    """Tells which diagnostics a file's comments hide; to be asked in the order of places. ``used`` gathers the indices of marks.

    Marks that say the same of the same lines are one, and only those whose lines have begun and not yet ended are looked at, so that
    thousands of comments and thousands of diagnostics cost their sum.
    """

    def __init__(self, marks: Iterable[Suppression]) -> None:
        self._everywhere: dict[str, list[int]] = {}
        alike: dict[tuple[str, Span], list[int]] = {}
        for at, mark in enumerate(marks):
            if mark.covers is None:
                self._everywhere.setdefault(mark.code, []).append(at)
            else:
                alike.setdefault((mark.code, mark.covers), []).append(at)
        self._waiting = sorted(((covers, code, at) for (code, covers), at in alike.items()), reverse=True)
        self._begun: list[tuple[Span, str, list[int]]] = []
        self.used: set[int] = set()

    def hides(self, diagnostic: Diagnostic) -> bool:
        """Tell whether a comment covers a diagnostic and names its code, its family or its name."""
        place = diagnostic.span.start
        while self._waiting and self._waiting[-1][0].start <= place:
            self._begun.append(self._waiting.pop())
        self._begun = [mark for mark in self._begun if mark[0].end >= place]
        found = [at for _, code, at in self._begun if diagnostic.code.startswith(code) or diagnostic.name == code]
        found.extend(
            at for code, at in self._everywhere.items() if diagnostic.code.startswith(code) or diagnostic.name == code
        )
        for indices in found:
            self.used.update(indices)
        return bool(found)


def suppressions(tree: Tree, lines: LineTable) -> tuple[Suppression, ...]:
    """Return every suppression in a text; costs nothing when it has none."""
    if _MARK not in tree.text:
        return ()
    return tuple(_of_comments(tree, lines, tree.comments))


def _of_comments(tree: Tree, lines: LineTable, comments: Iterable[Comment]) -> Iterator[Suppression]:
    below = 0
    for comment in comments:
        for found in re.finditer(DIRECTIVE, comment.text):
            if found["verb"] == "ignore-file":
                covers: Span | None = None
            elif comment.own_line:
                below = _line_below(lines, max(below, lines.line_of(comment.span.start) + 1))
                covers = entry_on(tree, lines.line_span(below))
            else:
                covers = lines.line_span(lines.line_of(comment.span.start))
            if found["codes"] is None:
                at = comment.span.start + found.end()
                yield Suppression("AL", Span(at, at), comment.span, covers)
                continue
            for code, words in _codes_of(found, comment.span.start):
                yield Suppression(code, words, comment.span, covers)


def codes_in(comment: str, start: int) -> Iterator[tuple[str, Span]]:
    """Yield the codes that a comment names, each with its range; ``start`` is where the comment begins."""
    for found in re.finditer(DIRECTIVE, comment):
        if found["codes"] is not None:
            yield from _codes_of(found, start)


def _codes_of(found: re.Match[str], start: int) -> Iterator[tuple[str, Span]]:
    start += found.start("codes")
    for word in re.finditer(_WORD, found["codes"]):
        yield word[0], Span(start + word.start(), start + word.end())


def _line_below(lines: LineTable, line: int) -> int:
    """Return the first line from ``line`` on that is neither blank nor a comment; the number of lines when there is none."""
    while line < len(lines):
        span = lines.line_span(line)
        text = lines.text[span.start : span.end].strip()
        if text and not text.startswith("#"):
            break
        line += 1
    return line


def entry_on(tree: Tree, line: Span) -> Span:
    """Return the range that a comment above a line covers: the line, and all of the outermost entry or item that begins on it."""
    node = tree.root
    while isinstance(node, (Mapping, Sequence)):
        if isinstance(node, Mapping):
            at = bisect_left(node.entries, line.start, key=lambda entry: entry.key.span.start)
            if at < len(node.entries) and node.entries[at].key.span.start <= line.end:
                entry = node.entries[at]
                return Span(line.start, max(line.end, entry.key.span.end, entry.value.span.end))
            node = node.entries[at - 1].value if at else None
        else:
            at = bisect_left(node.items, line.start, key=lambda item: item.span.start)
            if at < len(node.items) and node.items[at].span.start <= line.end:
                return Span(line.start, max(line.end, node.items[at].span.end))
            node = node.items[at - 1] if at else None
        if node is not None and node.span.end < line.start:
            break
    return line
