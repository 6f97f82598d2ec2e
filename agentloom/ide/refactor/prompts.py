"""Long texts: from quotes to a block text (`|`), and back, with the value unchanged."""

from __future__ import annotations

import re

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.edits.places import column_of, line_end
from agentloom.diagnostics import Edit
from agentloom.ide.hits import Hit
from agentloom.model.catalogue import Shape
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.quoting import double, quote
from agentloom.text import Span, newline_of

_UNFIT = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]|[ \t](?=\n|\Z)"
TEXTS = ("template", "text")
"""Marks of fields that hold prose."""


def to_block(document: WorkflowDocument, hit: Hit) -> tuple[str, tuple[Edit, ...]] | None:
    """Return the field's name and the edits that write its text as a block; None where that isn't possible, or is so already."""
    found = _text_of(hit)
    if found is None:
        return None
    name, node = found
    value, text = node.value, document.source.text
    if node.style in ("literal", "folded") or not value.strip() or re.search(_UNFIT, value):
        return None
    span = node.span.shift(hit.base)
    key = hit.entry.key.span.shift(hit.base) if hit.entry is not None else span
    break_ = newline_of(text, span.start)
    column = column_of(text, key.start) + 2
    body = value.rstrip("\n")
    ends = len(value) - len(body)
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    indicator = "2" if body[0] in " \n" else ""
    rest = text[span.end : line_end(text, span.end)]
    if text[key.end : span.start].strip() != ":" or (rest.strip() and not rest.strip().startswith("#")):
        return None
    lines = [" " * column + line if line else "" for line in body.split("\n")] + [""] * max(0, ends - 1)
    at = line_end(text, span.end)
    written = "".join(break_ + line for line in lines)
    return name, (Edit(Span(key.end, span.end), f": |{indicator}{chomping}"), Edit(Span(at, at), written))


def to_quotes(document: WorkflowDocument, hit: Hit) -> tuple[str, tuple[Edit, ...]] | None:
    """Return the field's name and the edits that write its block text on one line; None where it isn't one."""
    found = _text_of(hit)
    if found is None:
        return None
    name, node = found
    if node.style not in ("literal", "folded"):
        return None
    header = re.compile(r"[|>][-+0-9]*").match(node.raw)
    if header is None:
        return None
    first = re.compile(r"\r\n|\r|\n").search(node.raw)
    written = quote(node.value) if "\n" not in node.value else double(node.value)
    start, end = node.span.shift(hit.base)
    if first is None:
        return name, (Edit(Span(start, end), written),)
    body = start + first.start()
    if "+" in header.group():  # the blank lines behind it are part of it
        text = document.source.text
        while (blank := re.compile(r"(?:\r\n|\r|\n)[ \t]*(?=\r|\n)").match(text, end)) is not None:
            end = blank.end()
    return name, (Edit(Span(start, start + header.end()), written), Edit(Span(body, end), ""))


def _text_of(hit: Hit) -> tuple[str, Scalar] | None:
    """Return the field at a place and its text, if it holds prose and nothing shares it."""
    entry, field = hit.entry, hit.field
    if entry is None or field is None or not isinstance(entry.value, Scalar) or not isinstance(entry.key, Scalar):
        return None
    node = entry.value
    owner = next((n for n in reversed(hit.chain) if isinstance(n, MappingNode)), None)
    if owner is None or owner.flow or node.anchor is not None or node.tag is not None or entry.key.anchor is not None:
        return None
    return (entry.key.value, node) if _holds_prose(field.shape) else None


def _holds_prose(shape: Shape) -> bool:
    return any(mark.kind in TEXTS for mark in shape.marks)
