"""Server-sent events: bytes as they arrive to events, whatever the cuts between them.

After https://html.spec.whatwg.org/multipage/server-sent-events.html, but for one thing: an event that the end of the stream cuts short
is handed on, marked incomplete, since servers forget the last empty line.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_LINE_END = re.compile("\r\n|\n|\r")  # not U+2028 and U+0085, which `splitlines` takes for line ends


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``complete`` is false when the stream ended before the empty line after it."""

    data: str
    name: str = "message"
    complete: bool = True


class EventParser:
    """Turns bytes into events. Cuts may fall anywhere: inside a character, a line break or an event; memory is that of one event."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self._name = ""
        self._skip_newline = False
        self._at_start = True

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that ``data`` completes."""
        return self._take(self._decode(data))

    def finish(self) -> list[Event]:
        """Return what is left at the end of the stream: at most one event, incomplete."""
        events = self._take(self._decode(b"", True))
        if self._line:
            self._field("".join(self._line))
            self._line.clear()
        if self._data:
            events.append(Event("\n".join(self._data), self._name or "message", complete=False))
            self._data.clear()
        return events

    def _take(self, text: str) -> list[Event]:
        events: list[Event] = []
        if not text:
            return events
        if self._at_start:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if self._skip_newline:
            # The last chunk ended with CR, which closed its line; an LF now is the other half of that line break.
            text = text.removeprefix("\n")
            self._skip_newline = False
        self._skip_newline = text.endswith("\r")
        first, *rest = _LINE_END.split(text)
        self._line.append(first)
        for piece in rest:
            event = self._close_line()
            if event is not None:
                events.append(event)
            self._line.append(piece)
        return events

    def _close_line(self) -> Event | None:
        line = "".join(self._line)
        self._line.clear()
        if line:
            self._field(line)
            return None
        event = Event("\n".join(self._data), self._name or "message") if self._data else None
        self._data.clear()
        self._name = ""
        return event

    def _field(self, line: str) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
