"""Router expressions under a cursor: which word stands there, and what can be typed. Works on tokens, so half-typed text is fine.

All offsets are those of the expression's value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from agentloom.language.paths import Part
from agentloom.language.tokens import Token, tokenize
from agentloom.text import Span

Expects = Literal["value", "operator", "member", "key", "text", "nothing"]

_WORD = re.compile(r"\w*")
_CONSTANTS = ("True", "False", "None")


class Chain(NamedTuple):
    """A value reached by names and keys: ``state.user["name"]``. ``parts`` leads from the top of the state, as in occurrences.

    ``root`` is the name it begins with. ``known`` is false when a call stands in it, so that the parts say nothing about the value.
    """

    root: str
    parts: tuple[Part, ...]
    known: bool = True


class Typed(NamedTuple):
    """What is being typed at a cursor.

    ``span`` is the word to replace, ``word`` what of it stands before the cursor. ``member``: a name behind a dot of ``chain``;
    ``key``: a key of ``chain`` in brackets, ``quoted`` when its quotes are there; ``text``: inside a text that is compared with
    ``chain``, if it is known; ``value``: a value, which may be compared so, too.
    """

    expects: Expects
    span: Span
    word: str = ""
    chain: Chain | None = None
    quoted: bool = False


class Word(NamedTuple):
    """A word of an expression: ``role`` says what it is there."""

    role: Literal["function", "method", "name", "keyword"]
    text: str
    span: Span


def typed_at(value: str, offset: int) -> Typed:
    """Return what is being typed at an offset."""
    tokens, faults = tokenize(value[:offset])
    tokens.pop()  # the end
    nothing = Typed("nothing", Span(offset, offset))
    if faults and faults[-1].kind == "syntax":
        return _in_text(value, offset, tokens, faults[-1].span.start) or nothing
    last = tokens[-1].span.end if tokens else 0
    if "#" in value[last:offset].rpartition("\n")[2]:
        return nothing
    if tokens and tokens[-1].kind == "number" and last == offset:
        return nothing
    if tokens and tokens[-1].kind == "text" and last == offset:
        return nothing
    word, start = "", offset
    if tokens and last == offset and tokens[-1].kind in ("name", "keyword"):
        typing = tokens.pop()
        word, start = typing.text, typing.span.start
    end = _WORD.match(value, offset)
    span = Span(start, end.end() if end else offset)
    if not tokens:
        return Typed("value", span, word)
    before = tokens[-1]
    if before.kind == "operator" and before.text == ".":
        chain = chain_before(tokens[:-1])
        return Typed("member", span, word, chain) if _ends_value(tokens[:-1]) else nothing
    if before.kind == "operator" and before.text == "[" and _ends_value(tokens[:-1]):
        return Typed("key", span, word, chain_before(tokens[:-1]))
    if _ends_value(tokens):
        return Typed("operator", span, word)
    return Typed("value", span, word, _compared(tokens))


def word_at(value: str, offset: int) -> Word | None:
    """Return the name or keyword that an offset touches; of two the one that begins there."""
    tokens, _ = tokenize(value)
    found = [at for at, token in enumerate(tokens) if token.kind in ("name", "keyword") and token.span.contains(offset)]
    if not found:
        return None
    at = found[-1]
    token = tokens[at]
    before = tokens[at - 1].text if at else ""
    behind = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.kind == "keyword":
        if (token.text == "not" and behind == "in") or (token.text == "is" and behind == "not"):
            return Word("keyword", f"{token.text} {behind}", Span(token.span.start, tokens[at + 1].span.end))
        if (token.text == "in" and before == "not") or (token.text == "not" and before == "is"):
            return Word("keyword", f"{before} {token.text}", Span(tokens[at - 1].span.start, token.span.end))
        return Word("keyword", token.text, token.span)
    if before == ".":
        return Word("method", token.text, token.span) if behind == "(" else None
    return Word("function" if behind == "(" else "name", token.text, token.span)


def chain_before(tokens: Sequence[Token]) -> Chain | None:
    """Return the chain of names and keys that a list of tokens ends with."""
    parts: list[Part] = []
    known = True
    at = len(tokens) - 1
    while at >= 0:
        token = tokens[at]
        if token.kind == "name":
            if at and tokens[at - 1].text == "." and tokens[at - 1].kind == "operator":
                parts.append(token.text)
                at -= 2
                continue
            root: tuple[Part, ...] = ("steps",) if token.text == "steps" else ()
            return Chain(token.text, (*root, *reversed(parts)), known)
        if token.kind != "operator" or token.text not in ("]", ")"):
            return None
        opened = _opening(tokens, at)
        if opened is None or opened == 0:
            return None
        inside = tokens[opened + 1 : at]
        if token.text == "]":
            key = _literal(inside)
            if key is None:
                return None
            parts.append(key)
            at = opened - 1
            continue
        name = tokens[opened - 1]
        if name.kind != "name":
            return None
        if opened < 2 or tokens[opened - 2].text != ".":
            return Chain(name.text, (), False)  # a function's result
        if name.text == "get" and inside and inside[0].kind == "text":
            parts.append(str(inside[0].value))
        else:
            known = False
            parts.clear()
        at = opened - 3
    return None


def _in_text(value: str, offset: int, tokens: list[Token], start: int) -> Typed | None:
    """Return what is typed inside a text that begins at ``start`` and isn't closed before the cursor."""
    opening = re.compile(r"[rRuU]?(['\"])").match(value, start)
    if opening is None or value.startswith(opening[1] * 3, opening.end() - 1):
        return None
    inner = opening.end()
    closing = re.compile(rf"[^{opening[1]}\r\n]*").match(value, offset)
    span = Span(inner, closing.end() if closing else offset)
    word = value[inner:offset]
    if tokens and tokens[-1].text == "[" and _ends_value(tokens[:-1]):
        return Typed("key", span, word, chain_before(tokens[:-1]), True)
    if len(tokens) > 2 and tokens[-1].text == "(" and tokens[-2].text == "get" and tokens[-3].text == ".":
        return Typed("key", span, word, chain_before(tokens[:-3]), True)
    return Typed("text", span, word, _compared(tokens), True)


def _compared(tokens: list[Token]) -> Chain | None:
    """Return what a text is compared with that follows these tokens: `x ==`, `x in ['a',`."""
    at = len(tokens) - 1
    while at >= 0 and (tokens[at].kind == "text" or tokens[at].text == ","):
        at -= 1
    if at >= 1 and tokens[at].text in ("[", "(") and tokens[at - 1].text == "in":
        at -= 1
    elif at != len(tokens) - 1 or at < 0 or tokens[at].text not in ("==", "!="):
        return None
    if at and tokens[at].text == "in" and tokens[at - 1].text == "not":
        at -= 1
    return chain_before(tokens[:at])


def _ends_value(tokens: Sequence[Token]) -> bool:
    if not tokens:
        return False
    last = tokens[-1]
    if last.kind == "operator":
        return last.text in (")", "]", "}")
    return last.kind in ("name", "number", "text", "refused") or last.text in _CONSTANTS


def _opening(tokens: Sequence[Token], closing: int) -> int | None:
    depth = 0
    for at in range(closing, -1, -1):
        if tokens[at].kind == "operator":
            if tokens[at].text in (")", "]", "}"):
                depth += 1
            elif tokens[at].text in ("(", "[", "{"):
                depth -= 1
                if depth == 0:
                    return at
    return None


def _literal(tokens: Sequence[Token]) -> Part | None:
    """Return the key that stands between brackets: a text, or a whole number, negative ones too."""
    if len(tokens) == 2 and tokens[0].text == "-" and isinstance(tokens[1].value, int) and tokens[1].kind == "number":
        return -tokens[1].value
    if len(tokens) != 1:
        return None
    if tokens[0].kind == "text":
        return str(tokens[0].value)
    return tokens[0].value if tokens[0].kind == "number" and isinstance(tokens[0].value, int) else None
