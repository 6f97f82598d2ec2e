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
from agentloom.syntax.quoting import double, is_plain, quote, requote
from agentloom.syntax.scalars import text_span
from agentloom.text import Span, newline_of

Edits = tuple[Edit, ...]
Fields = MappingABC[str, "HasKeyAndValue"]

_COMMA = r"\s*,"


class HasKeyAndValue(Protocol):
    """A field of a mapping, wherever it was found."""

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


def add_steps(text: str, node: Mapping) -> Edits:
    """Add `steps` with one step to begin with, as the last entry of a workflow's mapping."""
    if node.flow or not node.entries:
        return add_entry(text, node, "steps", "[{id: step_1, type: llm_call, prompt: Say hello.}]")
    last = node.entries[-1]
    if _keeps_blank_lines(last.value):
        return ()
    end = line_end(text, max(_end_of(last.value, last.key), last.key.span.end))
    break_ = newline_of(text, end)
    pad = " " * column_of(text, node.entries[0].key.span.start)
    lines = ("steps:", "  - id: step_1", "    type: llm_call", "    prompt: Say hello.")
    return (Edit(Span(end, end), "".join(f"{break_}{pad}{line}" for line in lines)),)


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
    """Add ``name: value`` to a mapping, on a line of its own in block style, inside the braces in flow style.

    It goes behind the last entry among ``after``, else behind `id`, `type` and `name`, else behind the first.
    """
    if node.flow:
        if _is_pair(text, node):
            return (
                Edit(Span(node.span.start, node.span.start), "{"),
                Edit(Span(node.span.end, node.span.end), f", {name}: {value}}}"),
            )
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


def add_first_entry(text: str, node: Mapping, name: str, value: str) -> Edits:
    """Add ``name: value`` before a mapping's first entry."""
    if not node.entries:
        return add_entry(text, node, name, value)
    start = _first_of(node)
    if _is_pair(text, node):
        return (Edit(Span(start, start), f"{{{name}: {value}, "), Edit(Span(node.span.end, node.span.end), "}"))
    if node.flow:
        return (Edit(Span(start, start), f"{name}: {value}, "),)
    return (Edit(Span(start, start), f"{name}: {value}{newline_of(text, start)}{' ' * column_of(text, start)}"),)


def _is_pair(text: str, node: Mapping) -> bool:
    """Tell whether a mapping is a lone `key: value` in a list in brackets, without braces of its own."""
    return node.flow and text[node.span.start : node.span.start + 1] != "{"


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


def remove_entry(text: str, node: Mapping, key: Scalar, value: Node) -> Edits:
    """Remove an entry with its value: its lines in block style, itself and a comma in flow style."""
    at = next((at for at, entry in enumerate(node.entries) if entry.key is key), None)
    if at is None or key.anchor is not None or any(_has_anchor(part) for part in (key, value)):
        return ()
    end = _end_of(value, key)
    if _is_pair(text, node):
        return ()
    if node.flow:
        spans = [Span(e.key.span.start, _end_of(e.value, e.key)) for e in node.entries]
        return _out_of_flow(text, spans, at, node.span.end - 1)
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


def _has_anchor(node: Node) -> bool:
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
    trailing = re.compile(_COMMA).match(text, part.end, close)
    return (Edit(Span(part.start, trailing.end() if trailing else part.end), ""),)


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
    if _keeps_blank_lines(last):
        return ()
    end = line_end(text, last.span.end)
    column = column_of(text, node.span.start)
    return (Edit(Span(end, end), f"{newline_of(text, end)}{' ' * column}- {quote(value)}"),)


def is_nothing(node: Scalar) -> bool:
    """Tell whether a value is an empty one without anchor and tag."""
    return not node.raw and node.anchor is None and node.tag is None


def move_under(text: str, owner: Mapping, key: Scalar, value: Node, under: str, fields: Fields) -> Edits:
    """Move a one-line entry under another key of the same mapping, making that key when it isn't there."""
    end = _end_of(value, key)
    source = text[key.span.start : end]
    if "\n" in source or "\r" in source or _has_anchor(key) or _has_anchor(value):
        return ()
    found = fields.get(under)
    if found is None:
        if _is_pair(text, owner):
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
        last = _end_of(inner.entries[-1].value, inner.entries[-1].key)
        behind = text[end : line_end(text, end)]
        if not owner.flow and "#" in behind:  # the comment stays, on a line of its own
            gone = (Edit(Span(key.span.start, end + behind.index("#")), ""),)
        return (*gone, Edit(Span(last, last), f", {source}"))
    if not owner.flow:
        source = text[key.span.start : line_end(text, end)].rstrip()  # a comment comes along
    start = inner.entries[0].key.span.start
    if inner.entries[0].key.span.start != _first_of(inner):
        return ()
    pad = " " * column_of(text, start)
    return (*gone, Edit(Span(start, start), f"{source}{newline_of(text, start)}{pad}"))


def _first_of(node: Mapping) -> int:
    """Return where a mapping's first entry begins, the anchor or tag of its key included."""
    key = node.entries[0].key
    return key.anchor.start if not isinstance(key, Alias) and key.anchor is not None else key.span.start
