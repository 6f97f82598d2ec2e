"""The mappings and lists around a place in half-typed text, and what stands at that place.

A scan begins at the line of a top-level entry or of an item of `steps` and reads line by line, by indentation, to the end of that
entry or item. It knows quotes, brackets and block texts, and takes one that is never closed as ending with its line. It needs no
parser, so nothing that is wrong with the text can hide what is around the cursor; its cost is that of one step.
"""

from __future__ import annotations

import re

from agentloom.ide.completion.brackets import read_brackets
from agentloom.ide.completion.frames import Frame, Kind, Spot
from agentloom.ide.completion.reading import Reading
from agentloom.syntax.lines import BLOCK_HEADER, DASH, KEY, behind_blanks, behind_properties
from agentloom.syntax.nodes import Style
from agentloom.text import Span

_COMMENT = re.compile(r"(?<=[ \t])#")
_HALF_TYPED = re.compile(r"[A-Za-z_<$][\w<$-]*[ \t]*")


def scan(text: str, cursor: int, start: int, stop: int, frames: list[Frame], trusted: bool = True) -> tuple[Spot, int]:
    """Return what stands at ``cursor``, and where reading ended.

    ``start`` is the beginning of a line at which ``frames`` are open; ``stop`` is the end of the document in the text.
    ``trusted``: brackets and quotes are all closed, wherever that is.
    """
    found = _Scan(text, cursor, stop, frames, trusted)
    end = found.run(start)
    return found.spot or Spot("nothing"), end


class _Scan(Reading):
    def __init__(self, text: str, cursor: int, stop: int, frames: list[Frame], trusted: bool) -> None:
        super().__init__(text, cursor, stop, frames, trusted)
        self.given = len(frames)
        self.tail = Span(cursor, cursor)
        """Where the text stands that may go on in the lines to come."""

    def run(self, start: int) -> int:
        at = start
        while at <= self.stop:
            following = self._line(at)
            if following < 0:
                return at
            if following <= at:
                break
            at = following
        return self.stop

    def _line(self, start: int) -> int:
        text = self.text
        start += text.startswith("\ufeff", start) and start == 0
        end = self.line_end(start)
        content = min(behind_blanks(text, start), end)
        if content >= end or text[content] == "#":
            if self.holds(start, end):
                if content < end and self.cursor >= content:
                    self.tell("comment")
                else:
                    self._blank(start, end)
            return self.next_line(end)
        if self.holds(content, end) and _HALF_TYPED.fullmatch(text, content, end):
            self._blank(start, end, self.word(content, end))
            return self.next_line(end)
        column = content - start
        dash = DASH.match(text, content, end) is not None
        self._fit(self.frames, column, dash)
        if self.spot is not None and len(self.frames) <= self.given:
            return -1
        if self.holds(start, content - 1):
            self.tell("nothing")
        return self._content(start, content, end)

    @staticmethod
    def _fit(frames: list[Frame], column: int, dash: bool) -> None:
        """Close what a line at this column is no part of."""
        while len(frames) > 1:
            top = frames[-1]
            if column > top.column or (column == top.column and dash == top.is_list):
                return
            if column == top.column and dash and top.state == "empty":
                return
            if column > frames[-2].column:
                return
            frames.pop()

    def _blank(self, start: int, end: int, word: Span | None = None) -> None:
        """Tell about the cursor on a line with nothing, or only a word, on it.

        The indentation decides, unless it would tear what goes on below.
        """
        column = (word.start if word is not None else self.cursor) - start
        top = self.frames[-1]
        if top.state == "block" and column > top.column:
            self.tell("value", region=Span(self.tail.start, self.cursor), style="literal", own_line=True, column=column)
            return
        below = self.below(end)
        here = self.frames[:]
        self._fit(here, column, False)
        wanted = column
        if below is not None:
            there = self.frames[:]
            self._fit(there, below.column, below.dash)
            inner = below.column > there[-1].column and there[-1].state == "empty"
            if len(there) > len(here) or (len(there) == len(here) and inner and column <= here[-1].column):
                here, wanted = there, below.column
                if below.dash and not here[-1].is_list and not inner:
                    inner = here[-1].state == "empty"
            if inner and wanted == below.column:
                if below.dash:
                    here.append(Frame(True, below.column, self.cursor))
                elif below.key:
                    here.append(Frame(False, below.column, self.cursor))
        self.frames[:] = here
        top = here[-1]
        missing = top.column - column
        if top.is_list and top.state == "empty" and top.index >= 0 and column > top.column:
            self.tell("item", word, own_line=True, column=column)
        elif top.is_list:
            self.tell("item", word, own_line=True, column=top.column, dash=True, missing=missing)
        elif column > top.column and top.state == "empty" and top.key:
            self.tell("value", word, own_line=True, column=column)
        elif column > top.column and top.state == "plain":
            self.tell("value", word, Span(self.tail.start, self.cursor), own_line=True, column=column)
        else:
            self.tell("key", word, own_line=True, column=top.column, missing=missing)

    def _content(self, start: int, at: int, end: int) -> int:
        text, frames = self.text, self.frames
        dashed = False
        while DASH.match(text, at, end):
            self._dash(at - start, at)
            dashed = True
            behind = behind_blanks(text, at + 1)
            if behind >= end or text[behind] == "#":
                if self.holds(at + 1, end):
                    self._empty(at + 1, behind, end, "item")
                return self.next_line(end)
            if self.holds(at, behind - 1):
                self.tell("nothing")
            at = behind
        value = behind_properties(text, at)
        if value > at:
            if self.holds(at, value - 1) or (value >= end and self.holds(at, end) and text[value - 1] not in " \t"):
                self.tell("nothing")
            if value >= end:
                if self.holds(at, end) and (dashed or frames[-1].state == "empty"):
                    self._empty(value, end, end, "item" if frames[-1].is_list else "value")
                return self.next_line(end)
        key = KEY.match(text, value, end)
        if key is not None:
            self._enter(at - start, at)
            return self._entry(value, key.end(), end)
        top = frames[-1]
        column = at - start
        if top.is_list and not dashed:
            if self.holds(value, end):
                span = self.word(value, end)
                self.tell("item", span, own_line=True, column=top.column, dash=True, missing=top.column - column)
            return self.next_line(end)
        if not top.is_list and (top.state != "empty" or column <= top.column or not top.key):
            if self.holds(value, end):
                self._half_key(value, end, missing=top.column - column if not dashed else 0)
            return self.next_line(end)
        below = self.below(end) if self.holds(value, end) else None
        if below is not None and below.key and below.column == column and text[value] not in "[{|>":
            self._enter(column, at)
            self._half_key(value, end)
            return self.next_line(end)
        return self._value(value, end, own_line=not dashed)

    def _dash(self, column: int, at: int) -> None:
        top = self.frames[-1]
        if not top.is_list or (column > top.column and top.state == "empty" and top.index >= 0):
            top.state = "done"
            top = Frame(True, column, at)
            self.frames.append(top)
        top.index += 1
        if self.spot is None or top not in self.spot.frames:
            top.begins = at
        elif top.follows < 0:
            top.follows = at
        top.state = "empty"

    def _enter(self, column: int, at: int) -> None:
        """Open the mapping that a key at this column belongs to, unless it is open."""
        top = self.frames[-1]
        if top.is_list or (column > top.column and top.state == "empty" and top.key):
            top.state = "done"
            self.frames.append(Frame(False, column, at))

    def _half_key(self, at: int, end: int, missing: int = 0) -> None:
        """Tell about a key without a colon, or with quotes that aren't closed."""
        comment = _COMMENT.search(self.text, at, end)
        if comment is not None and self.cursor > comment.start():
            self.tell("comment")
            return
        quote = self.text[at]
        if quote in "\"'":
            span = Span(at + 1, self.word(at + 1, end).end)
            if self.cursor > at:
                closed = span.end > at + 1 and self.text[span.end - 1] == quote
                span = Span(span.start, span.end - closed)
                style: Style = "double" if quote == '"' else "single"
                column = self.frames[-1].column
                self.tell("key", span, style=style, open_=not closed, own_line=True, column=column, missing=missing)
            return
        self.tell("key", self.word(at, end), own_line=True, column=self.frames[-1].column, missing=missing)

    def _entry(self, at: int, behind: int, end: int) -> int:
        """Read a key at ``at`` whose colon ends at ``behind``, and its value."""
        top = self.frames[-1]
        colon = behind - 1
        raw = self.text[at:colon].rstrip(" \t")
        quoted = raw[0] in "\"'"
        name = raw[1:-1] if quoted else raw
        if self.holds(at, colon):
            span = Span(at + quoted, at + len(raw) - quoted)
            style: Style = "plain" if not quoted else "double" if raw[0] == '"' else "single"
            inside = span.contains(self.cursor)
            self.tell("key" if inside else "nothing", span, style=style, colon=True, column=top.column)
        else:
            top.names[name] = Span(behind, behind)
        top.key = name
        top.state = "empty"
        top.begins = at
        value = behind_blanks(self.text, behind)
        if value >= end or self.text[value] == "#":
            if self.holds(behind, end):
                self._empty(behind, value, end, "value")
            return self.next_line(end)
        if self.holds(behind, value - 1):
            self.tell("nothing")
        content = behind_properties(self.text, value)
        if content > value:
            if self.holds(value, content - 1):
                self.tell("nothing")
            if content >= end:
                if self.holds(value, end):
                    if self.text[content - 1] in " \t":
                        self._empty(content, end, end, "value")
                    else:
                        self.tell("nothing")
                return self.next_line(end)
        return self._value(content, end)

    def _empty(self, at: int, behind: int, end: int, kind: Kind) -> None:
        """Tell about the cursor where a value may begin; ``behind`` is where a comment, or the line's end, stands."""
        if self.cursor >= behind and behind < end:
            self.tell("comment")
            return
        glued = self.text[self.cursor - 1 : self.cursor] in (":", "-")
        column = self.column_of(self.cursor) + glued
        below = self.below(end)
        top = self.frames[-1]
        if kind == "item" and below is not None and below.key and not below.dash and below.column > top.column:
            self.frames.append(Frame(False, below.column, self.cursor))
            top.state = "done"
            if column == below.column:
                self.tell("key", column=column, glued=glued)
            else:
                self.tell("nothing")
            return
        if kind == "value" and below is not None and below.column > top.column and (below.key or below.dash):
            self.tell("nothing")  # the value stands below
            return
        if kind == "value" and below is not None and below.dash and below.column == top.column:
            self.tell("nothing")
            return
        self.tell(kind, glued=glued, column=column)

    def _value(self, at: int, end: int, own_line: bool = False) -> int:
        """Read the value of the innermost entry or item; return the start of the line behind it."""
        text, top = self.text, self.frames[-1]
        kind: Kind = "item" if top.is_list else "value"
        top.state = "done"
        if BLOCK_HEADER.match(text, at, end):
            return self._block(at, end, kind)
        first = text[at]
        if first in "\"'":
            return self._quoted(at, end, kind, own_line)
        if first in "[{":
            return read_brackets(self, at)
        return self._plain(at, end, kind, own_line)

    def _block(self, at: int, end: int, kind: Kind) -> int:
        """Read a block text; blank lines behind it are left to be read as lines."""
        if self.holds(at, end):
            comment = _COMMENT.search(self.text, at, end)
            self.tell("comment" if comment is not None and self.cursor > comment.start() else "nothing")
        owner = self.frames[-1].column
        last, line = end, self.next_line(end)
        while line <= self.stop:
            content, line_stop = behind_blanks(self.text, line), self.line_end(line)
            if content < line_stop:
                if content - line <= owner:
                    break
                last = line_stop
            line = self.next_line(line_stop)
        self.tail = Span(at, last)
        self.frames[-1].state = "block"
        if last > end and self.holds(end + 1, last):
            style: Style = "folded" if self.text[at] == ">" else "literal"
            self.tell(kind, region=Span(at, last), style=style, column=owner)
        return self.next_line(last)

    def _quoted(self, at: int, end: int, kind: Kind, own_line: bool) -> int:
        top = self.frames[-1]
        close = self.quote_end(at, top.column)
        style: Style = "double" if self.text[at] == '"' else "single"
        region = Span(at, close if close >= 0 else end)
        if self.holds(at + 1, close - 1 if close >= 0 else end):
            inner = Span(at + 1, close - 1 if close >= 0 else end)
            self.tell(
                kind, self.on_line(inner), region, style=style, open_=close < 0, own_line=own_line,
                column=self.column_of(at),
            )  # fmt: skip
        elif self.holds(at, region.end):
            self.tell("nothing")
        else:
            self.note(region)
        return self.behind_value(region.end)

    def note(self, span: Span) -> None:
        """Note where the value of the innermost entry or item stands, if it is a scalar."""
        top = self.frames[-1]
        if top.is_list:
            top.items.append(span)
        elif top.key in top.names:
            top.names[top.key] = span

    def _plain(self, at: int, end: int, kind: Kind, own_line: bool) -> int:
        text, top = self.text, self.frames[-1]
        comment = _COMMENT.search(text, at, end)
        stop = comment.start() if comment is not None else end
        last = at + len(text[at:stop].rstrip(" \t"))
        region = Span(at, last)
        if comment is None and text[at] != "*":
            top.state = "plain"
            region = Span(at, self._plain_end(last, end, top.column))
        self.tail = region
        behind = self.line_end(region.end)
        if comment is not None and self.holds(comment.start() + 1, end):
            self.tell("comment")
        elif self.holds(at, stop if comment is not None else behind):
            region = Span(at, max(region.end, self.cursor))
            span = self.on_line(region)
            if span != region:
                span = Span(max(span.start, self.word_start(span.start)), self.word(span.start, behind).end)
            self.tell(kind, span, region, own_line=own_line, column=self.column_of(at))
        else:
            self.note(Span(at, last))
        return self.next_line(behind)

    def _plain_end(self, last: int, end: int, owner: int) -> int:
        """Return where an unquoted text ends that may go on in the lines below."""
        line = self.next_line(end)
        while line <= self.stop:
            content, stop = behind_blanks(self.text, line), self.line_end(line)
            if content < stop:
                if content - line <= owner or self.text[content] == "#" or KEY.match(self.text, content, stop):
                    break
                comment = _COMMENT.search(self.text, content, stop)
                words = self.text[content : comment.start() if comment is not None else stop]
                last = content + len(words.rstrip(" \t"))
                if comment is not None:
                    break
            line = self.next_line(stop)
        return last
