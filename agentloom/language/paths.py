"""State paths such as ``report.items[0].name``: their grammar, their places, and the look-up in plain data.

A path is a tuple of parts: text names a key of a mapping, a whole number an item of a list. Nothing here ever touches an
attribute of a Python object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from agentloom.text import Span

Part: TypeAlias = str | int

# Every ASCII character but letters, digits, `_` and `-` ends a name, and so does white space; other letters, marks and
# symbols are taken as they are: look-up never normalises. (Written as what is left out: quick to compile.)
NAME: Final = re.compile(r"[^\s\x00-\x2c\x2e\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\xa0]+")
_INDEX = re.compile(r"-?[0-9]{1,18}")
_SEGMENT_END = re.compile(r"[.\[\]!:]")


class Missing(Enum):
    """The type of ``MISSING``."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""What ``get`` returns for a path that leads nowhere; None is a value."""


class StatePath(NamedTuple):
    """A path and the span of each part, in offsets of the text it was read from (brackets and dots left out)."""

    parts: tuple[Part, ...]
    spans: tuple[Span, ...]


class PathFault(NamedTuple):
    """Why a text is no path; ``span`` is the part that is wrong, in offsets of the text."""

    span: Span
    message: str


def is_name(text: str) -> bool:
    """Tell whether templates and paths can read a key of this name, written after a dot."""
    return NAME.fullmatch(text) is not None and not is_hidden(text)


def is_hidden(name: str) -> bool:
    """Tell whether a name is one that templates never read: it starts with two underscores."""
    return name.startswith("__")


def scan_segments(text: str, at: int, end: int) -> tuple[list[Part], list[Span], int, PathFault | None]:
    """Read ``.name`` and ``[key]`` from ``at`` up to ``end`` or to the first ``!`` or ``:`` outside brackets.

    Returns the parts, their spans, where reading stopped, and the first fault. Names are taken as they stand, spaces and
    all, as in ``str.format``; callers that want proper names check them.
    """
    parts: list[Part] = []
    spans: list[Span] = []
    while at < end:
        char = text[at]
        if char == ".":
            found = _SEGMENT_END.search(text, at + 1, end)
            stop = found.start() if found else end
            if stop == at + 1:
                return parts, spans, stop, PathFault(Span(at, at + 1), "a name must follow the dot")
            parts.append(text[at + 1 : stop])
            spans.append(Span(at + 1, stop))
            at = stop
        elif char == "[":
            stop = text.find("]", at + 1, end)
            if stop < 0:
                return parts, spans, end, PathFault(Span(at, at + 1), "`[` is never closed; write `]` behind the key")
            key = text[at + 1 : stop]
            if not key:
                return parts, spans, stop, PathFault(Span(at, stop + 1), "`[]` is empty; write a number or a key in it")
            parts.append(int(key) if _INDEX.fullmatch(key) else key)
            spans.append(Span(at + 1, stop))
            at = stop + 1
        elif char in "!:":
            break
        else:
            message = f"`{char}` can't stand here; write a dot before the next name"
            return parts, spans, at, PathFault(Span(at, at + 1), message)
    return parts, spans, at, None


def parse_path(text: str, start: int = 0) -> StatePath | PathFault:
    """Return the path that ``text[start:]`` spells: ``a.b[0].c``, ``a[-1]``, ``a[name]``, names with hyphens."""
    end = len(text)
    first = NAME.match(text, start)
    if first is None:
        if start >= end:
            return PathFault(Span(start, end), "the path is empty; write the name of a state key")
        return PathFault(Span(start, start + 1), f"`{text[start]}` can't begin a state path")
    parts, spans, stop, fault = scan_segments(text, first.end(), end)
    if fault is not None:
        return fault
    if stop < end:
        return PathFault(Span(stop, stop + 1), f"`{text[stop]}` can't stand in a state path")
    parts.insert(0, first.group())
    spans.insert(0, Span(*first.span()))
    for part, span in zip(parts, spans, strict=True):
        if isinstance(part, int):
            continue
        good = NAME.match(part)
        if good is None or good.end() < len(part):
            at = span.start + (good.end() if good else 0)
            return PathFault(Span(at, at + 1), f"`{text[at]}` can't stand in a state path")
        if is_hidden(part):
            return PathFault(span, f"`{part}` can't be a state key; names with two leading underscores are reserved")
    return StatePath(tuple(parts), tuple(spans))


@lru_cache(maxsize=1024)
def parse_output_path(text: str) -> StatePath | PathFault:
    """Return the path that an ``output:`` spells: names behind dots, and whole numbers in brackets."""
    path = parse_path(text)
    if isinstance(path, PathFault):
        return path
    for part, span in zip(path.parts, path.spans, strict=True):
        if isinstance(part, str) and text[span.start - 1 : span.start] == "[":
            return PathFault(
                Span(span.start - 1, span.end + 1), f"an output path takes numbers in brackets only; write `.{part}`"
            )
    return path


def format_path(parts: Sequence[Part]) -> str:
    """Return a path as it is written: ``a.b[0]``; keys that no dot can name stand in brackets."""
    written: list[str] = []
    for part in parts:
        if isinstance(part, int):
            written.append(f"[{part}]")
        elif NAME.fullmatch(part):
            written.append(f".{part}" if written else part)
        else:
            written.append(f"[{part}]")
    return "".join(written)


def get(value: Any, parts: Sequence[Part]) -> Any | Literal[Missing.MISSING]:
    """Return what lies at ``parts`` below ``value``, or ``MISSING``.

    Keys are compared as they are. A number looks up a list's item (negative ones from its end), never a mapping's key; a name
    never looks into a list or a text. Names with two leading underscores lead nowhere.
    """
    for part in parts:
        if isinstance(part, str):
            if (type(value) is not dict and not isinstance(value, Mapping)) or part.startswith("__"):
                return MISSING
            value = value.get(part, MISSING)
            if value is MISSING:
                return MISSING
        else:
            if not isinstance(value, list | tuple) or not -len(value) <= part < len(value):
                return MISSING
            value = value[part]
    return value
