"""Edits that take entries and items out."""

from __future__ import annotations

import re

from agentloom.analysis.edits.places import Edits, after_break, end_of, has_anchor, is_pair, line_start, span_of
from agentloom.diagnostics import Edit
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from agentloom.text import Span

_COMMA = r"\s*,"


def remove_entry(text: str, node: Mapping, key: Scalar, value: Node) -> Edits:
    """Remove an entry with its value: its lines in block style, itself and a comma in flow style."""
    at = next((at for at, entry in enumerate(node.entries) if entry.key is key), None)
    if at is None or key.anchor is not None or any(has_anchor(part) for part in (key, value)):
        return ()
    end = end_of(value, key)
    if is_pair(text, node):
        return ()
    if node.flow:
        left = span_of(node.entries[at - 1]) if at > 0 else None
        right = span_of(node.entries[at + 1]) if at + 1 < len(node.entries) else None
        return _out_of_flow(text, left, Span(key.span.start, end), right, node.span.end - 1)
    start = line_start(text, key.span.start)
    before = text[start : key.span.start].lstrip("\ufeff")
    if not before.strip(" "):
        if len(node.entries) == 1:
            return ()  # the owner's key would be left without a value
        return (Edit(Span(key.span.start if text.startswith("\ufeff", start) else start, after_break(text, end)), ""),)
    if at + 1 == len(node.entries) or before.strip(" -"):
        return ()  # behind a dash, and nothing else in the item
    following = node.entries[at + 1].key
    start = following.anchor.start if not isinstance(following, Alias) and following.anchor else following.span.start
    if "#" in text[end:start]:
        return ()  # a comment between the two
    return (Edit(Span(key.span.start, start), ""),)


def remove_item(text: str, node: Sequence, index: int) -> Edits:
    """Remove one item of a list: its lines in block style, itself and a comma in flow style. None for an anchored item."""
    item = node.items[index]
    if not isinstance(item, Alias) and (item.anchor is not None or item.tag is not None):
        return ()
    if node.flow:
        left = node.items[index - 1].span if index > 0 else None
        right = node.items[index + 1].span if index + 1 < len(node.items) else None
        return _out_of_flow(text, left, item.span, right, node.span.end - 1)
    line = line_start(text, item.span.start)
    if text[line : item.span.start].strip(" ") != "-":
        return ()
    if len(node.items) > 1:
        return (Edit(Span(line, after_break(text, item.span.end)), ""),)
    before = text[: node.span.start].rstrip(" \t\r\n")
    if before.endswith(":"):
        return (Edit(Span(len(before), item.span.end), " []"),)
    return (Edit(Span(node.span.start, item.span.end), "[]"),)


def _out_of_flow(text: str, before: Span | None, part: Span, after: Span | None, close: int) -> Edits:
    """Take a part of a collection in brackets out, with one comma; comments between it and its neighbours stay.

    ``before`` and ``after`` are those, ``close`` is where the closing bracket stands.
    """
    if after is not None:
        behind = text[part.end : after.start]
        if "#" not in behind:
            return (Edit(Span(part.start, after.start), ""),)
        comma = behind.find(",")
        if comma > behind.find("#"):
            return ()
        return (Edit(Span(part.start, part.end + comma + 1), ""),)
    if before is not None:
        between = text[before.end : part.start]
        if "#" not in between:
            return (Edit(Span(before.end, part.end), ""),)
        comma = between.find(",")
        if comma > between.find("#"):
            return ()
        start = before.end + comma
        return (Edit(Span(start, start + 1), ""), Edit(part, ""))
    trailing = re.compile(_COMMA).match(text, part.end, close)
    return (Edit(Span(part.start, trailing.end() if trailing else part.end), ""),)
