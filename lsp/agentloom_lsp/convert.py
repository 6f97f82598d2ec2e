"""The one place where offsets become positions of the protocol, and positions offsets.

Inside the house everything is counted in code points. A position is a 0-based line and a character in the units that client and
server agreed on: bytes of UTF-8, code units of UTF-16, or code points (UTF-32).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

from agentloom.text import LineTable, Span

_CONTINUATION = bytes(range(0x80, 0xC0))


class Encoding(Enum):
    """What characters of a position count; the values are those of the protocol."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Position(NamedTuple):
    """A place in the protocol's terms: 0-based line, and character in units of the encoding."""

    line: int
    character: int


def units(text: str, encoding: Encoding) -> int:
    """Return how many units of the encoding a piece of text takes."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    if encoding is Encoding.UTF8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def code_points(text: str, count: int, encoding: Encoding) -> int:
    """Return how many code points of ``text`` its first ``count`` units are.

    A count past the end gives the length; one inside a character gives the character's start.
    """
    if count <= 0:
        return 0
    if encoding is Encoding.UTF32 or text.isascii():
        return min(count, len(text))
    if encoding is Encoding.UTF8:
        data = text.encode("utf-8", "surrogatepass")[:count]
        found = len(data.translate(None, _CONTINUATION))
    else:
        data = text.encode("utf-16-le", "surrogatepass")[: 2 * count]
        found = len(data.decode("utf-16-le", "surrogatepass"))
    # The last character counts only if all of it is there.
    return found - 1 if units(text[:found], encoding) > count else found


class Places:
    """Offsets and positions of one text, in one encoding.

    Made for one use by one thread: it remembers the last place, so that going through a text in order is linear even when the
    text is one long line.
    """

    __slots__ = ("_at", "_character", "_line", "_plain", "encoding", "lines")

    def __init__(self, lines: LineTable, encoding: Encoding) -> None:
        self.lines = lines
        self.encoding = encoding
        self._plain = encoding is Encoding.UTF32 or lines.text.isascii()
        self._line = -1
        self._at = 0
        self._character = 0

    def position(self, offset: int) -> Position:
        """Return the position of an offset; offsets outside the text are held inside it."""
        line, column = self.lines.position(offset)
        if self._plain:
            return Position(line, column)
        start = self.lines.starts[line]
        at = start + column
        if line != self._line or at < self._at:
            self._line, self._at, self._character = line, start, 0
        self._character += units(self.lines.text[self._at : at], self.encoding)
        self._at = at
        return Position(line, self._character)

    def offset(self, line: int, character: int) -> int:
        """Return the offset of a position; one past a line's end is that line's end, one past the last line the text's end."""
        if line < 0:
            return 0
        span = self.lines.line_span(line)
        if self._plain:
            return min(span.start + max(0, character), span.end)
        return span.start + code_points(self.lines.text[span.start : span.end], character, self.encoding)

    def range(self, span: Span) -> dict[str, Any]:
        """Return a span as a range in the protocol's JSON form."""
        start, end = self.position(span.start), self.position(span.end)
        return {
            "start": {"line": start.line, "character": start.character},
            "end": {"line": end.line, "character": end.character},
        }

    def ranges(self, spans: Iterable[Span]) -> list[dict[str, Any]]:
        """Return many spans as ranges, in their order; linear however they lie on however long lines."""
        found = list(spans)
        if self._plain:
            return [self.range(span) for span in found]
        offsets = sorted({offset for span in found for offset in span})
        known = {offset: self.position(offset)._asdict() for offset in offsets}
        return [{"start": known[span.start], "end": known[span.end]} for span in found]

    def span(self, start: Position, end: Position) -> Span:
        """Return the span between two positions, whichever comes first."""
        one, other = self.offset(*start), self.offset(*end)
        return Span(min(one, other), max(one, other))
