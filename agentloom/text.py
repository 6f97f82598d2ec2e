"""Text and places in it: spans in code-point offsets, and the one table of lines.

Offsets are counted in code points of the decoded text, a leading byte order mark included. Lines end at LF, CRLF or CR,
as in YAML and in editors; U+0085 and U+2028 are ordinary characters here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple


class Span(NamedTuple):
    """A half-open range ``[start, end)`` of code-point offsets."""

    start: int
    end: int

    def shift(self, by: int) -> Span:
        """Return the same range, ``by`` code points further on."""
        return Span(self.start + by, self.end + by) if by else self

    def contains(self, offset: int) -> bool:
        """Tell whether ``offset`` lies in the range or touches its end (a cursor there still belongs to the word)."""
        return self.start <= offset <= self.end


class Source(NamedTuple):
    """One version of one document: where it lives, what it says. ``version`` is the editor's counter, if there is one."""

    uri: str
    text: str
    version: int | None = None


class LineTable:
    """Line starts of one text; translates offsets to 0-based (line, column) and back."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.length = len(text)

    @cached_property
    def starts(self) -> list[int]:
        """The offsets at which lines begin; found when first asked for, since most texts have nothing to point at."""
        text = self.text
        if "\r" in text and text.count("\r") != text.count("\r\n"):
            return [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text))]
        starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
        starts.pop()
        return starts

    def __len__(self) -> int:
        return len(self.starts)

    def line_of(self, offset: int) -> int:
        """Return the 0-based line that holds ``offset``; offsets past the end count as the end."""
        return bisect_right(self.starts, max(0, min(offset, self.length))) - 1

    def position(self, offset: int) -> tuple[int, int]:
        """Return 0-based line and column, the column in code points."""
        offset = max(0, min(offset, self.length))
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]

    def line_span(self, line: int) -> Span:
        """Return the range of a 0-based line without its line break; lines past the end are empty ranges there."""
        if line >= len(self.starts):
            return Span(self.length, self.length)
        start = self.starts[line]
        end = self.starts[line + 1] if line + 1 < len(self.starts) else self.length
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return Span(start, end)

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a 0-based line and code-point column, held inside the line."""
        span = self.line_span(line)
        return min(span.start + max(0, column), span.end)

    def on_one_line(self, span: Span) -> Span:
        """Cut a range down to its first line, and hold it inside the text."""
        start = max(0, min(span.start, self.length))
        end = max(start, min(span.end, self.length))
        return Span(start, max(start, min(end, self.line_span(self.line_of(start)).end)))


def newline_of(text: str, near: int = 0) -> str:
    """Return the line ending in use around offset ``near``: that of the next line break, else the last one, else LF."""
    at = text.find("\n", near)
    if at < 0:
        at = text.rfind("\n")
    if at < 0:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
