"""Where edits go: lines, columns, and the extents of entries."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from typing import Protocol

from agentloom.diagnostics import Edit
from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence
from agentloom.text import Span

Edits = tuple[Edit, ...]
Fields = MappingABC[str, "HasKeyAndValue"]


class HasKeyAndValue(Protocol):
    """A field of a mapping, wherever it was found."""

    @property
    def key(self) -> Scalar: ...
    @property
    def value(self) -> Node: ...


def line_start(text: str, offset: int) -> int:
    """Return where the line of ``offset`` begins; lines end at LF, CRLF or CR."""
    start = text.rfind("\n", 0, offset) + 1
    return max(start, text.rfind("\r", start, offset) + 1)


def column_of(text: str, offset: int) -> int:
    """Return the 0-based column of ``offset``; a byte order mark takes none."""
    start = line_start(text, offset)
    return offset - start - (1 if text.startswith("\ufeff", start) else 0)


def line_end(text: str, offset: int) -> int:
    """Return the offset of the line break behind ``offset``, or of the text's end."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    earlier = text.find("\r", offset, end)
    return end if earlier < 0 else earlier


def after_break(text: str, offset: int) -> int:
    """Return the offset behind the line break that follows ``offset``, or of the text's end."""
    end = line_end(text, offset)
    return end + (2 if text.startswith("\r\n", end) else 1 if end < len(text) else 0)


def is_pair(text: str, node: Mapping) -> bool:
    """Tell whether a mapping is a lone `key: value` in a list in brackets, without braces of its own."""
    return node.flow and text[node.span.start : node.span.start + 1] != "{"


def span_of(entry: Entry) -> Span:
    """Return the range of an entry, from its key to the end of its value."""
    return Span(entry.key.span.start, end_of(entry.value, entry.key))


def end_of(value: Node, key: Node) -> int:
    """Return where an entry ends: an empty value may stand before the end of its key."""
    return max(value.span.end, key.span.end)


def first_of(node: Mapping) -> int:
    """Return where a mapping's first entry begins, the anchor or tag of its key included."""
    key = node.entries[0].key
    return key.anchor.start if not isinstance(key, Alias) and key.anchor is not None else key.span.start


def has_anchor(node: Node) -> bool:
    """Tell whether a node or one inside it has an anchor, which an alias elsewhere may need."""
    todo = [node]
    while todo:
        found = todo.pop()
        if isinstance(found, Alias):
            continue
        if found.anchor is not None:
            return True
        if isinstance(found, Mapping):
            todo.extend(part for entry in found.entries for part in (entry.key, entry.value))
        elif isinstance(found, Sequence):
            todo.extend(found.items)
    return False


def keeps_blank_lines(node: Node) -> bool:
    """Tell whether the blank lines behind a value may belong to it (`|+`)."""
    while isinstance(node, (Mapping, Sequence)):
        if node.flow or not (node.entries if isinstance(node, Mapping) else node.items):
            return False
        node = node.entries[-1].value if isinstance(node, Mapping) else node.items[-1]
    return isinstance(node, Scalar) and node.style in ("literal", "folded") and "+" in node.raw[:3]


def is_nothing(node: Scalar) -> bool:
    """Tell whether a value is an empty one without anchor and tag."""
    return not node.raw and node.anchor is None and node.tag is None
