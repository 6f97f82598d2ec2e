"""Keys of known blocks: those that aren't there yet, required ones first, each with what it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentloom.diagnostics import Edit
from agentloom.ide.completion.beginnings import Beginning, begin
from agentloom.ide.completion.fitting import accepts
from agentloom.ide.completion.items import Item
from agentloom.ide.completion.known_names import Propose, proposals
from agentloom.ide.completion.layout import Layout, Writer, layout_of
from agentloom.ide.completion.where import Where, block_for
from agentloom.ide.prose.fields import type_words
from agentloom.ide.results import Project
from agentloom.model.catalogue import STEP, Block, Field
from agentloom.model.snippets import STEP_SNIPPETS
from agentloom.syntax.quoting import quote
from agentloom.text import Span

MERGED, REQUIRED, USUAL, OTHER = 8, 1, 2, 3


def applies(where: Where) -> bool:
    """Tell whether keys of a known block may stand at a place."""
    if where.kind in ("key", "item"):
        return where.block is not None and (where.kind == "key" or where.style == "plain")
    return where.kind == "value" and where.style == "plain" and not where.before and value_block(where) is not None


def value_block(where: Where) -> Block | None:
    """Return the block that the value at the cursor may be a mapping of."""
    shape = where.shape
    if shape is None or shape.block == STEP or not (shape.any_of or shape.block):
        return None
    return block_for(shape, {}, None)


def items(where: Where, project: Project | None = None) -> Iterator[Item]:
    """Yield the keys that may be added at a place."""
    del project
    block = where.block if where.kind != "value" else value_block(where)
    assert block is not None
    lacking = list(ordered(block, where))
    if where.colon:
        takes = accepts(where)
        now = where.source[slice(*where.span)]
        fitting = [(rank, field) for rank, field in lacking if field.name == now or takes(field)]
        if now != "<<":
            yield from (_renamed(where, block, field, rank) for rank, field in fitting or lacking)
        return
    layout = layout_of(where.document, where.offset)
    lists_in_line = _lists_in_line(where)
    propose = proposals(where.document, where.offset, where.step)
    for rank, field in lacking:
        yield _added(where, block, field, rank, layout, lists_in_line, propose)


def ordered(block: Block, where: Where) -> Iterator[tuple[int, Field]]:
    """Yield (rank, field) of a block's keys that a mapping lacks, in the order in which they should be shown."""
    present = where.keys if where.kind == "key" else {}
    usual = {name: number for number, name in enumerate(STEP_SNIPPETS.get(block.tag or "", ()))}
    lacking = [field for field in block.fields.values() if field.name not in present and not excluded(field, present)]
    for field in sorted(lacking, key=lambda field: usual.get(field.name, len(usual))):
        if field.name in where.merged and where.kind == "key":
            yield MERGED, field
        elif field.required:
            yield REQUIRED, field
        else:
            yield (USUAL if field.name in usual or not usual else OTHER), field


def excluded(field: Field, present: Iterable[str]) -> bool:
    """Tell whether a key can't stand beside one that is there."""
    return any(mark.kind == "excludes" and mark.of in present for mark in field.shape.marks)


def _lists_in_line(where: Where) -> bool:
    """Tell whether the step before, or else the one behind, writes its lists of names in brackets."""
    step = where.step
    if step is None:
        return False
    steps = where.document.steps
    at = next((number for number in range(max(0, step.index - 3), len(steps)) if steps[number] is step), -1)
    for number in [*range(at - 1, max(-1, at - 10), -1), *range(at + 1, min(len(steps), at + 10))]:
        located = steps[number].facts.fields.get("depends_on") if 0 <= number < len(steps) else None
        if located is not None and hasattr(located.value, "flow"):
            return bool(located.value.flow)
    return False


def _renamed(where: Where, block: Block, field: Field, rank: int) -> Item:
    """Return the item that replaces a key which has its colon already."""
    name = field.name if where.style != "plain" else quote(field.name, where.flow)
    return Item(field.name, "key", Edit(where.span, name), field_detail(field), about(block, field), rank)


def _added(
    where: Where, block: Block, field: Field, rank: int, layout: Layout, lists_in_line: bool, propose: Propose
) -> Item:
    """Return the item that adds a key."""
    writer = Writer(layout)
    column = where.column
    head = opening(where, layout)
    if where.kind == "value" and not where.flow:
        column = value_column(where, layout)
    elif where.dash:
        column += 2
    plain_list = field.shape.item is not None and not field.shape.item.block and not field.shape.item.any_of
    begun = begin(field, writer, column, where.flow, propose, lists_in_line and plain_list)
    additional: tuple[Edit, ...] = ()
    name = field.name
    text = begun.text
    if where.style != "plain":  # inside quotes
        mark = '"' if where.style == "double" else "'"
        if where.open:
            name += mark
        else:
            end = where.span.end + 1
            tail = text.replace("$0", "") if "$0" in text else ":"
            additional = (Edit(Span(end, end), ":" + tail.rstrip() + " "),)
            return Item(
                field.name, "key", Edit(where.span, name), field_detail(field), about(block, field), rank,
                additional=additional,
            )  # fmt: skip
    written = head + name + ":" + text + closing(where)
    return _item(where, block, field, rank, written, begun)


def _item(where: Where, block: Block, field: Field, rank: int, written: str, begun: Beginning) -> Item:
    edit, extra = placed(where, written)
    at_end = edit.text.endswith("$0") and edit.text.count("$") == 1
    if at_end:
        edit = Edit(edit.span, edit.text[:-2])
    snippet = "$" in edit.text and not at_end
    return Item(
        field.name, "key", edit, field_detail(field), about(block, field), rank, filter=_filter(where), snippet=snippet,
        additional=extra, retrigger=begun.retrigger,
    )  # fmt: skip


def _filter(where: Where) -> str:
    return where.source[where.span.start : where.span.end] if where.word == "{}" else ""


def field_detail(field: Field) -> str:
    """Return a few words about a field: what it takes, and whether it is needed."""
    return type_words(field.shape) + (", needed" if field.required else "")


def about(block: Block, field: Field) -> tuple[str, ...]:
    """Return what ``documentation`` explains about a field."""
    return ("field", block.name, field.name)


def placed(where: Where, text: str) -> tuple[Edit, tuple[Edit, ...]]:
    """Return the edit that writes ``text`` where the line's word has to stand, and what has to be changed besides."""
    start, end = where.span
    if where.missing > 0:
        return Edit(where.span, " " * where.missing + text), ()
    if where.missing < 0:
        return Edit(Span(start + where.missing, end), text), ()
    if text.startswith(("\n", "\r")):  # no blank stays behind the colon
        source, behind = where.source, start
        while behind > 0 and source[behind - 1] in " \t":
            behind -= 1
        if behind < start:
            return Edit(where.span, text), (Edit(Span(behind, start), ""),)
    return Edit(where.span, text), ()


def opening(where: Where, layout: Layout) -> str:
    """Return what has to be written before the first key of what is added."""
    if where.kind == "value":
        if where.flow:
            return (" " if where.glued else "") + "{"
        if not where.own_line:
            return layout.newline + " " * value_column(where, layout)
        return ""
    if where.kind == "item" and where.flow:
        return "{"
    return (" " if where.glued else "") + ("- " if where.dash else "")


def value_column(where: Where, layout: Layout) -> int:
    """Return the column of the keys of a mapping that begins as a value."""
    if where.own_line:
        return where.column
    source, start = where.source, where.span.start
    line = max(source.rfind("\n", 0, start), source.rfind("\r", 0, start)) + 1
    content = line
    while source[content : content + 1] in ("-", " ", "\ufeff") and content < start:
        content += 1
    return content - line - source.startswith("\ufeff", line) + layout.width


def closing(where: Where) -> str:
    """Return what has to be written behind what is added in brackets: those it opened, and a comma before what follows."""
    if not where.flow:
        return ""
    end = "}" if where.kind in ("value", "item") and not where.colon else ""
    return end + comma(where)


def comma(where: Where) -> str:
    """Return the comma that something added in brackets needs before what follows it; none outside of brackets, or inside quotes."""
    if not where.flow or where.style != "plain":
        return ""
    source, at = where.source, where.span.end
    blanks = " \t\r\n" if not any(finding.code == "AL001" for finding in where.document.tree.findings) else " \t"
    while source[at : at + 1] and source[at] in blanks:
        at += 1
    follows = source[at : at + 1]
    return "" if follows in ("", ",", "]", "}", "#", "\r", "\n") else ", "
