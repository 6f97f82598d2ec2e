"""What is wrong with a value that does not compose, and the edit that cures it. Knows one value and its text, no structure.

Every function returns repairs to try in order, in offsets of the text it got; whoever tries them composes the edited text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentloom.diagnostics import Edit
from agentloom.syntax.backend import Failure
from agentloom.syntax.block_repairs import block_repairs, list_repairs
from agentloom.syntax.flow import bracket_end, open_brackets
from agentloom.syntax.lines import FIELD, behind_blanks, content_end, line_end
from agentloom.syntax.quoting import single
from agentloom.syntax.repair import IN_QUOTES, Repair, first_word, in_quotes
from agentloom.text import Span

TEMPLATE = re.compile(r"\{[ \t]*[A-Za-z_][\w.\[\]\"'-]*[ \t]*\}")

_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\']*(?:\'\'[^\']*)*\'(?!\')', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\r\n|.)", re.DOTALL)
_GOOD_ESCAPE = re.compile(
    r"\\(?:[0abt\tnvfre \"/\\N_LP\r\n]|x[0-9A-Fa-f]{2}|u(?![dD][89a-fA-F])[0-9A-Fa-f]{4}|U00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})"
)
_CLOSERS = re.compile(r"[\]}][\]} \t]*\Z")
_PSEUDO_KEY = re.compile(r"[^\s:]*:(?=[ \t\r\n]|\Z)")
_COMMENT = re.compile(r"[ \t]#")


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
        yield from block_repairs(text, at, end, column)
    elif first == "-" and column >= 0 and text[at + 1 : at + 2] in (" ", "\t"):
        yield from list_repairs(text, at, stop, column)
    elif first in "]}" and not text[at:stop].strip("]} \t"):
        yield Repair.of(Span(at, at + 1), f"`{first}` closes nothing; remove it", "remove it", Edit(Span(at, stop), ""))
    else:
        yield from _plain(text, at, stop, failure, column < 0)


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
        first_word(text, behind, stop),
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
        yield in_quotes(text, at, rest_end, span, "the template must be quoted here", "AL011")
        return
    yield in_quotes(text, at, rest_end, first_word(text, end, rest_end), f"text follows the closing `{text[end - 1]}`")


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
        yield in_quotes(text, at, stop, Span(at, at + 1), f"no value can begin with {shown}")
    elif first in _STARTS:
        yield in_quotes(text, at, stop, Span(at, at + 1), _STARTS[first])
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
        yield in_quotes(text, at, stop, span, "`: ` can't stand in plain text")
    elif at <= failure.at < stop:
        commented = _COMMENT.search(text, at, failure.at) is not None
        fault = "text can't go on below a comment" if commented else "this can't stand in plain text"
        yield in_quotes(text, at, stop, first_word(text, failure.at, stop), fault)
