"""Whole things to insert: steps, the items of other lists, and a workflow or agent for an empty file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.completion.beginnings import FIRST_STEP, needed
from agentloom.ide.completion.items import Item
from agentloom.ide.completion.keys import closing, line_column, placed
from agentloom.ide.completion.known_names import Propose, proposals
from agentloom.ide.completion.layout import Blank, Layout, Writer, layout_of, with_blanks
from agentloom.ide.completion.where import Where
from agentloom.ide.results import Project
from agentloom.model.catalogue import STEP, Block, Field, Shape, catalogue
from agentloom.model.snippets import STEP_SNIPPETS

STEPS, OTHERS = 0, 1


def applies(where: Where) -> bool:
    """Tell whether something whole may be inserted at a place."""
    if where.kind == "item":
        return where.style == "plain" and where.shape is not None and _is_block(where.shape)
    if where.kind == "value":
        return (
            where.style == "plain" and not where.before and where.shape is not None and _value_item(where) is not None
        )
    return where.kind == "key" and _is_top(where) and not where.colon and where.style == "plain"


def _is_block(shape: Shape) -> bool:
    return shape.block is not None or any(other.block is not None for other in shape.any_of)


def _value_item(where: Where) -> Shape | None:
    """Return the shape of the items of the list that the value at the cursor may begin; None for lists of plain values."""
    shape = where.shape
    if shape is None or shape.item is None or not _is_block(shape.item):
        return None
    return shape.item


def _is_top(where: Where) -> bool:
    return not where.in_step and not where.path and where.holder is not None


def items(where: Where, project: Project | None = None) -> Iterator[Item]:
    """Yield whole steps, items and files."""
    del project
    layout = layout_of(where.document, where.offset)
    propose = proposals(where.document, where.offset, where.step)
    if where.kind == "key":
        yield from _files(where, layout)
        yield from _steps_below(where, layout, propose)
        return
    shape = where.shape if where.kind == "item" else _value_item(where)
    assert shape is not None
    for other in shape.any_of or (shape,):
        if other.block == STEP:
            for type_, data in step_snippets(propose):
                block = catalogue().step(type_)
                if block is not None:
                    yield _whole(where, layout, f"{type_} step", data, block, STEPS)
        elif other.block is not None:
            data = needed(other, propose)
            if data:
                block = catalogue().blocks[other.block]
                yield _whole(where, layout, block.title, data, block, OTHERS)


def _whole(where: Where, layout: Layout, label: str, data: Mapping[str, Any], block: Block, rank: int) -> Item:
    """Return the item that inserts a mapping as one item of a list."""
    writer = Writer(layout)
    glue = " " if where.glued else ""
    if where.flow:
        text = writer.flow(data)
        if where.kind == "value":
            text = f"[{text}]"
        text += closing(where._replace(kind="key"))
    elif where.kind == "value":  # behind the colon of a key
        column = line_column(where) + layout.dashes
        glue = layout.newline + " " * column + "- "
        text = writer.mapping(data, column + 2)
    else:
        column = where.column + 2 if where.dash else where.column
        glue += "- " if where.dash else ""
        text = writer.mapping(data, column)
    edit, extra = placed(where, glue + text)
    braces = Writer(layout).flow(data)
    in_line = f" [{braces}]" if where.kind == "value" else placed(where, glue + braces)[0].text
    return Item(
        label, "snippet", edit, f"insert a whole {'step' if rank == STEPS else label}",
        ("block", block.name), rank, snippet=True, additional=extra, in_line=in_line,
    )  # fmt: skip


def _steps_below(where: Where, layout: Layout, propose: Propose) -> Iterator[Item]:
    """Yield whole steps at the margin, right behind the list of steps."""
    document = where.document
    if not where.own_line or where.word or where.span.start != where.span.end or document.base:
        return
    key = _last_key(document, where.offset)
    steps = document.tree.steps_node
    if key != "steps" or (steps is not None and steps.flow):
        return
    writer_column = where.column + layout.dashes
    for type_, data in step_snippets(propose):
        block = catalogue().step(type_)
        if block is not None:
            text = " " * layout.dashes + "- " + Writer(layout).mapping(data, writer_column + 2)
            edit, extra = placed(where, text)
            yield Item(
                f"{type_} step", "snippet", edit, "insert a whole step", ("block", block.name), 6, snippet=True,
                additional=extra,
            )  # fmt: skip


def _last_key(document: WorkflowDocument, offset: int) -> str:
    last = ""
    for entry in getattr(document.tree.top, "entries", ()):
        if entry.key.span.start < offset:
            last = getattr(entry.key, "value", "")
    return last


def _files(where: Where, layout: Layout) -> Iterator[Item]:
    """Yield a whole file, where there is none yet."""
    if where.keys or where.document.base or where.flow:
        return
    block = where.block
    if block is None:
        return
    if block.name == catalogue().workflow:
        data: dict[str, Any] = {"name": Blank("my-workflow"), "steps": [FIRST_STEP]}
        label = "workflow"
    else:
        data = {"name": Blank("my-agent"), "system_prompt": Blank("You answer questions briefly.")}
        label = "agent"
    text = Writer(layout).mapping(data, where.column)
    edit, extra = placed(where, text)
    filter_ = where.source[slice(*where.span)] if where.word == "{}" else ""
    yield Item(
        label, "snippet", edit, f"insert a whole {label}", ("block", block.name), 0, filter_, snippet=True,
        additional=extra,
    )  # fmt: skip


def step_snippets(propose: Propose) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (type, data) of whole steps: with an id of their own, and names that are there.

    Steps that need a name of which there is none are left out.
    """
    for type_, raw in STEP_SNIPPETS.items():
        block = catalogue().step(type_)
        data = _filled(with_blanks(raw), block, propose) if block is not None else None
        if data is not None:
            yield type_, data


def _filled(raw: Mapping[str, Any], block: Block, propose: Propose) -> dict[str, Any] | None:
    """Return a block's data with the names in it replaced by names that are there; None when one that it needs is missing."""
    data: dict[str, Any] = {}
    for name, value in raw.items():
        field = block.fields[str(name)]
        instead = _instead(field, block)
        if instead is not None:  # a file that isn't there yet: what may be written in place of it
            data[instead.name] = _in_place(instead.shape, propose)
        elif isinstance(value, list) and field.shape.item is not None:
            found = [_named(item, field.shape.item, propose) for item in value]
            if None not in found:
                data[str(name)] = found
            elif field.shape.item.block is not None:
                return None
        else:
            data[str(name)] = _named(value, field.shape, propose)
            if data[str(name)] is None:
                return None
    return data


def _named(value: Any, shape: Shape, propose: Propose) -> Any:
    if isinstance(value, Mapping) and shape.block is not None:
        return _filled(value, catalogue().blocks[shape.block], propose)
    if isinstance(value, Blank):
        names = any(
            mark.kind == "defines" or (mark.kind == "ref" and mark.of in ("step", "agent")) for mark in shape.marks
        )
        found = propose(shape) if names else None
        return Blank(found) if found is not None else None if names else value
    return value


def _instead(field: Field, block: Block) -> Field | None:
    """Return the block of the same step that may stand in place of a file of ours."""
    mark, excludes = field.shape.mark("file"), field.shape.mark("excludes")
    other = block.fields.get(excludes.of) if mark is not None and excludes is not None else None
    return other if other is not None and other.shape.block is not None else None


def _in_place(shape: Shape, propose: Propose) -> dict[str, Any]:
    return (
        {"name": Blank("part"), "steps": [FIRST_STEP]}
        if shape.block == catalogue().workflow
        else needed(shape, propose)
    )
