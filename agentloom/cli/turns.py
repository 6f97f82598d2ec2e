"""Texts that arrive at the same time, shown one after the other and never mixed."""

from __future__ import annotations

from collections.abc import Callable


class Turns:
    """One text is shown as it comes; the others, and every line in between, wait until that one is complete.

    ``write`` shows text; ``head`` gives what stands above a step's text, ``again`` what stands where a text begins anew.
    """

    def __init__(self, write: Callable[[str], None], head: Callable[[str], str], again: str) -> None:
        self._write = write
        self._head = head
        self._again = again
        self._shown: str | None = None
        self._at_line_start = True
        self._texts: dict[str, list[str]] = {}  # what waits, by step
        self._pieces: dict[str, tuple[int, int]] = {}  # the last one of each step: its attempt and number
        self._waiting: list[str] = []

    def text(self, step: str, attempt: int, seq: int, text: str) -> None:
        """Take a piece of a step's text. A new ``attempt`` begins the text anew, and so does one that comes again: its ``seq`` doesn't go up."""
        before = self._pieces.get(step)
        self._pieces[step] = attempt, seq
        if before is not None and (before[0] != attempt or before[1] >= seq):
            text = f"\n{self._again}\n{text}"
        if self._shown is None:
            self._shown = step
            self._put(self._head(step) + "\n")
        if self._shown == step:
            self._put(text)
        else:
            self._texts.setdefault(step, [self._head(step) + "\n"]).append(text)

    def line(self, line: str) -> None:
        """Show a line, after the text that is being shown."""
        if self._shown is None:
            self._put(line + "\n")
        else:
            self._waiting.append(line + "\n")

    def finish(self, step: str, line: str) -> None:
        """End a step's text, if it has one, with a line about it; the next one gets its turn."""
        if self._shown == step:
            self._stop()
            self._put(line + "\n")
            self._flush()
            for other in self._texts:
                self._shown = other
                self._put("".join(self._texts.pop(other)))
                break
        elif step in self._texts:
            text = "".join(self._texts.pop(step))
            self._waiting.append(text + ("" if text.endswith("\n") else "\n") + line + "\n")
        else:
            self.line(line)

    def close(self) -> None:
        """Show everything that still waits."""
        self._stop()
        self._flush()
        for text in self._texts.values():
            self._put("".join(text))
            self._stop(force=True)
        self._texts.clear()

    def _stop(self, force: bool = False) -> None:
        if (self._shown is not None or force) and not self._at_line_start:
            self._put("\n")
        self._shown = None

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for text in waiting:
            self._put(text)

    def _put(self, text: str) -> None:
        if text:
            self._write(text)
            self._at_line_start = text.endswith("\n")
