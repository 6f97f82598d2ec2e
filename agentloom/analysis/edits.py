"""Edits that rules offer as fixes: small changes to YAML text that keep everything around them as it is.

All offsets are those of the unit's text that is passed in. A function returns no edits when it can't do the change safely
(flow style over several lines, merge keys, …); the finding then has no fix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as Sequence_
from typing import Protocol

from agentloom.diagnostics import Edit
from agentloom.model.catalogue import Field
from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence
from agentloom.syntax.quoting import quote, requote
from agentloom.syntax.scalars import text_span
from agentloom.text import Span, newline_of

Edits = tuple[Edit, ...]

_COMMA = re.compile(r"\s*,")


class _HasKeyAndValue(Protocol):
    @property
    def key(self) -> Scalar: ...
    @property
    def value(self) -> Node: ...


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
    text = re.sub(r"\s*\n\s*", " ", node.raw)
    return (Edit(node.span, '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'),)


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


def wrap_in_list(node: Scalar) -> Edits:
    """Make a lone value a list of one."""
    return (Edit(Span(node.span.start, node.span.start), "["), Edit(Span(node.span.end, node.span.end), "]"))


def legal_name(value: str, dotted: bool = False) -> str:
    """Return the nearest name that templates can read back; empty when nothing is left."""
    allowed = r"[^\w\-.\[\]]+" if dotted else r"[^\w\-]+"
    return re.sub(allowed, "_", value.strip()).strip("_.")


def skeleton(field: Field) -> str:
    """Return a value to start from for a field: the first choice, an example, or an empty value of the right type."""
    shape = field.shape
    if shape.enum:
        return next(iter(shape.enum))
    for example in field.examples:
        if isinstance(example, str):
            return quote(example)
        if isinstance(example, (int, float)) and not isinstance(example, bool):
            return str(example)
    kind = next((t for t in shape.types if t != "null"), "string")
    return {"string": '""', "integer": "1", "number": "1", "boolean": "false", "array": "[]", "object": "{}"}[kind]


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


def add_entry(text: str, node: Mapping, name: str, value: str, *after: str) -> Edits:
    """Add ``name: value`` to a mapping: in block style on a line of its own behind the last entry among ``after``, else `id`, `type`
    and `name`, else the first; inside the braces in flow style.
    """
    if node.flow:
        close = node.span.end - 1
        if text[close : close + 1] != "}" or close <= node.span.start:
            return ()
        if not node.entries:
            return (Edit(Span(node.span.start + 1, close), f"{name}: {value}"),)
        end = _end_of(node.entries[-1].value, node.entries[-1].key)
        if text[end - 1] == ":":  # an empty value: the comma may not touch the colon
            return (Edit(Span(end, end), f" , {name}: {value}"),)
        return (Edit(Span(end, end), f", {name}: {value}"),)
    if not node.entries:
        return ()
    column = column_of(text, node.entries[0].key.span.start)
    behind = next((named for named in ((*after,), ("id", "type", "name")) if _last(node, named)), ())
    anchor = _last(node, behind) or node.entries[0]
    end = line_end(text, max(_end_of(anchor.value, anchor.key), anchor.key.span.end))
    return (Edit(Span(end, end), f"{newline_of(text, end)}{' ' * column}{name}: {value}"),)


def _last(node: Mapping, names: tuple[str, ...]) -> Entry | None:
    """Return the last entry of one of these names behind which a line can be added."""
    for entry in reversed(node.entries):
        if isinstance(entry.key, Scalar) and entry.key.value in names and not _keeps_blank_lines(entry.value):
            return entry
    return None


def _keeps_blank_lines(node: Node) -> bool:
    """Tell whether the blank lines behind a value may belong to it (`|+`)."""
    while isinstance(node, (Mapping, Sequence)):
        if node.flow or not (node.entries if isinstance(node, Mapping) else node.items):
            return False
        node = node.entries[-1].value if isinstance(node, Mapping) else node.items[-1]
    return isinstance(node, Scalar) and node.style in ("literal", "folded") and "+" in node.raw[:3]


def _end_of(value: Node, key: Node) -> int:
    return max(value.span.end, key.span.end)


def remove_entry(text: str, node: Mapping, key: Node, value: Node) -> Edits:
    """Remove an entry with its value; the whole lines in block style, with its comma in flow style."""
    end = _end_of(value, key)
    if not node.flow:
        line_start = text.rfind("\n", 0, key.span.start) + 1
        before = text[line_start : key.span.start]
        if before.strip(" "):  # behind a dash: keep the dash for the next entry
            following = [e for e in node.entries if e.key.span.start > key.span.start]
            if not following or before.strip(" -"):
                return ()
            return (Edit(Span(key.span.start, following[0].key.span.start), ""),)
        return (Edit(Span(line_start, after_break(text, end)), ""),)
    spans = [(e.key.span.start, _end_of(e.value, e.key)) for e in node.entries]
    at = next((i for i, (start, _) in enumerate(spans) if start == key.span.start), None)
    if at is None:
        return ()
    if at + 1 < len(spans):
        return (Edit(Span(spans[at][0], spans[at + 1][0]), ""),)
    if at > 0:
        return (Edit(Span(spans[at - 1][1], end), ""),)
    return (Edit(Span(key.span.start, end), ""),)


def remove_item(text: str, node: Sequence, index: int) -> Edits:
    """Remove one item of a list: its lines in block style, itself and a comma in flow style. None for an anchored item."""
    item = node.items[index]
    if not isinstance(item, Alias) and (item.anchor is not None or item.tag is not None):
        return ()
    if node.flow:
        return _out_of_flow(text, [i.span for i in node.items], index, node.span.end - 1)
    line = line_start(text, item.span.start)
    if text[line : item.span.start].strip(" ") != "-":
        return ()
    if len(node.items) > 1:
        return (Edit(Span(line, after_break(text, item.span.end)), ""),)
    before = text[: node.span.start].rstrip(" \t\r\n")
    if before.endswith(":"):
        return (Edit(Span(len(before), item.span.end), " []"),)
    return (Edit(Span(node.span.start, item.span.end), "[]"),)


def _out_of_flow(text: str, parts: Sequence_[Span], at: int, close: int) -> Edits:
    """Take one of the ``parts`` of a collection in brackets out, with one comma; comments between parts stay."""
    part = parts[at]
    if at + 1 < len(parts):
        behind = text[part.end : parts[at + 1].start]
        if "#" not in behind:
            return (Edit(Span(part.start, parts[at + 1].start), ""),)
        comma = behind.find(",")
        if comma > behind.find("#"):
            return ()
        return (Edit(Span(part.start, part.end + comma + 1), ""),)
    if at > 0:
        before = text[parts[at - 1].end : part.start]
        if "#" not in before:
            return (Edit(Span(parts[at - 1].end, part.end), ""),)
        comma = before.find(",")
        if comma > before.find("#"):
            return ()
        start = parts[at - 1].end + comma
        return (Edit(Span(start, start + 1), ""), Edit(part, ""))
    trailing = _COMMA.match(text, part.end, close)
    return (Edit(Span(part.start, trailing.end() if trailing else part.end), ""),)


def add_item(text: str, fields: MappingABC[str, _HasKeyAndValue], owner: Mapping, name: str, value: str) -> Edits:
    """Add a text to the list at key ``name`` of a mapping, making the list when it isn't there."""
    found = fields.get(name)
    quoted = quote(value)
    if found is None:
        return add_entry(text, owner, name, f"[{quote(value, flow=True)}]")
    node = found.value
    if isinstance(node, Scalar):
        if not node.raw:
            return (Edit(node.span, f" [{quote(value, flow=True)}]"),)
        if node.style == "plain" and "\n" not in node.raw:
            return (
                Edit(Span(node.span.start, node.span.start), "["),
                Edit(Span(node.span.end, node.span.end), f", {quote(value, flow=True)}]"),
            )
        return ()
    if not isinstance(node, Sequence):
        return ()
    if node.flow:
        if not node.items:
            return (Edit(Span(node.span.start + 1, node.span.start + 1), quote(value, flow=True)),)
        end = node.items[-1].span.end
        return (Edit(Span(end, end), f", {quote(value, flow=True)}"),)
    last = node.items[-1]
    end = line_end(text, last.span.end)
    column = column_of(text, node.span.start)
    return (Edit(Span(end, end), f"{newline_of(text, end)}{' ' * column}- {quoted}"),)


def move_under(
    text: str,
    owner: Mapping,
    key: Scalar,
    value: Node,
    under: str,
    fields: MappingABC[str, _HasKeyAndValue],
) -> Edits | None:
    """Move a one-line entry under another key of the same mapping, making that key when it isn't there."""
    source = text[key.span.start : _end_of(value, key)]
    if "\n" in source:
        return None
    found = fields.get(under)
    if found is not None:
        if not isinstance(found.value, Mapping) or not found.value.entries:
            return None
        inner = found.value
        gone = remove_entry(text, owner, key, value)
        if inner.flow:
            end = _end_of(inner.entries[-1].value, inner.entries[-1].key)
            added: Edits = (Edit(Span(end, end), f", {source}"),)
        else:
            start = inner.entries[0].key.span.start
            column = column_of(text, start)
            added = (Edit(Span(start, start), f"{source}{newline_of(text, start)}{' ' * column}"),)
        return (*gone, *added) if gone else None
    if owner.flow:
        return (Edit(Span(key.span.start, _end_of(value, key)), f"{under}: {{{source}}}"),)
    column = column_of(text, key.span.start)
    newline = newline_of(text, key.span.start)
    return (Edit(Span(key.span.start, key.span.start), f"{under}:{newline}{' ' * (column + 2)}"),)
