"""Tokens: a stretch of the text and what it means."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from agentloom.syntax.nodes import Scalar
from agentloom.syntax.scalars import text_span
from agentloom.text import Span

TokenKind = Literal[
    "brace",  # of a template
    "root",  # `state`, `steps`, `reply`
    "state",  # a state key that is read
    "state_write",
    "state_definition",
    "property",  # what lies below a state key or a result
    "number",
    "text",  # a text in an expression
    "format",  # `!r` and `.2f` of a template
    "keyword",
    "operator",
    "function",
    "method",
    "step",
    "step_definition",
    "step_type",
    "agent",
    "agent_definition",
    "tool",
    "model",
    "provider",
    "parameter",  # the name of a tool's argument
    "regex",
]

_LINE = re.compile(r"[^\r\n]+")


class Token(NamedTuple):
    """One stretch, within one line."""

    start: int
    end: int
    kind: TokenKind


class Pen:
    """Puts down tokens of scalars, given in offsets of their values; ``text`` is that of their unit."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []

    def put(self, node: Scalar, start: int, end: int, kind: TokenKind) -> None:
        """Add the characters ``[start, end)`` of a value; one token for each line that they are written on."""
        if end <= start:
            return
        first, last = text_span(node, start, end)
        if last <= first:
            return  # a character that reading put in
        stretch = self.text[first:last]
        if "\n" not in stretch and "\r" not in stretch:
            self.tokens.append(Token(first, last, kind))
            return
        for line in _LINE.finditer(self.text, first, last):
            begin, stop = line.span()
            written = self.text[begin:stop]
            if node.style == "double" and stop < last:
                written = written.removesuffix("\\")  # goes on in the next line
            begin += len(written) - len(written.lstrip(" \t"))
            stop = begin + len(written.strip(" \t"))
            if stop > begin:
                self.tokens.append(Token(begin, stop, kind))

    def whole(self, node: Scalar, kind: TokenKind) -> None:
        """Add a scalar's text, without its quotes."""
        self.put(node, 0, len(node.value), kind)

    def at(self, span: Span, kind: TokenKind) -> None:
        """Add a span of the text."""
        if span.end > span.start:
            self.tokens.append(Token(span.start, span.end, kind))


def in_order(tokens: list[Token]) -> tuple[Token, ...]:
    """Return tokens by place, without those that overlap one before them."""
    kept: list[Token] = []
    end = -1
    for token in sorted(tokens):
        if token.start >= end:
            kept.append(token)
            end = token.end
    return tuple(kept)
