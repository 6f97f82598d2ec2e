"""Where quoted text and brackets end, found without the parser."""

from __future__ import annotations

import re

from agentloom.syntax.backend import Failure

_DOUBLE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SINGLE = re.compile(r"'[^']*(?:''[^']*)*'(?!')")
_TOKEN = re.compile(
    r"""(?P<quoted>(?<=[\s\[\]{},:])(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*(?:''[^']*)*'))|(?P<open>[\[{])|(?P<close>[\]}])|[ \t\r\n]\#[^\r\n]*""",
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
