"""An editor that types at random: it keeps a text of its own, sends each edit as editors do, and can take everything back."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
LINE = re.compile(r"\r\n|\r|\n")
WORDS = (
    "  - id: b\n    type: llm_call\n    prompt: hi {state.x}\n",
    "    depends_on: [a, b]\n",
    "    retry:\n      max_retries: 3\n",
    "prompt: ",
    "{state.",
    "}",
    "{",
    "[",
    "]",
    '"',
    "'",
    ": ",
    "- ",
    "# agentloom: ignore AL202\n",
    "\n",
    "\n\n    ",
    "\t",
    "&x ",
    "*x",
    "<<: *x",
    "|\n      text\n",
    "😀",
    "é",
    "\u2028",
    "\u0085",
    "\ufeff",
    "---\n",
    "\0",
    "id",
    "steps:",
    "x" * 300,
)


Edit = tuple[int, int, str]


class Editor:
    """One open document. Offsets are code points; halves of a character stand alone until they meet."""

    def __init__(self, text: str, encoding: str, seed: int) -> None:
        self.text = text
        self.random = random.Random(seed)
        self._encoding, self._width = UNITS[encoding]
        self._undo: list[list[Edit]] = []
        self._most = 3 * len(text)

    def position(self, offset: int) -> dict[str, int]:
        """Return an offset as the protocol writes it."""
        line, start = 0, 0
        for found in LINE.finditer(self.text, 0, offset):
            line, start = line + 1, found.end()
        return {"line": line, "character": self._size(self.text[start:offset])}

    def holds(self, place: Mapping[str, int]) -> bool:
        """Tell whether a position lies in the text: on a line that is there, not behind its end."""
        lines = LINE.split(self.text)
        return 0 <= place["line"] < len(lines) and 0 <= place["character"] <= self._size(lines[place["line"]])

    def anywhere(self) -> int:
        """Return an offset that a cursor can be at: not inside CRLF."""
        at = self.random.randint(0, len(self.text))
        return at - 1 if self.text[at - 1 : at + 1] == "\r\n" else at

    def step(self) -> list[list[dict[str, Any]]]:
        """Edit the text somehow; return the changes of each message that tells of it."""
        if len(self.text) > self._most:
            return self.undo_all()
        roll = self.random.random()
        if roll < 0.25 and self._undo:
            return [self.undo()]
        if roll < 0.28:
            return [self._line_ends()]
        if roll < 0.5:
            return self._type()
        kind = self.random.choice(
            (self._insert, self._insert, self._delete, self._delete, self._paste, self._cursors, self._halves)
        )
        return [kind()]

    def undo(self) -> list[dict[str, Any]]:
        """Take the last message's edits back."""
        return [self._change(*edit) for edit in self._undo.pop()]

    def undo_all(self) -> list[list[dict[str, Any]]]:
        """Take everything back."""
        return [self.undo() for _ in range(len(self._undo))]

    def _type(self) -> list[list[dict[str, Any]]]:
        """Type a word, one message a key."""
        at, word = self.anywhere(), self.random.choice(WORDS)[:12]
        return [self._apply((at + number, at + number, key)) for number, key in enumerate(word)]

    def _insert(self) -> list[dict[str, Any]]:
        at = self.anywhere()
        return self._apply((at, at, self.random.choice(WORDS)))

    def _delete(self) -> list[dict[str, Any]]:
        one = self.anywhere()
        other = min(len(self.text), one + self.random.choice((1, 1, 5, 20, 60, 200)))
        return self._apply((one, other, ""))

    def _paste(self) -> list[dict[str, Any]]:
        begin, at = self.anywhere(), self.anywhere()
        until = min(len(self.text), at + self.random.choice((0, 0, 30)))
        return self._apply((at, until, self.text[begin : begin + self.random.randint(1, 300)]))

    def _cursors(self) -> list[dict[str, Any]]:
        """The same word at several places, the last one first, so that each is where it was."""
        word = self.random.choice(WORDS)
        places = sorted({self.anywhere() for _ in range(self.random.randint(2, 5))}, reverse=True)
        return self._apply(*((at, at, word) for at in places))

    def _halves(self) -> list[dict[str, Any]]:
        """A character that comes in two halves, as some editors send it."""
        at = self.anywhere()
        changes = [self._change(at, at, "\ud83d"), self._change(at + 1, at + 1, "\ude00")]
        self.text = self.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        self._undo.append([(at, at + 1, "")])
        return changes

    def _line_ends(self) -> list[dict[str, Any]]:
        other = self.random.choice(("\n", "\r\n", "\r"))
        return self._apply((0, len(self.text), LINE.sub(other, self.text)))

    def _apply(self, *edits: Edit) -> list[dict[str, Any]]:
        changes, back = [], []
        for start, end, text in edits:
            start, end, text = self._around_line_ends(start, end, text)
            back.append((start, start + len(text), self.text[start:end]))
            changes.append(self._change(start, end, text))
        self._undo.append(back[::-1])
        return changes

    def _around_line_ends(self, start: int, end: int, text: str) -> Edit:
        """Return an edit that doesn't begin or end inside CRLF, where no position is."""
        if self.text[start - 1 : start + 1] == "\r\n":
            start, text = start - 1, f"\r{text}"
        if self.text[end - 1 : end + 1] == "\r\n":
            end, text = end + 1, f"{text}\n"
        return start, end, text

    def _change(self, start: int, end: int, text: str) -> dict[str, Any]:
        start, end, text = self._around_line_ends(start, end, text)
        change: dict[str, Any] = {"text": text}
        if (start, end) != (0, len(self.text)) or self.random.random() < 0.5:
            change["range"] = {"start": self.position(start), "end": self.position(end)}
        self.text = self.text[:start] + text + self.text[end:]
        return change

    def _size(self, text: str) -> int:
        return len(text.encode(self._encoding, "surrogatepass")) // self._width
