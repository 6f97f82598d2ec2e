"""How a text is spelled in YAML: plain where every reader takes it for that text, else in quotes."""

from __future__ import annotations

import re

from agentloom.syntax.nodes import Style

# Patterns are compiled where they are used: only fixes need them, and they take 2.5 ms.
_FIRST = "-?:,[]{}#&*!|>'\"%@`"
_UNSAFE_INSIDE = r": |:\Z| #|[\t\r\n\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
_UNSAFE_IN_FLOW = r"[,\[\]{}?:]"
_NOT_PRINTABLE = r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"

# Texts that YAML 1.1 or 1.2 readers take for something else.
_OTHER_MEANING = r"""(?ix)
    (?: y | n | yes | no | on | off | true | false | null | ~ | << | = | \.{3} | -{3}
    | [-+]? [0-9_]+ | [-+]? 0 (?: b[01_]+ | o[0-7_]+ | x[0-9a-f_]+ )
    | [-+]? (?: [0-9][0-9_]* )? \. [0-9._]* (?: e [-+]? [0-9]+ )? | [-+]? [0-9][0-9_]* e [-+]? [0-9]+
    | [-+]? [0-9][0-9_]* (?: : [0-9]+ )+ (?: \.[0-9_]* )?              # sexagesimal
    | [-+]? \. (?: inf | nan )
    | [0-9]{4} - [0-9]{1,2} - [0-9]{1,2} .*                          # dates and times
    )\Z"""

_ESCAPES = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}
_TO_ESCAPE = r"[\x00-\x1f\"\\\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"


def is_plain(text: str, flow: bool = False) -> bool:
    """Tell whether a text may stand without quotes: every YAML 1.1 and 1.2 reader then takes it for this text."""
    return not (
        not text
        or text[0] in _FIRST
        or text != text.strip(" ")
        or re.search(_UNSAFE_INSIDE, text)
        or (flow and re.search(_UNSAFE_IN_FLOW, text))
        or re.match(_OTHER_MEANING, text)
    )


def quote(text: str, flow: bool = False) -> str:
    """Return the shortest spelling that reads as exactly ``text``; ``flow`` for places inside `[]` or `{}`.

    Plain where that is safe, else in single quotes, else in double quotes with escapes. Always on one line.
    """
    if is_plain(text, flow):
        return text
    return single(text) if re.search(_NOT_PRINTABLE, text) is None and "\t" not in text else double(text)


def requote(raw: str, style: Style, new_value: str, flow: bool = False) -> str:
    """Return the spelling of a new value that keeps the quotes of the old source ``raw`` where they can hold it."""
    if style == "double" or (style in ("literal", "folded") and re.search(_NOT_PRINTABLE, new_value)):
        return double(new_value)
    if style == "single" and re.search(_NOT_PRINTABLE, new_value) is None:
        return single(new_value)
    return quote(new_value, flow)


def single(text: str) -> str:
    """Return ``text`` in single quotes; only for texts on one line without control characters."""
    return "'" + text.replace("'", "''") + "'"


def double(text: str) -> str:
    """Return ``text`` in double quotes, with escapes; fit for every text without lone surrogates."""
    return '"' + re.sub(_TO_ESCAPE, _escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    return _ESCAPES.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
