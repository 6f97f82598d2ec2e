"""JSON lines: bytes as they arrive to lines, whatever the cuts between them."""

from __future__ import annotations

from agentloom.providers.sse import Event


class LineParser:
    """Turns bytes into one event a line that isn't empty. Cuts may fall anywhere, also inside a character; memory is that of one line."""

    def __init__(self) -> None:
        self._line: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        """Return the lines that ``data`` completes."""
        first, *rest = data.split(b"\n")
        self._line.append(first)
        events: list[Event] = []
        for piece in rest:
            events.extend(self._close(True))
            self._line.append(piece)
        return events

    def finish(self) -> list[Event]:
        """Return what is left at the end of the stream: at most one line, incomplete."""
        return self._close(False)

    def _close(self, complete: bool) -> list[Event]:
        text = b"".join(self._line).decode("utf-8", "replace").strip()
        self._line.clear()
        return [Event(text, complete=complete)] if text else []
