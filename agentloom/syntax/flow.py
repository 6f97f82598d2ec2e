"""Where quoted text and brackets end, found without the parser."""

from __future__ import annotations

import re

from agentloom.syntax.backend import Failure

_DOUBLE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SINGLE = re.compile(r"'[^']*(?:''[^']*)*'(?!')")
_TOKEN = re.compile(
    r"""(?P<quoted>(?<=[\s\[\]{},:])(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*(?:''[^']*)*'))|(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)|[ \t\r\n]\#[^\r\n]*""",
    re.DOTALL | re.VERBOSE,
)
_BEHIND = re.compile(r"[ \t]*(?:[,\]}:]|(?<=[ \t])#|\r|\n|\Z)")


def open_place(text: str, failure: Failure) -> int:
    """Return where the bracket or quote stands that was still open at the end of ``text``; -1 when the failure is another."""
    if failure.at < len(text.rstrip(" \t\r\n")):
        return -1
    if failure.flow_at >= 0 and text[failure.flow_at] in "[{":
        return failure.flow_at
    if "end of stream" in failure.problem and 0 <= failure.context_at < len(text) and text[failure.context_at] in "\"'":
        return failure.context_at
    return -1


def quote_end(text: str, at: int, end: int) -> int:
    """Return the offset behind the quote that closes the one at ``at``, or -1; no text may follow it on its line."""
    match = (_DOUBLE if text[at] == '"' else _SINGLE).match(text, at, end)
    if match is None or not _BEHIND.match(text, match.end(), end):
        return -1
    return match.end()


def bracket_end(text: str, at: int, end: int) -> int:
    """Return the offset behind the bracket that closes the one at ``at``, or -1 when there is none or it is of another kind."""
    expected: list[str] = []
    for match in _TOKEN.finditer(text, at, end):
        if match["open"]:
            expected.append("]" if match["open"] == "[" else "}")
        elif match["close"]:
            if expected.pop() != match["close"]:
                return -1
            if not expected:
                return match.end()
    return -1


def open_brackets(text: str, at: int, end: int) -> tuple[list[int], int]:
    """Return where the brackets stand that are open at ``end``, or else at the first bracket that closes one of another kind.

    The second answer is that bracket's place, or -1.
    """
    still_open: list[int] = []
    for match in _TOKEN.finditer(text, at, end):
        if match["open"]:
            still_open.append(match.start())
        elif match["close"]:
            if not still_open or (text[still_open[-1]] == "[") != (match["close"] == "]"):
                return still_open or [at], match.start()
            still_open.pop()
            if not still_open:
                break
    return still_open, -1


def separators(text: str, at: int, end: int) -> list[int]:
    """Return where the commas stand that separate the items of the brackets at ``at``."""
    depth = 0
    found: list[int] = []
    for match in _TOKEN.finditer(text, at, end):
        if match["open"]:
            depth += 1
        elif match["close"]:
            depth -= 1
        elif match["comma"] and depth == 1:
            found.append(match.start())
    return found
