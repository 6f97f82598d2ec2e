"""Repairs of values that need lines of their own: block scalars, and lists that begin on their key's line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.diagnostics import Edit
from agentloom.syntax.lines import BLOCK_HEADER, DASH, KEY, behind_blanks, content_end, line_end
from agentloom.syntax.repair import Repair, first_word, in_quotes
from agentloom.text import Span, newline_of

_DIGIT_ZERO = re.compile(r"[|>][+-]?(0)")


def block_repairs(text: str, at: int, end: int, column: int) -> Iterator[Repair]:
    """Yield the repairs of a block scalar: words behind its header, and lines that stand too far left."""
    header_end = line_end(text, at)
    zero = _DIGIT_ZERO.match(text, at)
    if zero:
        yield Repair.of(
            Span(zero.start(1), zero.end(1)),
            f"the number behind `{text[at]}` counts columns from 1 to 9; leave it out to have them counted",
            "remove it",
            Edit(Span(zero.start(1), zero.end(1)), ""),
        )
        return
    if not BLOCK_HEADER.match(text, at):
        words = behind_blanks(text, at + 1)
        stop = content_end(text, at, header_end)
        if words > at + 1 and words < stop:
            pad = " " * _indent_below(text, header_end, end, column)
            yield Repair.of(
                first_word(text, words, stop),
                f"text can't follow `{text[at]}` on its line; begin it on the next line",
                "move the text to the next line",
                Edit(Span(at + 1, words), newline_of(text, at) + pad),
            )
        yield in_quotes(text, at, stop, Span(at, at + 1), f"a value can't begin with `{text[at]}` like this")
        return
    yield from _block_lines(text, header_end, end, column)


_BLOCK_LINE = re.compile(r"(?:\r\n|\r|\n)([ \t]*)([^\r\n]*)")


def _block_lines(text: str, at: int, end: int, column: int) -> Iterator[Repair]:
    indent = -1
    early: list[Edit] = []
    short: list[Edit] = []
    for match in _BLOCK_LINE.finditer(text, at, end):
        width = len(match[1])
        if not match[2]:
            if indent < 0:
                early.append(Edit(Span(match.start(1), match.end(1)), ""))
            continue
        if indent < 0:
            indent = max(width, column + 1)
            early = [edit for edit in early if edit.span.end - edit.span.start > width]
        if width < indent:
            short.append(
                Edit(Span(match.start(1), match.end(1)), " " * (column + 2 if indent == column + 1 else indent))
            )
    if early:
        yield Repair.of(
            Span(early[0].span.start, early[0].span.end),
            "this empty line is indented deeper than the text below it; remove its blanks",
            "remove the blanks",
            *early,
        )
    elif short:
        start = short[0].span.end
        fault, title = (
            ("the text below its key is not indented; indent it deeper than the key", "indent the text")
            if indent == column + 1
            else (
                "this line stands further left than the text it belongs to; indent it like the first line",
                "indent it like the first line",
            )
        )
        yield Repair.of(first_word(text, start, line_end(text, start)), fault, title, *short)


def _indent_below(text: str, at: int, end: int, column: int) -> int:
    """Return the indentation of the first line below, if it is deeper than ``column``, else two columns more than that."""
    for match in _BLOCK_LINE.finditer(text, at, end):
        if match[2]:
            return len(match[1]) if len(match[1]) > column else column + 2
    return column + 2


def _dashes_below(text: str, at: int, end: int, column: int) -> int:
    """Return the column for a dash that is moved below its key: that of the next dash, or fit for the keys below."""
    below = line_end(text, at)
    for match in _BLOCK_LINE.finditer(text, below, end):
        if DASH.match(match[2]) and len(match[1]) >= column:
            return len(match[1])
    width = _indent_below(text, below, end, column)
    return width - 2 if width - 2 >= column and KEY.match(text, behind_blanks(text, at + 1)) else width


def list_repairs(text: str, at: int, stop: int, column: int) -> Iterator[Repair]:
    start = at
    while start and text[start - 1] in " \t":
        start -= 1
    pad = " " * _dashes_below(text, at, stop, column)
    yield Repair.of(
        Span(at, at + 1),
        "a list can't begin on the line of its key; put the item on its own line, or the text in quotes",
        "put the item on its own line",
        Edit(Span(start, at), newline_of(text, at) + pad),
    )
    yield in_quotes(text, at, stop, Span(at, at + 1), "a list can't begin on the line of its key")
