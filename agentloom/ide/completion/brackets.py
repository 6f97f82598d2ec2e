"""What a scan reads in brackets: mappings and lists in flow style, also those never closed."""

from __future__ import annotations

import re

from agentloom.ide.completion.frames import Frame, Scan
from agentloom.syntax.lines import DASH, FIELD, behind_blanks, behind_properties
from agentloom.syntax.nodes import Style
from agentloom.text import Span

_PLAIN = re.compile(r"(?:[^\s,\[\]{}:#]|:(?![\s,\[\]{}]|\Z)|(?<!\s)#|[ \t]+(?![\s,\[\]{}:#]|\Z))+")
_WORD = re.compile(r"[^\s]+")


def read_brackets(scan: Scan, at: int) -> int:
    """Read what begins with the bracket at ``at``; return the start of the line behind it.

    Brackets that are still open where a line begins with a key or a dash that can't be inside end there.
    """
    return _Brackets(scan).read(at)


class _Brackets:
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.frames = scan.frames
        self.depth = len(scan.frames)
        self.owner = scan.frames[-1].column
        self.behind = False
        """Whether a quote or bracket has just been closed: nothing can be typed right behind it."""

    def read(self, at: int) -> int:
        scan, text = self.scan, self.scan.text
        if scan.holds(at, at):
            scan.tell("nothing")
        at = self._open(at)
        while True:
            begin, at = at, min(behind_blanks(text, at), scan.stop)
            if at >= scan.stop or text[at] in "\r\n":
                if scan.holds(begin, at):
                    self._empty(begin)
                following = scan.next_line(at)
                if following > scan.stop or self._never_closed(following):
                    del self.frames[self.depth :]
                    return following
                at = following
                self.behind = False
                continue
            if scan.holds(begin, at - 1) or (text[at] in ",]}" and scan.holds(begin, at)):
                self._empty(begin)
            at = self._token(at, begin)
            if len(self.frames) == self.depth:
                return scan.behind_value(at)

    def _token(self, at: int, begin: int) -> int:
        scan, text, top = self.scan, self.scan.text, self.frames[-1]
        sign = text[at]
        was_behind, self.behind = self.behind, False
        if sign == "#" and (at > begin or text[at - 1] in "\r\n"):
            end = scan.line_end(at)
            if scan.holds(at + 1, end):
                scan.tell("comment")
            return end
        if sign in "[{":
            if scan.holds(at, at):
                scan.tell("nothing")
            top.state = "done"
            return self._open(at)
        if sign in "]}":
            self.frames.pop()
            self.behind = True
            return at + 1
        if sign == ",":
            top.state = "empty"
            top.begins = -1
            if top.is_list:
                top.index += 1
            top.key = ""
            return at + 1
        if sign == ":" and (was_behind or not _PLAIN.match(text, at)):
            if not top.is_list and top.key and top.begins < 0:
                top.begins = at
                top.state = "empty"
            return at + 1
        if sign in "&!" and (content := behind_properties(text, at)) > at:
            if scan.holds(at, content - 1):
                scan.tell("nothing")
            return content
        if sign in "\"'" and top.state != "plain":
            return self._quoted(at)
        found = _PLAIN.match(text, at, scan.stop)
        if found is None:
            return at + 1
        self._scalar(Span(at, found.end()), Span(at, found.end()), "plain", False)
        return found.end()

    def _open(self, at: int) -> int:
        is_list = self.scan.text[at] == "["
        self.frames.append(Frame(is_list, -1, at, True, index=0 if is_list else -1))
        self.behind = False
        return at + 1

    def _quoted(self, at: int) -> int:
        scan = self.scan
        close = scan.quote_end(at, self.owner)
        end = close if close >= 0 else scan.line_end(at)
        inner = Span(at + 1, close - 1 if close >= 0 else end)
        style: Style = "double" if scan.text[at] == '"' else "single"
        self._scalar(inner, Span(at, end), style, close < 0)
        if scan.holds(at, end):
            scan.tell("nothing")
        self.behind = True
        return end

    def _scalar(self, inner: Span, region: Span, style: Style, open_: bool) -> None:
        """Take a scalar: a key, a value or an item, as its place says."""
        scan, top = self.scan, self.frames[-1]
        here = scan.holds(*inner)
        is_key = not top.is_list and top.begins < 0
        if is_key:
            if here:
                behind = behind_blanks(scan.text, region.end)
                word = _WORD.match(scan.text, inner.start, inner.end) if style == "plain" else None
                if word is not None and self.scan.cursor <= word.end() < inner.end:
                    scan.tell("key", Span(inner.start, word.end()))  # a word typed before the key that was there
                    return
                scan.tell("key", inner, region, style=style, open_=open_, colon=scan.text[behind : behind + 1] == ":")
            else:
                top.names.setdefault(scan.text[inner.start : inner.end], Span(region.end, region.end))
            top.key = scan.text[inner.start : inner.end]
            top.state = "done"
            return
        if here:
            scan.tell("item" if top.is_list else "value", scan.on_line(inner), region, style=style, open_=open_)
        elif top.is_list:
            top.items.append(region)
        elif top.key in top.names and top.state == "empty":
            top.names[top.key] = region
        top.state = "plain" if style == "plain" else "done"

    def _empty(self, begin: int) -> None:
        """Tell about the cursor between two tokens."""
        scan, top = self.scan, self.frames[-1]
        if self.behind or top.state == "done":
            scan.tell("nothing")
        elif top.state == "plain":  # behind a blank that would be part of the text
            start = (top.items[-1] if top.is_list else top.names.get(top.key, Span(begin, begin))).start
            if scan.text.find("\n", start, scan.cursor) >= 0:
                scan.tell("nothing")
                return
            if top.is_list:
                top.items.pop()
            scan.tell("item" if top.is_list else "value", Span(start, scan.cursor))
        elif top.is_list:
            scan.tell("item", glued=False)
        elif top.begins < 0:
            scan.tell("key")
        elif self._value_follows():
            scan.tell("nothing")
        else:
            scan.tell("value", glued=scan.text[scan.cursor - 1] == ":")

    def _value_follows(self) -> bool:
        """Tell whether the value stands behind the cursor: on its line, and no key whose comma is missing."""
        scan = self.scan
        end = scan.line_end(scan.cursor)
        at = min(behind_blanks(scan.text, scan.cursor), end)
        blank = at > scan.cursor
        return blank and at < end and scan.text[at] not in ",]}#" and FIELD.match(scan.text, at, end) is None

    def _never_closed(self, line: int) -> bool:
        scan = self.scan
        content, end = behind_blanks(scan.text, line), scan.line_end(line)
        if scan.trusted or content >= end or content - line > max(self.owner, 0):
            return False
        begins = FIELD.match(scan.text, content, end) or DASH.match(scan.text, content, end)
        return begins is not None and self.owner >= 0
