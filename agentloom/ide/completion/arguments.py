"""Completion of keys in open mappings that something is known of: a tool's arguments, a child's input and what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentloom.analysis.context import ToolLike
from agentloom.diagnostics import Edit
from agentloom.ide.completion.items import Item, before, escaped, spell
from agentloom.ide.completion.keys import closing, comma, opening, placed
from agentloom.ide.completion.layout import layout_of
from agentloom.ide.completion.marks import mark_of
from agentloom.ide.completion.where import Where
from agentloom.ide.owners import text_of
from agentloom.ide.prose.names import argument_at, argument_words, needed_of, tool_arguments
from agentloom.ide.result_shapes import read_keys, written_keys
from agentloom.ide.results import Project
from agentloom.model.catalogue import Shape
from agentloom.syntax.nodes import Path
from agentloom.syntax.quoting import quote
from agentloom.text import Span

MOST_DEPTH = 20


def open_mapping(where: Where) -> Shape | None:
    """Return the shape of the mapping without known keys of which a key is being typed; its path is that of the place.

    So do a value that can only be a mapping, and a word alone on its line below a key that may have any value.
    """
    if where.kind == "key":
        return where.holder if where.block is None else None
    shape = where.shape
    if where.kind != "value" or shape is None or where.style != "plain":
        return None
    if shape.types:
        return shape if "object" in shape.types and shape.block is None and not where.before else None
    return shape if where.own_line and not where.glued else None


def present(where: Where) -> frozenset[str]:
    """Return the keys that the mapping has already."""
    return where.merged.union(where.keys) if where.kind == "key" else frozenset()


def keys_apply(where: Where) -> bool:
    """Tell whether a key of a tool's arguments, or of a child's input, is being typed."""
    return mark_of(open_mapping(where), "template_deep") is not None


def keys(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the keys that are not there yet; those that are needed first."""
    mark = mark_of(open_mapping(where), "template_deep")
    if mark is None:
        return
    if mark.of == "tool_argument":
        yield from _tool_keys(where)
    elif mark.of == "child_state" and len(where.path) == 1:
        child = _child(where)
        for name in read_keys(child) if child is not None else ():
            if name not in present(where):
                yield key_item(where, name, "read by the child", rank=3)


def values_apply(where: Where) -> bool:
    """Tell whether the value of a tool's argument is being typed."""
    mark = mark_of(where.shape, "template_deep")
    return where.kind in ("value", "item") and mark is not None and mark.of == "tool_argument"


def values(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the values that an argument's schema lists."""
    found = _schema(where, where.path[1:])
    if found is None:
        return
    tool, schema, _ = found
    plain = where.text.scalar is None or where.style == "plain"
    default = schema.get("default")
    for value in _choices(schema):
        detail = "default" if value == default and "default" in schema else ""
        about = ("argument", tool.name, *map(str, where.path[1:]))
        if isinstance(value, str):
            yield Item(value, "value", whole(where, value), detail, about, rank=1)
        elif plain:
            word = "true" if value else "false"
            yield Item(word, "value", Edit(where.span, before(where) + word + comma(where)), detail, about, rank=1)


def returned_apply(where: Where) -> bool:
    """Tell whether a state key of a child is being typed that is to be handed back."""
    return where.kind in ("value", "item") and mark_of(where.shape, "ref", "child_state") is not None


def returned(where: Where, project: Project | None) -> Iterator[Item]:
    """Yield the keys that the child ends with."""
    child = _child(where)
    taken = {item.strip("\"'") for item in where.items}
    for name in written_keys(child) if child is not None else ():
        if name not in taken:
            yield Item(name, "state", whole(where, name), "written by the child", rank=3)


def whole(where: Where, value: str) -> Edit:
    """Return the edit that makes ``value`` the whole value, with the comma that it needs before what follows in brackets."""
    edit = spell(where, value)
    return edit._replace(text=edit.text + comma(where))


def key_item(
    where: Where, name: str, detail: str = "", about: tuple[str, ...] = (), rank: int = 5, value: str = ""
) -> Item:
    """Return an item for a key; ``value`` is the snippet that stands behind it, if it has no colon yet."""
    if where.style != "plain":
        end = where.span.end + (not where.open)
        behind = () if where.colon else (Edit(Span(end, end), ": "),)
        return Item(name, "key", spell(where, name), detail, about, rank, additional=behind)
    spelled = quote(name, where.flow)
    if where.colon:
        return Item(name, "key", Edit(where.span, spelled), detail, about, rank)
    written = escaped(spelled) if value else spelled
    text = opening(where, layout_of(where.document, where.offset)) + written + ": " + value + closing(where)
    edit, extra = placed(where, text)
    return Item(name, "key", edit, detail, about, rank, snippet=bool(value), additional=extra, retrigger=not value)


def _tool_keys(where: Where) -> Iterator[Item]:
    found = _schema(where, where.path[1:])
    if found is None:
        return
    tool, schema, _ = found
    needed, taken = needed_of(schema), present(where)
    for name, described in tool_arguments(schema).items():
        if name in taken:
            continue
        about = ("argument", tool.name, *map(str, where.path[1:]), name)
        detail = argument_words(described, name in needed)
        kind = described.get("type")
        value = "{$0\\}" if kind == "object" else "[$0]" if kind == "array" else ""
        yield key_item(where, name, detail, about, 2 if name in needed else 4, value)


def _schema(where: Where, path: Path) -> tuple[ToolLike, Mapping[str, Any], str] | None:
    """Return the step's tool, the JSON Schema of what stands at a path in its arguments, and the name of that argument."""
    tool = tool_at(where)
    if tool is None or len(path) > MOST_DEPTH:
        return None
    schema = argument_at(tool.parameters, path)
    name = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
    return (tool, schema, name) if schema is not None else None


def tool_at(where: Where) -> ToolLike | None:
    """Return the tool that the step at the cursor runs."""
    step = where.step
    name = text_of(step.facts.block, step.facts.data, "tool") if step is not None else None
    return where.document.context.tools.get(name) if name is not None else None


def _child(where: Where) -> Any:
    step = where.step
    found = where.document.children.get(step.id) if step is not None and step.id is not None else None
    return found.document if found is not None else None


def _choices(schema: Mapping[str, Any]) -> Sequence[str | bool]:
    listed = schema.get("enum")
    if isinstance(listed, (list, tuple)):
        return [choice for choice in listed if isinstance(choice, (str, bool))]
    return (True, False) if schema.get("type") == "boolean" else ()
