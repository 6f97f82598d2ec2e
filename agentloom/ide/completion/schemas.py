"""Completion inside JSON Schemas: keywords of draft 2020-12, types, formats, and the names of properties under `required`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from agentloom.diagnostics import Edit
from agentloom.ide.completion.arguments import key_item, open_mapping, present, whole
from agentloom.ide.completion.items import Item, before
from agentloom.ide.completion.keys import comma
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project
from agentloom.model.catalogue import Block, Shape, catalogue
from agentloom.syntax.nodes import Path

Position = Literal["schema", "names", "list", "data"]

KEYWORDS: Mapping[str, tuple[str, Position]] = {
    "type": ("What kind of value it is.", "data"),
    "properties": ("The keys of a mapping, each with its schema.", "names"),
    "required": ("The keys that must be there.", "data"),
    "additionalProperties": ("What other keys may hold; false: there may be none.", "schema"),
    "items": ("What each item of a list is.", "schema"),
    "enum": ("The values that are allowed.", "data"),
    "const": ("The only value that is allowed.", "data"),
    "description": ("What the value is for; models read this.", "data"),
    "title": ("A short name.", "data"),
    "default": ("The value when none is given.", "data"),
    "examples": ("Values that show what is meant.", "data"),
    "minimum": ("The smallest number.", "data"),
    "maximum": ("The largest number.", "data"),
    "exclusiveMinimum": ("The number must be above this.", "data"),
    "exclusiveMaximum": ("The number must be below this.", "data"),
    "multipleOf": ("The number must be a multiple of this.", "data"),
    "minLength": ("The least characters of a text.", "data"),
    "maxLength": ("The most characters of a text.", "data"),
    "pattern": ("A regular expression that a text must match somewhere.", "data"),
    "format": ("What a text stands for, such as `date` or `email`.", "data"),
    "minItems": ("The least items of a list.", "data"),
    "maxItems": ("The most items of a list.", "data"),
    "uniqueItems": ("Whether all items must differ.", "data"),
    "prefixItems": ("What the first items of a list are, one by one.", "list"),
    "contains": ("What at least one item must be.", "schema"),
    "minProperties": ("The least keys of a mapping.", "data"),
    "maxProperties": ("The most keys of a mapping.", "data"),
    "patternProperties": ("Schemas for keys that match a regular expression.", "names"),
    "propertyNames": ("What each key must be.", "schema"),
    "anyOf": ("At least one of these schemas must fit.", "list"),
    "oneOf": ("Exactly one of these schemas must fit.", "list"),
    "allOf": ("All of these schemas must fit.", "list"),
    "not": ("This schema must not fit.", "schema"),
    "if": ("Decides between `then` and `else`.", "schema"),
    "then": ("Must fit where `if` does.", "schema"),
    "else": ("Must fit where `if` doesn't.", "schema"),
    "$ref": ("Another schema of this document, such as `#/$defs/name`.", "data"),
    "$defs": ("Schemas to be referred to.", "names"),
}
"""The keywords that are offered, the usual ones first, and what stands behind each."""

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
FORMATS = (
    "date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference", "uuid", "regex",
    "json-pointer",
)  # fmt: skip


def keys_apply(where: Where) -> bool:
    """Tell whether a key inside a JSON Schema is being typed."""
    return mark_of(open_mapping(where), "json_schema") is not None


def keys(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the keywords of a schema; nothing where names of properties, or plain data, are written."""
    inside = inside_schema(where, where.path)
    if inside is None or position_of(inside) != "schema":
        return
    taken = present(where)
    for number, (name, (about, position)) in enumerate(KEYWORDS.items()):
        if name not in taken:
            value = "[$0]" if position == "list" or name in ("required", "enum", "examples") else ""
            value = "{$0\\}" if position == "names" and where.flow else value
            yield key_item(where, name, about, rank=4 if number < 8 else 6, value=value)


def values_apply(where: Where) -> bool:
    """Tell whether a value inside a JSON Schema is being typed."""
    return where.kind in ("value", "item") and mark_of(where.shape, "json_schema") is not None


def values(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield types, formats, truth values, and under `required` the names of the properties beside it."""
    inside = inside_schema(where, where.path)
    if not inside:
        return
    keyword = inside[-1] if isinstance(inside[-1], str) else inside[-2] if len(inside) > 1 else ""
    holder = inside[: -1 if isinstance(inside[-1], str) else -2]
    if position_of(holder) != "schema":
        return
    listed = not isinstance(inside[-1], str)
    taken = {item.strip("\"'") for item in where.items}
    if keyword == "type":
        yield from (_value(where, name) for name in TYPES if name not in taken)
    elif keyword == "format" and not listed:
        yield from (_value(where, name) for name in FORMATS)
    elif keyword == "required" and listed:
        properties = _data(where, holder).get("properties")
        for name in properties if isinstance(properties, Mapping) else ():
            if isinstance(name, str) and name not in taken:
                yield _value(where, name)
    elif keyword in ("additionalProperties", "uniqueItems") and not listed and where.style == "plain":
        for word in ("true", "false"):
            yield Item(word, "value", Edit(where.span, before(where) + word + comma(where)), rank=3)


def position_of(path: Path) -> Position:
    """Return what stands at a path inside a schema: a schema, names with a schema each, a list of schemas, or plain data."""
    now: Position = "schema"
    for part in path:
        if now == "schema":
            now = KEYWORDS[part][1] if isinstance(part, str) and part in KEYWORDS else "data"
        elif now in ("names", "list"):
            now = "schema"
        else:
            return "data"
    return now


def inside_schema(where: Where, path: Path) -> Path | None:
    """Return the part of a path that lies inside a JSON Schema; None where there is none."""
    block = where.step.facts.block if where.step is not None else None
    if block is None:
        known = catalogue()
        block = known.blocks[known.agent if where.document.kind == "agent" else known.workflow]
    return _inside(block, path)


def _inside(block: Block | None, path: Path) -> Path | None:
    if block is None or not path or not isinstance(path[0], str) or path[0] not in block.fields:
        return None
    return _below(block.fields[path[0]].shape, path[1:])


def _below(shape: Shape | None, path: Path) -> Path | None:
    if shape is None:
        return None
    if shape.mark("json_schema") is not None:
        return path
    for option in shape.any_of:
        found = _below(option, path)
        if found is not None:
            return found
    if shape.block is not None:
        return _inside(catalogue().blocks.get(shape.block), path)
    if not path:
        return None
    return _below(shape.item if isinstance(path[0], int) else shape.values, path[1:])


def _data(where: Where, holder: Path) -> Mapping[str, Any]:
    """Return the schema at a path inside a JSON Schema, as it was last read."""
    root = where.path[: len(where.path) - len(inside_schema(where, where.path) or ())]
    data: Any = where.step.facts.data if where.step is not None else where.document.head.data
    for part in (*root, *holder):
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return data if isinstance(data, Mapping) else {}


def _value(where: Where, name: str) -> Item:
    return Item(name, "value", whole(where, name), rank=3)
