"""Reasoning that stands inside a reply: `<think>…</think>` before the answer, as some models write it."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class ThinkingFilter:
    """Takes a reply in pieces, and tells its answer from the reasoning that it begins with; a mark may be cut anywhere.

    Only a mark at the very beginning counts: an answer may speak of `<think>`.
    """

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self._held = ""
        self._inside = False
        self._answering = False
        self._spaces = False

    def feed(self, text: str) -> str:
        """Return what of the answer a piece completes."""
        if self._answering:
            return self._answer(text)
        self._held += text
        if not self._inside:
            begin = self._held.lstrip()
            if OPEN.startswith(begin):
                return ""  # nothing yet, or the beginning of a mark
            if not begin.startswith(OPEN):
                return self._answer(self._let_go())
            self._inside, self._held = True, begin[len(OPEN) :]
        thought, mark, rest = self._held.partition(CLOSE)
        if mark:
            self._think(thought)
            self._held, self._spaces = rest, True
            return self._answer(self._let_go())
        keep = next((n for n in range(len(CLOSE) - 1, 0, -1) if thought.endswith(CLOSE[:n])), 0)
        self._think(thought[: len(thought) - keep])
        self._held = thought[len(thought) - keep :]
        return ""

    def finish(self) -> str:
        """Return what is left of the answer at the end of the reply; reasoning without an end is reasoning."""
        if self._inside and not self._answering:
            self._think(self._let_go())
            return ""
        return self._let_go()

    def _answer(self, text: str) -> str:
        self._answering = True
        if self._spaces:  # between the mark and the answer
            text = text.lstrip()
            self._spaces = not text
        return text

    def _think(self, text: str) -> None:
        if text:
            self.thoughts.append(text)

    def _let_go(self) -> str:
        text, self._held = self._held, ""
        return text
