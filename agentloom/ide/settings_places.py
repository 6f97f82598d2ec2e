"""Where something stands in a settings file, for telling what is wrong there.

The reader of TOML that the settings come from knows no places, and gives up at the first fault. This one finds keys and values in
any text, and reads on behind faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentloom.analysis.settings import PROJECT_FILE, Problem, Settings
from agentloom.text import LineTable, Span

_BLANK = re.compile(r"(?:[ \t\r\n,]|#[^\r\n]*)*")
_LINE_REST = re.compile(r"[^\r\n]*")
_PART = re.compile(r"""[ \t]*(?:"((?:\\.|[^"\\\r\n])*)"|'([^'\r\n]*)'|([\w-]+))[ \t]*""")
_TEXT = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\r\n])*"|\'[^\'\r\n]*\'', re.DOTALL)
_OTHER = re.compile(r"[^\s,\]}#]+")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)")
DEEPEST = 50


class Key(NamedTuple):
    """A key with its full path, where its last part stands, and where its value does (nothing for a table's header)."""

    path: tuple[str, ...]
    span: Span
    value: Span


def place_of(text: str, settings: Settings, problem: Problem) -> Span:
    """Return where a problem of a settings file stands: its key or text, on one line; the file's beginning when it isn't found."""
    lines = LineTable(text)
    said = _AT.search(problem)
    if said:
        at = lines.offset(int(said[1]) - 1, int(said[2]) - 1)
        word = _LINE_REST.match(text, at)
        return lines.on_one_line(Span(at, word.end() if word else at))
    if problem.endswith("(at end of document)"):
        end = len(text.rstrip())
        return Span(max(0, end - 1), end)
    table = ("tool", "agentloom") if settings.path is not None and settings.path.name == PROJECT_FILE else ()
    return lines.on_one_line(_find(text, (*table, *problem.where)))


def keys_in(text: str) -> Iterator[Key]:
    """Yield every key of a TOML text, in order; what can't be read is passed over."""
    at = 0
    table: tuple[str, ...] = ()
    while at < len(text):
        at = _after_blank(text, at)
        if at >= len(text):
            return
        if text[at] == "[":
            parts, end = _parts(text, at + (2 if text.startswith("[[", at) else 1))
            table = tuple(name for name, _ in parts)
            if parts:
                yield Key(table, parts[-1][1], Span(end, end))
            at = _end_of_line(text, end)
        else:
            found, at = _entry(text, at, table, 0)
            yield from found


def _find(text: str, where: Sequence[str]) -> Span:
    by_path: dict[tuple[str, ...], Key] = {}
    for found in keys_in(text):
        by_path.setdefault(found.path, found)
    for size in range(len(where), 0, -1):
        key = by_path.get(tuple(where[:size]))
        if key is None:
            continue  # the table around it is nearest
        if size == len(where) - 1:
            for word in _TEXT.finditer(text, key.value.start, key.value.end):
                if word[0].strip("\"'") == where[-1]:
                    return Span(word.start() + 1, word.end() - 1)
        return key.span
    return Span(0, min(len(text), 1))


def _entry(text: str, at: int, table: tuple[str, ...], depth: int) -> tuple[list[Key], int]:
    """Read `key = value`; return the keys in it, and where it ends (behind the line, where it is none)."""
    parts, end = _parts(text, at)
    if not parts or text[end : end + 1] != "=":
        return [], _end_of_line(text, at + 1)
    path = (*table, *(name for name, _ in parts))
    start = end + 1
    while text[start : start + 1] in (" ", "\t"):
        start += 1
    inner, end = _value(text, start, path, depth + 1)
    return [Key(path, parts[-1][1], Span(start, end)), *inner], end


def _value(text: str, at: int, path: tuple[str, ...], depth: int) -> tuple[list[Key], int]:
    """Read a value; return the keys inside it, and where it ends."""
    opening = text[at : at + 1]
    if opening not in ("[", "{") or depth > DEEPEST:
        word = _TEXT.match(text, at) or _OTHER.match(text, at)
        return [], word.end() if word else at
    keys: list[Key] = []
    closing = "]" if opening == "[" else "}"
    at += 1
    while True:
        at = _after_blank(text, at)
        if at >= len(text):
            return keys, at
        if text[at] == closing:
            return keys, at + 1
        before = at
        if opening == "{":
            found, at = _entry(text, at, path, depth)
        else:
            found, at = _value(text, at, path, depth + 1)
        keys.extend(found)
        if at == before:
            return keys, at  # nothing that can be read: the value ends here


def _parts(text: str, at: int) -> tuple[list[tuple[str, Span]], int]:
    """Read a dotted key; return its parts, each with its place inside any quotes, and where it ends."""
    parts: list[tuple[str, Span]] = []
    while found := _PART.match(text, at):
        group = found.lastindex or 3
        parts.append((found[group], Span(*found.span(group))))
        at = found.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    return parts, at


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _end_of_line(text: str, at: int) -> int:
    found = _LINE_REST.match(text, at)
    return found.end() if found else at
