"""Open documents: the server's copy of what the editor shows, kept equal to it through every edit.

A text is held as its lines, so an edit costs its lines and not the whole text, and many edits in one message stay linear.
Lines end at LF, CRLF or CR only, as in editors and YAML; U+2028 and U+0085 end none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

from agentloom.text import Source
from agentloom_lsp import uris
from agentloom_lsp.convert import Encoding, Position, code_points

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class Change(NamedTuple):
    """One edit: the text between two positions replaced; the whole text when there are none."""

    text: str
    start: Position | None = None
    end: Position | None = None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends; the last one has none and may be empty."""
    if "\r" in text and text.count("\r") != text.count("\r\n"):
        lines: list[str] = _LINE.findall(text)
    else:
        lines = text.split("\n")
        last = lines.pop()
        lines = [f"{line}\n" for line in lines]
        if last:
            lines.append(last)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


class Document:
    """One open document. ``uri`` is the client's spelling; ``source`` its newest version, unchangeable.

    ``memory`` is for the check alone: what it keeps from one version to the next. ``kind`` is what the file was last taken
    for: a workflow stays one while it is edited. ``kept`` is what features keep from one version to the next, by their own keys.
    ``spellings`` are all the URIs under which it was opened and not closed yet.
    """

    __slots__ = ("kept", "kind", "language_id", "lines", "memory", "source", "spellings", "uri")

    def __init__(self, uri: str, language_id: str, version: int, text: str) -> None:
        self.uri = uri
        self.language_id = language_id
        self.lines = split_lines(text)
        self.source = Source(uri, text, version)
        self.spellings = {uri}
        self.kind: Any = None
        self.memory: Any = None
        self.kept: dict[Any, Any] = {}

    def apply(self, changes: Iterable[Change], version: int, encoding: Encoding) -> None:
        """Carry out the edits of one message, each on the result of the one before."""
        for change in changes:
            if change.start is None or change.end is None:
                self.lines = split_lines(change.text)
            else:
                self._replace(*self._place(change.start, encoding), *self._place(change.end, encoding), change.text)
        # Put together here and now: the worker's thread reads it while the next edit may be under way.
        self.source = Source(self.uri, "".join(self.lines), version)

    def _place(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        """Return line and code point of a position, held inside the text."""
        line = position.line
        if line < 0:
            return 0, 0
        if line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        return line, code_points(self.lines[line].rstrip("\r\n"), position.character, encoding)

    def _replace(self, line: int, column: int, last: int, end: int, text: str) -> None:
        if (last, end) < (line, column):
            line, column, last, end = last, end, line, column
        piece = self.lines[line][:column] + text + self.lines[last][end:]
        if line > 0 and piece.startswith("\n") and self.lines[line - 1].endswith("\r"):
            line -= 1  # the two make one line end now
            piece = self.lines[line] + piece
        fresh = split_lines(_joined(piece))
        if last + 1 < len(self.lines) and not fresh[-1]:
            fresh.pop()  # the piece ends with a line end, and the next line is there already
        self.lines[line : last + 1] = fresh


def _joined(text: str) -> str:
    """Return a text in which halves of a character, brought together by an edit, are one character again."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class Documents:
    """All open documents, found under any spelling of their URI."""

    def __init__(self) -> None:
        self._by_key: dict[str, Document] = {}

    def __iter__(self) -> Iterator[tuple[str, Document]]:
        return iter(list(self._by_key.items()))

    def open(self, uri: str, language_id: str, version: int, text: str) -> str:
        """Take a document in (a second opening replaces the first); return its key."""
        key = uris.key(uri)
        document = Document(uri, language_id, version, text)
        if key in self._by_key:
            document.spellings |= self._by_key[key].spellings
        self._by_key[key] = document
        return key

    def close(self, uri: str) -> Document | None:
        """Let a document go; return it if it was open. One that is open under another spelling too goes on under that one."""
        document = self._by_key.get(uris.key(uri))
        if document is None or document.spellings <= {uri} or uri not in document.spellings:
            return self._by_key.pop(uris.key(uri), None)
        document.spellings.discard(uri)
        document.uri = min(document.spellings)
        document.source = document.source._replace(uri=document.uri)
        return document

    def get(self, uri: str) -> Document | None:
        """Return the open document that a URI names."""
        return self._by_key.get(uris.key(uri))

    def at(self, key: str) -> Document | None:
        """Return the open document kept under a key."""
        return self._by_key.get(key)

    def on_path(self, path: PurePath) -> Document | None:
        """Return the open document that shows a file."""
        return self._by_key.get(uris.path_key(path))

    def names_in(self, folder: PurePath) -> list[str]:
        """Return the names of the open documents that lie in a folder."""
        inside = uris.path_key(folder).rstrip("/") + "/"
        return [
            key[len(inside) :] for key in list(self._by_key) if key.startswith(inside) and "/" not in key[len(inside) :]
        ]
