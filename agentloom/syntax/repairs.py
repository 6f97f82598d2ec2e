"""What is wrong with a value that does not compose, and the edit that cures it. Knows one value and its text, no structure.

Every function returns repairs to try in order, in offsets of the text it got; whoever tries them composes the edited text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.syntax.backend import Failure
from agentloom.syntax.flow import bracket_end, open_brackets
from agentloom.syntax.lines import BLOCK_HEADER, DASH, FIELD, KEY, behind_blanks, content_end, line_end
from agentloom.syntax.quoting import quote, single
from agentloom.text import Span, newline_of


class Repair(NamedTuple):
    """A fault, and the edits that mend it for reading and for the user alike."""

    finding: Finding
    edits: tuple[Edit, ...]

    @staticmethod
    def of(span: Span, message: str, title: str, *edits: Edit, code: str = "AL001", safe: bool = False) -> Repair:
        """Return a repair whose edits are also the finding's fix."""
        return Repair(Finding(code, span, message, fixes=(Fix(title, edits, safe),)), edits)


TEMPLATE = re.compile(r"\{[ \t]*[A-Za-z_][\w.\[\]\"'-]*[ \t]*\}")
IN_QUOTES = "put the value in quotes"

_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\']*(?:\'\'[^\']*)*\'(?!\')', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\r\n|.)", re.DOTALL)
_GOOD_ESCAPE = re.compile(
    r"\\(?:[0abt\tnvfre \"/\\N_LP\r\n]|x[0-9A-Fa-f]{2}|u(?![dD][89a-fA-F])[0-9A-Fa-f]{4}|U00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})"
)
_CLOSERS = re.compile(r"[\]}][\]} \t]*\Z")
_PSEUDO_KEY = re.compile(r"[^\s:]*:(?=[ \t\r\n]|\Z)")
_ALIAS = re.compile(r"\*[0-9A-Za-z_-]+\Z")
_COMMENT = re.compile(r"[ \t]#")
_WORD = re.compile(r"\S+")
_DIGIT_ZERO = re.compile(r"[|>][+-]?(0)")


def repairs_of(text: str, at: int, end: int, failure: Failure, column: int = -1) -> Iterator[Repair]:
    """Yield repairs of the value ``text[at:end]``, the likely ones first. ``column`` is its key's; -1 in flow style."""
    stop = content_end(text, at, end)
    if stop <= at:
        return
    first = text[at]
    if first in "\"'":
        yield from _quoted(text, at, stop, column < 0)
    elif first in "[{":
        yield from _bracketed(text, at, stop, failure)
    elif first in "|>" and column >= 0:
        yield from _block(text, at, end, column)
    elif first == "-" and column >= 0 and text[at + 1 : at + 2] in (" ", "\t"):
        yield from _list_on_key_line(text, at, stop, column)
    elif first in "]}" and not text[at:stop].strip("]} \t"):
        yield Repair.of(Span(at, at + 1), f"`{first}` closes nothing; remove it", "remove it", Edit(Span(at, stop), ""))
    else:
        yield from _plain(text, at, stop, failure, column < 0)


def _in_quotes(text: str, at: int, stop: int, span: Span, fault: str, code: str = "AL001") -> Repair:
    """Return the repair that puts ``[at, stop)`` in quotes, its line breaks where they are."""
    value = text[at:stop]
    written = quote(value) if "\n" not in value and "\r" not in value else single(value)
    if written == value:
        written = single(value)
    return Repair.of(span, f"{fault}; {IN_QUOTES}", "put it in quotes", Edit(Span(at, stop), written), code=code)


def _first_word(text: str, at: int, stop: int) -> Span:
    at = behind_blanks(text, at)
    word = _WORD.match(text, at, stop)
    return Span(at, word.end() if word else max(at, min(stop, at + 1)))


def _quoted(text: str, at: int, stop: int, flow: bool) -> Iterator[Repair]:
    mark = text[at]
    closed = _QUOTED.match(text, at, stop)
    if closed is None:
        place = stop
        if flow:
            place = at + 1 + len(text[at + 1 : stop].rstrip(" \t\r\n]},"))
        kind = "double" if mark == '"' else "single"
        yield Repair.of(
            Span(at, at + 1),
            f"this {kind} quote is never closed; add the closing `{mark}`",
            "add the closing quote",
            Edit(Span(place, place), mark),
        )
        return
    if mark == '"':
        yield from _escapes(text, at, closed.end())
    behind = closed.end()
    stop = min(stop, line_end(text, behind))
    if text[behind:stop].strip(" \t"):
        yield _around_quotes(text, at, stop, behind)


def _around_quotes(text: str, at: int, stop: int, behind: int) -> Repair:
    """Return the repair for text behind a closing quote: outer quotes kept when they look meant, else quotes around all."""
    mark, whole = text[at], text[at:stop]
    if whole.endswith(mark) and text[behind] not in " \t,.;:)":
        inner = whole[1:-1]
        if mark == '"' and "\\" not in inner:
            written = single(inner)
        elif mark == '"':
            written = '"' + re.sub(r'(?<!\\)"', lambda _: '\\"', inner) + '"'
        else:
            written = "'" + re.sub(r"'+", lambda m: "''" * ((len(m[0]) + 1) // 2), inner) + "'"
    else:
        written = single(whole)
    return Repair.of(
        _first_word(text, behind, stop),
        f"text follows the closing quote; {IN_QUOTES} as a whole",
        "put all of it in quotes",
        Edit(Span(at, stop), written),
    )


def _escapes(text: str, at: int, end: int) -> Iterator[Repair]:
    """Yield one repair with every bad escape's edit, then (for their findings) nothing more is known."""
    for match in _ESCAPE.finditer(text, at, end):
        found = match[0]
        if len(found) == 12 and found[1] == "u":
            char = bytes.fromhex(found[2:6] + found[8:12]).decode("utf-16-be")
            yield Repair.of(
                Span(*match.span()),
                f"YAML takes no surrogate pairs; write `{char}` itself",
                f"write {char} itself",
                Edit(Span(*match.span()), char),
            )
        elif not _GOOD_ESCAPE.match(text, match.start(), end):
            yield Repair.of(
                Span(*match.span()),
                _escape_words(found),
                "double the backslash",
                Edit(Span(match.start(), match.start()), "\\"),
            )


def _escape_words(found: str) -> str:
    digits = {"\\x": "two", "\\u": "four", "\\U": "eight"}.get(found)
    if digits:
        return (
            f"`{found}` needs {digits} hexadecimal digits of a character behind it; write `\\{found}` for a backslash"
        )
    return f"`{found}` is no escape in double quotes; write `\\{found}` for a backslash, or use single quotes"


def _bracketed(text: str, at: int, stop: int, failure: Failure) -> Iterator[Repair]:
    if text[at] == "[" and (dashed := _DASHED.match(text, at, stop)):
        yield _dashes_in_brackets(text, dashed)
        return
    end = bracket_end(text, at, stop)
    if end < 0 or (failure.at >= stop and "end of stream" in failure.problem):
        quote_at = failure.context_at
        if "end of stream" in failure.problem and at < quote_at < stop and text[quote_at] in "\"'":
            yield from _quoted(text, quote_at, stop, flow=True)
            return
        yield from _unclosed(text, at, stop)
        return
    rest_end = min(stop, line_end(text, end))
    rest = text[end:rest_end]
    if not rest.strip(" \t"):
        return
    extra = behind_blanks(text, end)
    if _CLOSERS.match(text, extra, rest_end):
        yield Repair.of(
            Span(extra, extra + 1),
            f"`{text[extra]}` closes nothing; remove it",
            "remove it",
            Edit(Span(extra, rest_end), ""),
        )
        return
    template = TEMPLATE.match(text, at)
    if template and "\n" not in template[0]:
        span = Span(at, template.end())
        yield _in_quotes(text, at, rest_end, span, "the template must be quoted here", "AL011")
        return
    yield _in_quotes(
        text, at, rest_end, _first_word(text, end, rest_end), f"text follows the closing `{text[end - 1]}`"
    )


_DASHED = re.compile(r"\[(?:[ \t]*(?:\r\n|\r|\n)[ \t]*-[ \t]+[^\r\n]*[^\s])+[ \t]*(?:\r\n|\r|\n)[ \t]*\]\Z")
_DASHED_LINE = re.compile(r"[\r\n][ \t]*(-[ \t]+)[^\r\n]*")


def _dashes_in_brackets(text: str, dashed: re.Match[str]) -> Repair:
    """Return the repair for a list that has both brackets and dashes: commas in place of the dashes."""
    lines = list(_DASHED_LINE.finditer(text, dashed.start(), dashed.end()))
    edits = [Edit(Span(line.start(1), line.end(1)), "") for line in lines]
    edits += [Edit(Span(line.end(), line.end()), ",") for line in lines[:-1] if not line[0].endswith(",")]
    dash = lines[0].start(1)
    message = "a list in brackets takes commas, no dashes; remove the dashes or the brackets"
    return Repair.of(Span(dash, dash + 1), message, "write commas", *edits)


def _unclosed(text: str, at: int, stop: int) -> Iterator[Repair]:
    """Yield the repairs of brackets that are not closed, or closed by one of another kind."""
    still_open, wrong = open_brackets(text, at, stop)
    if wrong >= 0:
        expected = "]" if text[still_open[-1]] == "[" else "}"
        if any((text[place] == "[") == (text[wrong] == "]") for place in still_open):
            place = wrong
            while text[place - 1] in " \t":
                place -= 1
            yield _never_closed(text, still_open[-1], place, expected)
            return
        yield Repair.of(
            Span(wrong, wrong + 1),
            f"`{text[still_open[-1]]}` is closed by `{text[wrong]}`; write `{expected}`",
            f"write {expected}",
            Edit(Span(wrong, wrong + 1), expected),
        )
        return
    closers = "".join("]" if text[place] == "[" else "}" for place in reversed(still_open))
    if not closers:
        return
    yield _never_closed(text, still_open[-1], stop, closers)


def _never_closed(text: str, bracket: int, place: int, closers: str) -> Repair:
    return Repair.of(
        Span(bracket, bracket + 1),
        f"`{text[bracket]}` is never closed; add the closing `{closers[0]}`",
        f"add {closers}",
        Edit(Span(place, place), closers),
    )


def _block(text: str, at: int, end: int, column: int) -> Iterator[Repair]:
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
                _first_word(text, words, stop),
                f"text can't follow `{text[at]}` on its line; begin it on the next line",
                "move the text to the next line",
                Edit(Span(at + 1, words), newline_of(text, at) + pad),
            )
        yield _in_quotes(text, at, stop, Span(at, at + 1), f"a value can't begin with `{text[at]}` like this")
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
        yield Repair.of(_first_word(text, start, line_end(text, start)), fault, title, *short)


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


def _list_on_key_line(text: str, at: int, stop: int, column: int) -> Iterator[Repair]:
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
    yield _in_quotes(text, at, stop, Span(at, at + 1), "a list can't begin on the line of its key")


_STARTS = {
    "*": "`*` begins an alias",
    "&": "`&` begins an anchor",
    "!": "`!` begins a tag",
    "?": "`? ` can't begin a value",
}


def _plain(text: str, at: int, stop: int, failure: Failure, flow: bool) -> Iterator[Repair]:
    """Yield the repair that quotes a plain text, with the reason that shows in it."""
    first = text[at]
    pseudo = _PSEUDO_KEY.search(text, at, stop)
    if first in "@`%,]}":
        shown = "a backtick" if first == "`" else f"`{first}`"
        yield _in_quotes(text, at, stop, Span(at, at + 1), f"no value can begin with {shown}")
    elif first in _STARTS:
        yield _in_quotes(text, at, stop, Span(at, at + 1), _STARTS[first])
    elif pseudo:
        span = Span(*pseudo.span())
        if flow and text[at : pseudo.start()].strip() and FIELD.match(text, pseudo.start()):
            place = at + len(text[at : pseudo.start()].rstrip())
            yield Repair.of(
                span,
                f"no comma stands before the key `{pseudo[0][:-1]}`; add it, or put the text in quotes",
                "add the comma",
                Edit(Span(place, place), ","),
            )
        yield _in_quotes(text, at, stop, span, "`: ` can't stand in plain text")
    elif at <= failure.at < stop:
        commented = _COMMENT.search(text, at, failure.at) is not None
        fault = "text can't go on below a comment" if commented else "this can't stand in plain text"
        yield _in_quotes(text, at, stop, _first_word(text, failure.at, stop), fault)
