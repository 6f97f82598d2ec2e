"""Keys of known blocks: those that aren't there yet, required ones first, each with what it begins with."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from agentloom.analysis.edits.places import line_start
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
from agentloom.syntax.nodes import Sequence
from agentloom.syntax.quoting import quote
from agentloom.text import Span

MERGED, REQUIRED, USUAL, OTHER = 8, 1, 2, 3
BLOCK = 2
"""How much later keys come where a single value may stand, too."""
NEAR = 10
"""Steps above and below in which it is looked how a list is written."""


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
    propose = proposals(where.document, where.offset, where.step)
    for rank, field in lacking:
        yield _added(where, block, field, rank, layout, propose)


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


def _in_line_beside(where: Where, name: str) -> bool:
    """Tell whether the nearest step above, or else below, that has this list writes it in brackets."""
    step, steps = where.step, where.document.steps
    if step is None:
        return False
    at = bisect_left(steps, step.index, key=lambda other: other.index)
    for number in [*range(at - 1, max(-1, at - NEAR), -1), *range(at + 1, min(len(steps), at + NEAR))]:
        located = steps[number].facts.fields.get(name)
        if located is not None and isinstance(located.value, Sequence):
            return located.value.flow
    return False


def _renamed(where: Where, block: Block, field: Field, rank: int) -> Item:
    """Return the item that replaces a key which has its colon already."""
    name = field.name if where.style != "plain" else quote(field.name, where.flow)
    return Item(field.name, "key", Edit(where.span, name), field_detail(field), about(block, field), rank)


def _added(where: Where, block: Block, field: Field, rank: int, layout: Layout, propose: Propose) -> Item:
    """Return the item that adds a key."""
    if where.style != "plain" and not where.open:  # inside quotes that are closed: the colon comes behind them
        behind = Span(where.span.end + 1, where.span.end + 1)
        return Item(
            field.name, "key", Edit(where.span, field.name), field_detail(field), about(block, field), rank,
            additional=(Edit(behind, ": "),),
        )  # fmt: skip
    column = where.column + 2 if where.dash else where.column
    if where.kind == "value" and not where.flow:
        column = value_column(where, layout)
    item = field.shape.item
    names = item is not None and item.block is None and not item.any_of
    in_line = names and _in_line_beside(where, field.name)
    begun = begin(field, Writer(layout), column, where.flow, propose, in_line)
    if where.kind == "value":
        rank += BLOCK  # after what may be chosen in its place
    quotes = {"double": '"', "single": "'"}.get(where.style, "")
    written = opening(where, layout) + field.name + quotes + ":" + begun.text + closing(where)
    found = _item(where, block, field, rank, written, begun)
    if where.kind == "value" and not where.flow and not where.own_line:
        value = begin(field, Writer(layout), 0, True, propose).text
        return found._replace(in_line=f" {{{field.name}:{value}}}")
    return found


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
        least = start
        while least > start + where.missing and where.source[least - 1 : least] in (" ", "\t"):
            least -= 1
        return Edit(Span(least, end), text), ()
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
    return line_column(where) + layout.width


def line_column(where: Where) -> int:
    """Return the column of the first key on the line of the cursor."""
    source, start = where.source, where.span.start
    line = content = line_start(source, start)
    while content < start and source[content] in "- \ufeff":
        content += 1
    return content - line - source.startswith("\ufeff", line)


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
