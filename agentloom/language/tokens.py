"""Router expressions to tokens: Python's names, numbers, texts and operators, with offsets in code points."""

from __future__ import annotations

import keyword
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from agentloom.language.faults import Fault
from agentloom.text import Span

TokenKind = Literal["name", "keyword", "number", "text", "operator", "refused", "end"]

KEYWORDS: Final = frozenset(keyword.kwlist)
MAX_DIGITS: Final = 1000
"""The longest number that may be written or read from a text, in characters."""


_NOWHERE = Span(0, 0)


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Token:
    """One token. ``value`` is the number or text it stands for; ``inner`` a text's span without prefix and quotes."""

    kind: TokenKind
    text: str
    span: Span
    value: str | int | float = 0
    inner: Span = _NOWHERE


_DIGITS = r"[0-9](?:_?[0-9])*"
_SCAN = re.compile(
    rf"""
      (?P<space>(?:[ \t\f\r\n]|\\\r?\n|\#[^\r\n]*)+)
    | (?P<prefix>(?:[rRuUbBfF]|[bB][rR]|[rR][bB]|[fF][rR]|[rR][fF])?)(?P<quote>'''|\"\"\"|'|\")
    | (?P<name>[^\x00-\x40\x5b-\x5e\x60\x7b-\x7f][^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]*)
    | (?P<number>0[xX](?:_?[0-9a-fA-F])+ | 0[bB](?:_?[01])+ | 0[oO](?:_?[0-7])+
        | (?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?
        | {_DIGITS}(?:[eE][-+]?{_DIGITS})?)(?P<tail>[^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]*)
    | (?P<operator>\.\.\.|\*\*|//|<<|>>|[=!]==|[=!<>:]=|<>|->|&&|\|\||[-+*/%@&|^~<>()\[\]{{}},:.=;!?$`\\])
    """,
    re.VERBOSE,
)
_BODY_END = {
    quote: re.compile(rf"(?:[^\\{quote[0]}{end}]|\\(?:\r\n|.){more})*{quote}", re.DOTALL)
    for quote, end, more in (
        ("'", r"\r\n", ""),
        ('"', r"\r\n", ""),
        ("'''", "", r"|'(?!'')"),
        ('"""', "", r'|"(?!"")'),
    )
}
_LINE_END = re.compile(r"[\r\n]|\Z")
_ESCAPE = re.compile(r"\\(\r\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^{}]*\}|.)", re.DOTALL)
_PLAIN_ESCAPES = {
    "\n": "", "\r": "", "\r\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f",
    "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


def tokenize(value: str) -> tuple[list[Token], list[Fault]]:
    """Return the tokens of an expression, the last of kind ``end``, and the faults. Reading stops at a syntax fault."""
    tokens: list[Token] = []
    faults: list[Fault] = []
    at, end = 0, len(value)
    while at < end:
        found = _SCAN.match(value, at)
        if found is None:
            faults.append(_syntax(at, at + 1, f"{_shown(value[at])} can't stand in a condition"))
            break
        stop = found.end()
        kind = found.lastgroup
        if kind == "space":
            at = stop
            continue
        if kind == "name":
            word = found.group()
            if not word.isascii() and not word.isidentifier():
                faults.append(_syntax(at, stop, f"`{word}` is no name; write `state['{word}']` for a key of the state"))
                break
            tokens.append(Token("keyword" if word in KEYWORDS else "name", word, Span(at, stop)))
        elif kind == "quote":
            body = _BODY_END[found["quote"]].match(value, stop)
            if body is None:
                line_end = _LINE_END.search(value, stop)
                stop = line_end.start() if line_end and len(found["quote"]) == 1 else end
                faults.append(_syntax(at, stop, f"the text is never closed; add `{found['quote']}` behind it"))
                break
            inner = Span(stop, body.end() - len(found["quote"]))
            stop = body.end()
            token, fault = _read_text(value, Span(at, stop), inner, found["prefix"].lower())
            tokens.append(token)
            if fault is not None:
                faults.append(fault)
                if fault.kind == "syntax":
                    break
        elif kind == "operator":
            tokens.append(Token("operator", found.group(), Span(at, stop)))
        else:
            token, fault = _read_number(found["number"], found["tail"], Span(at, stop))
            tokens.append(token)
            if fault is not None:
                faults.append(fault)
                if fault.kind == "syntax":
                    break
        at = stop
    last = tokens[-1].span.end if tokens else 0
    tokens.append(Token("end", "", Span(last, last)))
    return tokens, faults


def _read_text(value: str, span: Span, inner: Span, prefix: str) -> tuple[Token, Fault | None]:
    body = value[inner.start : inner.end]
    if "f" in prefix:
        return Token("refused", "", span), Fault("forbidden", span, "f-strings are not allowed in a condition")
    if "b" in prefix:
        return Token("refused", "", span), Fault(
            "forbidden", span, "bytes are not allowed in a condition; drop the `b`"
        )
    body = body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body
    if "r" in prefix or "\\" not in body:
        return Token("text", value[span.start : span.end], span, body, inner), None
    fault: Fault | None = None

    def undo(found: re.Match[str]) -> str:
        nonlocal fault
        escape = found[1]
        plain = _PLAIN_ESCAPES.get(escape)
        if plain is not None:
            return plain
        try:
            if escape[0] in "01234567":
                return chr(int(escape, 8))
            if escape[0] in "xuU" and len(escape) > 1:
                return chr(int(escape[1:], 16))
            if escape[0] == "N" and len(escape) > 1:
                return unicodedata.lookup(escape[2:-1])
        except (KeyError, ValueError, OverflowError):
            escape = escape[0]
        if escape[0] in "xuUN":
            fault = _syntax(
                span.start, span.end, f"`\\{escape}` in the text is no complete escape; write `\\\\{escape}`"
            )
        return found[0]

    text = _ESCAPE.sub(undo, body)
    return Token("text", value[span.start : span.end], span, text, inner), fault


def _read_number(digits: str, tail: str, span: Span) -> tuple[Token, Fault | None]:
    if tail in ("j", "J"):
        return Token("refused", "", span), Fault("forbidden", span, "complex numbers are not allowed in a condition")
    written = digits + tail
    if tail:
        return Token("refused", "", span), _syntax(*span, f"{_shown(written)} is no number")
    if len(digits) > MAX_DIGITS:
        return Token("refused", "", span), _syntax(*span, f"the number is longer than {MAX_DIGITS} characters")
    number: int | float
    if digits[:2].lower() in ("0x", "0b", "0o"):
        number = int(digits, 0)
    elif digits.replace("_", "").isdigit():
        if digits[0] == "0" and digits.strip("0_"):
            return Token("refused", "", span), _syntax(*span, f"`{digits}` begins with a zero; write `{int(digits)}`")
        number = int(digits)
    else:
        number = float(digits)
    return Token("number", written, span, number), None


def _syntax(start: int, end: int, message: str) -> Fault:
    return Fault("syntax", Span(start, end), message)


def _shown(text: str) -> str:
    if len(text) == 1 and (not text.isprintable() or text.isspace()):
        return f"the character U+{ord(text):04X}"
    return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}…`"
