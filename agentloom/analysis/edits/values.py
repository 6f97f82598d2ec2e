"""Edits of values: other spellings, quotes, wrapped in a list or a mapping, and values to begin with."""

from __future__ import annotations

import re

from agentloom.analysis.edits.places import Edits
from agentloom.diagnostics import Edit
from agentloom.model.catalogue import Field
from agentloom.syntax.nodes import Node, Scalar
from agentloom.syntax.quoting import double, is_plain, quote, requote
from agentloom.syntax.scalars import text_span
from agentloom.text import Span


def replace_value(node: Scalar, value: str) -> Edits:
    """Replace a scalar's value, keeping its kind of quotes where that is possible."""
    return (Edit(node.span, requote(node.raw, node.style, value, flow=True)),)


def rename_key(node: Scalar, name: str) -> Edits:
    """Replace a key's text."""
    return (Edit(node.span, requote(node.raw, node.style, name)),)


def set_source(node: Node, source: str) -> Edits:
    """Replace a node's source text."""
    return (Edit(node.span, source),)


def quote_source(node: Scalar) -> Edits:
    """Put quotes around a plain scalar's source text: `1.10` becomes `"1.10"`, never `"1.1"`."""
    if "\n" in node.raw or "\r" in node.raw:
        return (Edit(node.span, double(node.value)),)
    return (Edit(node.span, '"' + node.raw.replace("\\", "\\\\").replace('"', '\\"') + '"'),)


def set_span(span: Span, source: str) -> Edits:
    """Replace a span of source text."""
    return (Edit(span, source),)


def quoted(value: str, flow: bool) -> str:
    """Return a text as YAML source, in quotes only where it needs them."""
    return quote(value, flow=flow)


def replace_inside(node: Scalar, start: int, end: int, text: str) -> Edits:
    """Replace part of a scalar's value, keeping its style where that is possible.

    In block and plain style only that part's source changes; in quotes the new text is escaped as the quotes need.
    """
    span = text_span(node, start, end)
    source = node.raw[span.start - node.span.start : span.end - node.span.start]
    if source == node.value[start:end]:
        plain_safe = node.style in ("literal", "folded") and "\n" not in text
        if (
            plain_safe
            or (node.style == "double" and not set(text) & set('"\\\n'))
            or (node.style == "single" and "'" not in text)
        ):
            return (Edit(span, text),)
        if (
            node.style == "plain"
            and requote(node.raw, "plain", node.value[:start] + text + node.value[end:]).find(text) >= 0
        ):
            return replace_value(node, node.value[:start] + text + node.value[end:])
    if node.style in ("literal", "folded"):
        return ()
    return replace_value(node, node.value[:start] + text + node.value[end:])


def wrap_in_list(node: Node) -> Edits:
    """Make a lone value a list of one; a text with commas in it becomes a list of its parts."""
    start, end = node.span
    if isinstance(node, Scalar) and node.style == "plain":
        parts = [part.strip() for part in node.value.split(",")]
        if (
            "\n" in node.raw
            or "\r" in node.raw
            or not all(is_plain(part, flow=True) for part in parts if len(parts) > 1)
        ):
            return (Edit(node.span, f"[{double(node.value)}]"),)
        if len(parts) == 1 and quote(node.value) == node.value and quote(node.value, flow=True) != node.value:
            return (Edit(node.span, f"[{quote(node.value, flow=True)}]"),)
    return (Edit(Span(start, start), "["), Edit(Span(end, end), "]"))


def wrap_in_mapping(node: Scalar, key: str) -> Edits:
    """Make a lone text the value of a key in a mapping of one."""
    source = quote(node.value, flow=True) if node.style == "plain" and set(node.raw) & set(",[]{}?:\n\r") else node.raw
    return (Edit(node.span, f"{{{key}: {source}}}"),)


def legal_name(value: str, dotted: bool = False) -> str:
    """Return the nearest name that templates can read back and YAML takes for a text; empty when nothing is left."""
    allowed = r"[^\w\-.\[\]]+" if dotted else r"[^\w\-]+"
    name = re.sub(allowed, "_", value.strip()).strip("_.")
    if dotted:
        if name.startswith("["):
            return ""
        name = re.sub(r"\[(?!-?[0-9]{1,18}\])|(?<![0-9])\]", "_", re.sub(r"\.{2,}", ".", name)).strip("_.")
    return name if is_plain(name) or not name else f"{'key' if dotted else 'step'}_{name}"


def skeleton(field: Field) -> str | None:
    """Return the source of a value to start from: an example, else the first choice. None where nothing sensible is known."""
    shape = field.shape
    for example in field.examples:
        if isinstance(example, str):
            return quote(example, flow=True)
        if isinstance(example, (int, float)) and not isinstance(example, bool):
            return str(example)
    return next(iter(shape.enum)) if shape.enum else None
