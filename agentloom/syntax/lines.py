"""Lines of a broken piece, as the structure by indentation sees them."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(r"(?P<blanks>[ \t]*)(?P<rest>[^\r\n]*)(?:\r\n|\r|\n|\Z)")

# A key and its colon; quoted keys on one line only.
KEY = re.compile(
    r"""(?:
        "(?:[^"\\\r\n]|\\[^\r\n])*"[ \t]*
      | '(?:[^'\r\n]|'')*'[ \t]*
      | (?![-?:](?:[ \t\r\n]|\Z)) [^\s\[\]{},\#&*!|>'"%@`] (?:[^\r\n:\#] | :(?![ \t\r\n]|\Z) | (?<![ \t])\#)*
    ):(?=[ \t\r\n]|\Z)""",
    re.VERBOSE,
)
FIELD = re.compile(r"""["']?[A-Za-z_][A-Za-z0-9_-]*["']?[ \t]*:(?=[ \t\r\n]|\Z)""")
"""A key as fields of a workflow look: one word."""

DASH = re.compile(r"-(?=[ \t\r\n]|\Z)")
BLOCK_HEADER = re.compile(r"[|>](?:[+-]?[1-9]?|[1-9][+-])[ \t]*(?:(?<=[ \t])#[^\r\n]*)?(?=\r|\n|\Z)")
_COMMENT = re.compile(r"[ \t]+#")
_BREAK = re.compile(r"[\r\n]")
_PROPERTY = re.compile(r"[&!][^\s,\[\]{}]*(?=[ \t\r\n]|\Z)[ \t]*")


class Line(NamedTuple):
    """A line from ``start`` to ``next``; ``content`` is where its words begin, ``end`` where they end (a comment included)."""

    start: int
    content: int
    end: int
    next: int

    @property
    def column(self) -> int:
        """How far the words are indented; behind a dash, the dash counts."""
        return self.content - self.start


class Block(NamedTuple):
    """Lines that belong together, up to the offset ``end``."""

    lines: list[Line]
    end: int

    @property
    def first(self) -> Line:
        """The first line."""
        return self.lines[0]

    @property
    def column(self) -> int:
        """The column of the first line's words."""
        return self.lines[0].column


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text that are neither blank nor a comment."""
    found: list[Line] = []
    for match in _LINE.finditer(text):
        content = match.end("blanks")
        if content < match.end("rest") and text[content] != "#":
            end = content + len(text[content : match.end("rest")].rstrip(" \t"))
            found.append(Line(match.start(), content, end, match.end()))
    return found


def content_end(text: str, start: int, end: int) -> int:
    """Return where the words of ``[start, end)`` end: without trailing blanks, and without a comment on the last line."""
    end = start + len(text[start:end].rstrip(" \t\r\n"))
    line = max(text.rfind("\n", start, end), text.rfind("\r", start, end), start - 1) + 1
    comment = _COMMENT.search(text, line, end)
    if comment and text.count('"', line, comment.start()) % 2 == 0 and text.count("'", line, comment.start()) % 2 == 0:
        return comment.start()
    return end


def behind_blanks(text: str, at: int) -> int:
    """Return ``at`` or the next offset that is no blank."""
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def behind_properties(text: str, at: int) -> int:
    """Return where the content begins behind anchors and tags that stand at ``at``."""
    while match := _PROPERTY.match(text, at):
        at = match.end()
    return at


def line_end(text: str, at: int) -> int:
    """Return the end of the line that holds ``at``, its line break excluded."""
    found = _BREAK.search(text, at)
    return found.start() if found else len(text)
