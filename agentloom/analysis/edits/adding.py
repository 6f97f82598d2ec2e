"""Edits that add entries and items, and move them."""

from __future__ import annotations

from agentloom.analysis.edits.places import (
    Edits,
    Fields,
    column_of,
    end_of,
    first_of,
    has_anchor,
    is_nothing,
    is_pair,
    keeps_blank_lines,
    line_end,
)
from agentloom.analysis.edits.removal import remove_entry
from agentloom.diagnostics import Edit
from agentloom.syntax.nodes import Entry, Mapping, Node, Scalar, Sequence
from agentloom.syntax.quoting import quote
from agentloom.text import Span, newline_of


def add_steps(text: str, node: Mapping) -> Edits:
    """Add `steps` with one step to begin with, as the last entry of a workflow's mapping."""
    if node.flow or not node.entries:
        return add_entry(text, node, "steps", "[{id: step_1, type: llm_call, prompt: Say hello.}]")
    last = node.entries[-1]
    if keeps_blank_lines(last.value):
        return ()
    end = line_end(text, max(end_of(last.value, last.key), last.key.span.end))
    break_ = newline_of(text, end)
    pad = " " * column_of(text, node.entries[0].key.span.start)
    lines = ("steps:", "  - id: step_1", "    type: llm_call", "    prompt: Say hello.")
    return (Edit(Span(end, end), "".join(f"{break_}{pad}{line}" for line in lines)),)


def add_entry(text: str, node: Mapping, name: str, value: str, *after: str) -> Edits:
    """Add ``name: value`` to a mapping, on a line of its own in block style, inside the braces in flow style.

    It goes behind the last entry among ``after``, else behind `id`, `type` and `name`, else behind the first.
    """
    if node.flow:
        if is_pair(text, node):
            return (
                Edit(Span(node.span.start, node.span.start), "{"),
                Edit(Span(node.span.end, node.span.end), f", {name}: {value}}}"),
            )
        close = node.span.end - 1
        if text[close : close + 1] != "}" or close <= node.span.start:
            return ()
        if not node.entries:
            return (Edit(Span(node.span.start + 1, close), f"{name}: {value}"),)
        end = end_of(node.entries[-1].value, node.entries[-1].key)
        if text[end - 1] == ":":  # an empty value: the comma may not touch the colon
            return (Edit(Span(end, end), f" , {name}: {value}"),)
        return (Edit(Span(end, end), f", {name}: {value}"),)
    if not node.entries:
        return ()
    column = column_of(text, node.entries[0].key.span.start)
    behind = next((named for named in ((*after,), ("id", "type", "name")) if _last(node, named)), ())
    anchor = _last(node, behind) or node.entries[0]
    end = line_end(text, max(end_of(anchor.value, anchor.key), anchor.key.span.end))
    return (Edit(Span(end, end), f"{newline_of(text, end)}{' ' * column}{name}: {value}"),)


def add_first_entry(text: str, node: Mapping, name: str, value: str) -> Edits:
    """Add ``name: value`` before a mapping's first entry."""
    if not node.entries:
        return add_entry(text, node, name, value)
    start = first_of(node)
    if is_pair(text, node):
        return (Edit(Span(start, start), f"{{{name}: {value}, "), Edit(Span(node.span.end, node.span.end), "}"))
    if node.flow:
        return (Edit(Span(start, start), f"{name}: {value}, "),)
    return (Edit(Span(start, start), f"{name}: {value}{newline_of(text, start)}{' ' * column_of(text, start)}"),)


def _last(node: Mapping, names: tuple[str, ...]) -> Entry | None:
    """Return the last entry of one of these names behind which a line can be added."""
    for entry in reversed(node.entries):
        if isinstance(entry.key, Scalar) and entry.key.value in names and not keeps_blank_lines(entry.value):
            return entry
    return None


def add_item(text: str, fields: Fields, owner: Mapping, name: str, value: str) -> Edits:
    """Add a text to the list at key ``name`` of a mapping, making the list when it isn't there."""
    found = fields.get(name)
    item = quote(value, flow=True)
    if found is None:
        return add_entry(text, owner, name, f"[{item}]")
    node = found.value
    if isinstance(node, Scalar):
        if is_nothing(node):
            return (Edit(Span(found.key.span.end, node.span.end), f": [{item}]"),)
        return ()  # a fault of its own, with its own cure
    if not isinstance(node, Sequence):
        return ()
    if node.flow:
        if not node.items:
            return (Edit(Span(node.span.start + 1, node.span.start + 1), item),)
        end = node.items[-1].span.end
        return (Edit(Span(end, end), f", {item}"),)
    last = node.items[-1]
    if keeps_blank_lines(last):
        return ()
    end = line_end(text, last.span.end)
    column = column_of(text, node.span.start)
    return (Edit(Span(end, end), f"{newline_of(text, end)}{' ' * column}- {quote(value)}"),)


def move_under(text: str, owner: Mapping, key: Scalar, value: Node, under: str, fields: Fields) -> Edits:
    """Move a one-line entry under another key of the same mapping, making that key when it isn't there."""
    end = end_of(value, key)
    source = text[key.span.start : end]
    if "\n" in source or "\r" in source or has_anchor(key) or has_anchor(value):
        return ()
    found = fields.get(under)
    if found is None:
        if is_pair(text, owner):
            return ()
        if owner.flow:
            return (Edit(Span(key.span.start, end), f"{under}: {{{source}}}"),)
        break_ = newline_of(text, key.span.start)
        pad = " " * (column_of(text, key.span.start) + 2)
        return (Edit(Span(key.span.start, key.span.start), f"{under}:{break_}{pad}"),)
    inner = found.value
    gone = remove_entry(text, owner, key, value)
    if not isinstance(inner, Mapping) or not inner.entries or not gone:
        return ()
    if any(isinstance(entry.key, Scalar) and entry.key.value == key.value for entry in inner.entries):
        return ()  # it is there already
    if inner.flow:
        last = end_of(inner.entries[-1].value, inner.entries[-1].key)
        behind = text[end : line_end(text, end)]
        if not owner.flow and "#" in behind:  # the comment stays, on a line of its own
            gone = (Edit(Span(key.span.start, end + behind.index("#")), ""),)
        return (*gone, Edit(Span(last, last), f", {source}"))
    if not owner.flow:
        source = text[key.span.start : line_end(text, end)].rstrip()  # a comment comes along
    start = inner.entries[0].key.span.start
    if inner.entries[0].key.span.start != first_of(inner):
        return ()
    pad = " " * column_of(text, start)
    return (*gone, Edit(Span(start, start), f"{source}{newline_of(text, start)}{pad}"))
