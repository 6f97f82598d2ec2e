"""Where each character of a scalar's value stands in the text, for every style.

The mapping is read off ``Scalar.raw``. Text offsets are those of the scalar's ``span``; a value offset counts code points of
``Scalar.value``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from agentloom.syntax.nodes import Scalar
from agentloom.text import Span


class Places(NamedTuple):
    """For each character of a value, where its source begins and ends in the text. Both sequences never step back."""

    starts: Sequence[int]
    ends: Sequence[int]
    behind: int
    """The text offset of the value's end."""


_LINE = re.compile(r"\r\n|\r|\n")
# Compiled where they are used: few files have escapes, or quoted texts over several lines.
_FOLD = r"[ \t]*(?:\r\n|\r|\n)[ \t\r\n]*"
_SINGLE = rf"''|{_FOLD}"
_DOUBLE = rf"\\(?:x[0-9A-Fa-f]{{2}}|u[0-9A-Fa-f]{{4}}|U[0-9A-Fa-f]{{8}}|(?:\r\n|\r|\n)[ \t\r\n]*|(?s:.))|{_FOLD}"
_EMPTY_LINE = re.compile(r"( *)(?:\r\n|\r|\n)")

_last: tuple[Scalar, Places] | None = None
"""The scalar asked about last: a prompt with many templates is mapped once."""


def text_offset(scalar: Scalar, value_offset: int) -> int:
    """Return where in the text the character at ``value_offset`` begins; the value's length gives its end."""
    start = _plain_start(scalar)
    if start is not None:
        return start + max(0, min(value_offset, len(scalar.value)))
    found = places(scalar)
    if value_offset >= len(found.starts):
        return found.behind
    return found.starts[max(0, value_offset)]


def value_offset(scalar: Scalar, text_offset: int) -> int:
    """Return the value offset at a text offset: that of the character written there, or else of the next one."""
    start = _plain_start(scalar)
    if start is not None:
        return max(0, min(text_offset - start, len(scalar.value)))
    found = places(scalar)
    at = bisect_right(found.starts, text_offset) - 1
    if at < 0:
        return 0
    while at > 0 and found.starts[at - 1] == found.starts[at]:
        at -= 1
    return at if text_offset < max(found.ends[at], found.starts[at] + 1) else at + 1


def text_span(scalar: Scalar, start: int, end: int) -> Span:
    """Return the text that the characters ``[start, end)`` of the value are written as."""
    begin = _plain_start(scalar)
    if begin is not None:
        length = len(scalar.value)
        return Span(begin + max(0, min(start, length)), begin + max(0, min(end, length)))
    found = places(scalar)
    first = text_offset(scalar, start)
    if end <= start:
        return Span(first, first)
    last = found.ends[min(end, len(found.ends)) - 1] if found.ends else found.behind
    return Span(first, max(first, last))


def _plain_start(scalar: Scalar) -> int | None:
    """Return where the value begins when it stands in the text character by character, else None."""
    if scalar.style == "plain":
        return scalar.span.start if len(scalar.raw) == len(scalar.value) else None
    if scalar.style == "single" or scalar.style == "double":
        return scalar.span.start + 1 if len(scalar.raw) == len(scalar.value) + 2 else None
    return None


def places(scalar: Scalar) -> Places:
    """Return the places of all characters of a value; the last answer is kept."""
    global _last
    kept = _last
    if kept is not None and kept[0] is scalar:
        return kept[1]
    starts: list[int] = []
    ends: list[int] = []
    raw = scalar.raw
    if scalar.style == "literal" or scalar.style == "folded":
        _block(scalar, starts, ends)
        behind = len(raw)
    elif scalar.style == "plain":
        _flow(raw, 0, len(raw), _FOLD, starts, ends)
        behind = len(raw)
    else:
        closed = len(raw) > 1 and raw[-1] == raw[0]
        behind = len(raw) - 1 if closed else len(raw)
        _flow(raw, 1, behind, _SINGLE if scalar.style == "single" else _DOUBLE, starts, ends)
    base = scalar.span.start
    length = len(scalar.value)
    del starts[length:], ends[length:]
    missing = length - len(starts)  # only where the text was cut or mended while reading
    found = Places(
        [base + at for at in starts] + [base + behind] * missing,
        [base + at for at in ends] + [base + behind] * missing,
        base + behind,
    )
    _last = (scalar, found)
    return found


def _flow(raw: str, at: int, stop: int, special: str, starts: list[int], ends: list[int]) -> None:
    """Add the places of a plain or quoted scalar's characters; ``special`` finds what is not written as itself."""
    for match in re.compile(special).finditer(raw, at, stop):
        begin, end = match.span()
        starts.extend(range(at, begin))
        ends.extend(range(at + 1, begin + 1))
        at = end
        first = raw[begin]
        if first == "'":
            starts.append(begin)
            ends.append(end)
        elif first == "\\":
            if raw[begin + 1] not in "\r\n":
                starts.append(begin)
                ends.append(end)
                continue
            # A line continuation: blanks before it stay, and so does each empty line behind it.
            _add_breaks(raw, begin + 1, end, 1, starts, ends)
        else:
            _add_breaks(raw, begin, end, 0, starts, ends)
    starts.extend(range(at, stop))
    ends.extend(range(at + 1, stop + 1))


def _add_breaks(raw: str, begin: int, end: int, continued: int, starts: list[int], ends: list[int]) -> None:
    """Add what a run of line breaks is read as: one gives a blank, more give one line break each but the first."""
    breaks = [match.span() for match in _LINE.finditer(raw, begin, end)]
    if len(breaks) == 1:
        if not continued:
            starts.append(begin)
            ends.append(breaks[0][1])
        return
    for start, stop in breaks[1:]:
        starts.append(start)
        ends.append(stop)


def _block(scalar: Scalar, starts: list[int], ends: list[int]) -> None:
    """Add the places of a block scalar's characters, line by line as the parser reads them.

    The breaks behind the last line lie outside ``raw``; the caller places them.
    """
    raw, indent, folded = scalar.raw, scalar.indent, scalar.style == "folded"
    header = _LINE.search(raw)
    at = header.end() if header else len(raw)
    last: tuple[int, int] | None = None
    last_blank = False
    while True:
        empty: list[tuple[int, int]] = []
        while (line := _EMPTY_LINE.match(raw, at)) and line.end(1) - at <= indent:
            empty.append((line.end(1), line.end()))
            at = line.end()
        if at >= len(raw):
            return
        begin = at
        while begin - at < indent and raw[begin : begin + 1] == " ":
            begin += 1
        blank = raw[begin : begin + 1] in (" ", "\t")
        breaks = empty
        if last is not None and (not folded or last_blank or blank or not empty):
            breaks = [last, *empty]
        starts.extend([start for start, _ in breaks])
        ends.extend([end for _, end in breaks])
        line_break = _LINE.search(raw, begin)
        stop = line_break.start() if line_break else len(raw)
        starts.extend(range(begin, stop))
        ends.extend(range(begin + 1, stop + 1))
        if line_break is None:
            return
        last, at = line_break.span(), line_break.end()
        last_blank = blank
