"""Tokens of templates: braces, the path of the state in them, and how the value is written."""

from __future__ import annotations

from collections.abc import Sequence

from agentloom.ide.colour.tokens import Pen, TokenKind
from agentloom.language.paths import Part
from agentloom.language.template import Placeholder, Template
from agentloom.syntax.nodes import Scalar
from agentloom.text import Span

_STEPS = "steps"


def put_template(pen: Pen, node: Scalar, template: Template) -> None:
    """Put down the tokens of a template, placeholders that are still being typed included."""
    for placeholder in (*template.placeholders, *template.open):
        put_placeholder(pen, node, placeholder)


def put_placeholder(pen: Pen, node: Scalar, placeholder: Placeholder) -> None:
    """Put down the tokens of one placeholder."""
    span, name = placeholder.span, placeholder.name_span
    if not placeholder.bare:
        pen.put(node, span.start, span.start + 1, "brace")
    if placeholder.root == "state":
        pen.put(node, name.start, name.start + len("state"), "root")
    put_path(pen, node, placeholder.parts, placeholder.spans)
    if placeholder.closed and not placeholder.bare:
        at = name.end
        if placeholder.conversion is not None:
            pen.put(node, at, at + 2, "format")
            at += 2
        if placeholder.spec:
            pen.put(node, at + 1, span.end - 1, "format")
        pen.put(node, span.end - 1, span.end, "brace")


def put_path(pen: Pen, node: Scalar, parts: Sequence[Part], spans: Sequence[Span], first: TokenKind = "state") -> None:
    """Put down the parts of a path from the top of the state; that of a step's result begins with ``steps``."""
    for number, (part, (start, end)) in enumerate(zip(parts, spans, strict=True)):
        kind: TokenKind = "property"
        if isinstance(part, int):
            kind = "number"
        elif number == 0:
            kind = "root" if part == _STEPS and first == "state" else first
        elif number == 1 and parts[0] == _STEPS:
            kind = "step"
        pen.put(node, start, end, kind)
