"""Lists of plain items: from brackets to a line for each, and back."""

from __future__ import annotations

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.edits.places import column_of, line_end
from agentloom.diagnostics import Edit
from agentloom.ide.hits import Hit
from agentloom.syntax.nodes import Entry, Scalar, Sequence
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.quoting import is_plain
from agentloom.text import Span, newline_of


def turned(document: WorkflowDocument, hit: Hit) -> tuple[str, tuple[Edit, ...]] | None:
    """Return what it is called and the edits that write the innermost list at a place the other way; None where that can't be done.

    Items stay as they are written. A list with a comment, an anchor or anything but plain items inside stays what it is.
    """
    found = _list_of(hit)
    if found is None:
        return None
    entry, node, owner = found
    text = document.source.text
    key = entry.key.span.shift(hit.base)
    span = node.span.shift(hit.base)
    items = [item for item in node.items if isinstance(item, Scalar) and item.anchor is None and item.tag is None]
    inside = text[span.start : span.end]
    if (
        len(items) != len(node.items)
        or not items
        or "#" in inside
        or any("\n" in i.raw or "\r" in i.raw for i in items)
    ):
        return None
    between = text[key.end : span.start]
    if between.strip() != ":" or owner.flow:
        return None
    name = entry.key.value if isinstance(entry.key, Scalar) else ""
    if node.flow:
        if any(not item.raw for item in items):
            return None
        title = f"Write `{name}` with a line for each item"
        # Dashes two columns further in, as most write them.
        pad = newline_of(text, span.start) + " " * (column_of(text, key.start) + 2)
        lines = "".join(f"{pad}- {item.raw}" for item in items)
        colon = key.end + between.index(":") + 1
        behind = text[span.end : line_end(text, span.end)]
        if behind.strip() and not behind.strip().startswith("#"):
            return None
        if behind.strip():  # the comment stays on the key's line
            end = line_end(text, span.end)
            return title, (Edit(Span(colon, span.end), ""), Edit(Span(end, end), lines))
        return title, (Edit(Span(colon, span.end), lines),)
    if any(item.style == "plain" and not is_plain(item.value, flow=True) and "," in item.raw for item in items):
        return None
    if any(
        (item.style == "plain" and set(item.raw) & set(",[]{}")) or item.style in ("literal", "folded")
        for item in items
    ):
        return None
    colon = key.end + between.index(":") + 1
    return f"Write `{name}` in brackets", (Edit(Span(colon, span.end), f" [{', '.join(item.raw for item in items)}]"),)


def _list_of(hit: Hit) -> tuple[Entry, Sequence, MappingNode] | None:
    """Return the entry around a place whose value is a list, the list, and the mapping that the entry stands in."""
    for owner, inner in zip(reversed(hit.chain[:-1]), reversed(hit.chain[1:]), strict=True):
        if isinstance(owner, MappingNode):
            entry = next((e for e in owner.entries if e.value is inner or e.key is inner), None)
            if entry is not None and isinstance(entry.value, Sequence) and entry.value.anchor is None:
                return entry, entry.value, owner
            if entry is not None and not isinstance(entry.value, Sequence):
                return None
    return None
