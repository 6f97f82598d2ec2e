"""Completion inside JSON Schemas: keywords of draft 2020-12, types, formats, and the names of properties under `required`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.diagnostics import Edit
from agentloom.ide.completion.arguments import key_item, open_mapping, present, whole
from agentloom.ide.completion.items import Item, before
from agentloom.ide.completion.keys import comma
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.where import Where
from agentloom.ide.json_schemas import FORMATS, KEYWORDS, TYPES, position_of
from agentloom.ide.results import Project
from agentloom.model.catalogue import Block, Shape, catalogue
from agentloom.syntax.nodes import Path


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
        words = ("true", "false") if keyword == "uniqueItems" else ("false", "true") if holder else ("false",)
        for word in words:  # at the top of a schema further properties can't be allowed, or only for nothing
            yield Item(word, "value", Edit(where.span, before(where) + word + comma(where)), rank=3)


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
