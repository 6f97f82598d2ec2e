"""The text around the cursor by lines, and what has been said about the cursor so far: what a scan of a text stands on."""

from __future__ import annotations

import re
from copy import copy
from typing import NamedTuple

from agentloom.ide.completion.frames import Frame, Kind, Spot
from agentloom.syntax.lines import DASH, FIELD, KEY, behind_blanks, line_end
from agentloom.syntax.nodes import Style
from agentloom.text import Span

_DOUBLE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SINGLE = re.compile(r"'[^']*(?:''[^']*)*'(?!')")
_COMMENT = re.compile(r"(?<=[ \t])#")
_WORD = re.compile(r"[^\s,\[\]{}]*")
_BEHIND_QUOTE = re.compile(r"[ \t]*(?:[,\]}:]|(?<=[ \t])#|\r|\n|\Z)")


class Below(NamedTuple):
    """The next line of content: its column, whether a dash or a key begins it."""

    column: int
    dash: bool
    key: bool


class Reading:
    """A text, the cursor in it, and the frames that are open; ``spot`` is what the cursor stands in, once that is known."""

    def __init__(self, text: str, cursor: int, stop: int, frames: list[Frame], trusted: bool) -> None:
        self.text = text
        self.cursor = cursor
        self.stop = stop
        self.frames = frames
        self.trusted = trusted
        self.spot: Spot | None = None

    def tell(
        self,
        kind: Kind,
        span: Span | None = None,
        region: Span | None = None,
        *,
        style: Style = "plain",
        open_: bool = False,
        own_line: bool = False,
        column: int = 0,
        colon: bool = False,
        glued: bool = False,
        dash: bool = False,
        missing: int = 0,
    ) -> None:
        if self.spot is not None:
            return
        word = span if span is not None else Span(self.cursor, self.cursor)
        path: list[str | int] = []
        for frame in self.frames:
            path.append(frame.index if frame.is_list else frame.key)
        if kind == "key" and path:
            path.pop()
        if kind == "item" and dash:
            path[-1] = self.frames[-1].index + 1
        # Reading goes on: the frames stay as they are here, but for the keys and items that are still to come.
        self.spot = Spot(
            kind, tuple(map(copy, self.frames)), tuple(path), word, region if region is not None else word, style, open_,
            bool(self.frames and self.frames[-1].flow), own_line, column, colon, glued, dash, missing,
        )  # fmt: skip

    def holds(self, start: int, end: int) -> bool:
        return self.spot is None and start <= self.cursor <= end

    def next_line(self, at: int) -> int:
        """Return the start of the line behind the line break at ``at``; past the end when there is none."""
        if at >= self.stop:
            return self.stop + 1
        return at + 2 if self.text.startswith("\r\n", at) else at + 1

    def line_end(self, at: int) -> int:
        return min(line_end(self.text, at), self.stop)

    def column_of(self, at: int) -> int:
        start = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        return at - start - (1 if self.text.startswith("\ufeff", start) and at > start else 0)

    def below(self, end: int) -> Below | None:
        """Return the first line of content behind the line that ends at ``end``."""
        at = self.next_line(end)
        while at <= self.stop:
            content, end = behind_blanks(self.text, at), self.line_end(at)
            if content < end and self.text[content] != "#":
                dash = DASH.match(self.text, content, end) is not None
                return Below(content - at, dash, KEY.match(self.text, content, end) is not None)
            at = self.next_line(end)
        return None

    def word(self, at: int, end: int) -> Span:
        """Return the range of what is typed from ``at`` on: to the cursor, and the word that goes on behind it."""
        found = _WORD.match(self.text, max(at, self.cursor), end)
        return Span(at, found.end() if found else self.cursor)

    def word_start(self, least: int) -> int:
        at = self.cursor
        while at > least and not self.text[at - 1].isspace():
            at -= 1
        return at

    def quote_end(self, at: int, owner: int) -> int:
        """Return the offset behind the quote that closes the one at ``at``; -1 when it is never closed."""
        found = (_DOUBLE if self.text[at] == '"' else _SINGLE).match(self.text, at, self.stop)
        if found is None:
            return -1
        if found.end() <= self.line_end(at):
            return found.end()
        if not _BEHIND_QUOTE.match(self.text, found.end(), self.stop):
            return -1
        line = self.next_line(self.line_end(at))
        while line < found.end():
            content, stop = behind_blanks(self.text, line), self.line_end(line)
            if content < stop and (content - line <= owner or (FIELD.match(self.text, content, stop) and owner < 0)):
                return -1
            line = self.next_line(stop)
        return found.end()

    def behind_value(self, at: int) -> int:
        """Return the start of the next line; a cursor on the rest of this one has nothing to say but in a comment."""
        end = self.line_end(at)
        if self.holds(at, end):
            comment = _COMMENT.search(self.text, at, end)
            self.tell("comment" if comment is not None and self.cursor > comment.start() else "nothing")
        return self.next_line(end)

    def on_line(self, span: Span) -> Span:
        """Return a range cut down to the line of the cursor."""
        start = max(self.text.rfind("\n", 0, self.cursor), self.text.rfind("\r", 0, self.cursor)) + 1
        return Span(max(span.start, start), max(self.cursor, min(span.end, self.line_end(self.cursor))))
