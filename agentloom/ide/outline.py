"""The outline of a file: what it defines, as a tree of names with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from agentloom.analysis.document import Facts, Step, WorkflowDocument, word_span
from agentloom.ide.hits import block_of, item_shape
from agentloom.ide.nested import written_in
from agentloom.model.catalogue import STEP, Block, Field
from agentloom.syntax.duplicates import is_merge
from agentloom.syntax.nodes import Alias, Node, Scalar, Sequence
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.text import Span

SymbolKind = Literal["workflow", "agent", "step", "block", "key", "state", "condition", "tool", "file", "part"]

MOST_SYMBOLS = 5_000
"""Symbols of one file; editors grow slow with more. Steps are never left out in favour of what stands inside others."""

_LONGEST = 80
_DEEPEST = 6


class Symbol(NamedTuple):
    """One name. ``span`` is the whole of what it names, ``name_span`` its name in there; both in document offsets."""

    name: str
    kind: SymbolKind
    detail: str
    span: Span
    name_span: Span
    children: tuple[Symbol, ...] = ()


class Outline(NamedTuple):
    """The symbols of a file, in written order; ``left_out`` counts those beyond the limit."""

    symbols: tuple[Symbol, ...]
    left_out: int = 0


def outline(document: WorkflowDocument, most: int = MOST_SYMBOLS) -> Outline:
    """Return the outline of a document: `config`, state keys, agents, steps and the important parts of each."""
    builder = _Builder(most - min(len(document.steps), most))
    symbols = tuple(builder.file(document, most))
    return Outline(symbols, builder.left_out)


class _Builder:
    """Builds symbols, up to ``left`` besides the file's own steps."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.left_out = 0

    def file(self, document: WorkflowDocument, most_steps: int) -> Iterator[Symbol]:
        """Yield the symbols at the top of a document."""
        if document.kind == "agent":
            yield from self._agent_file(document)
            return
        if document.head.block is None:
            return
        base = document.base
        for name, located in document.head.fields.items():
            field = document.head.block.fields.get(name)
            if field is None or located.via is not None:
                continue
            key, value = located.key, located.value
            span = Span(key.span.start, max(key.span.end, value.span.end))
            if field.shape.item is not None and field.shape.item.block == STEP:
                children = tuple(self._steps(document, most_steps))
                end = max([span.end, *(child.span.end - base for child in children)])
                yield Symbol(name, "block", "", Span(span.start, end).shift(base), key.span.shift(base), children)
            elif isinstance(value, MappingNode):
                children = tuple(self._keys(field, value, base))
                yield Symbol(name, "block", "", span.shift(base), key.span.shift(base), children)

    def _agent_file(self, document: WorkflowDocument) -> Iterator[Symbol]:
        head = document.head
        if not isinstance(head.node, MappingNode) or not head.node.entries:
            return
        path = document.path
        name = head.text("name") or (path.name.split(".")[0] if path is not None else "")
        parts = tuple(self._parts(head, document.base))
        named = head.fields.get("name")
        name_span = head.first if named is None or named.via is not None else head.span_of("name")
        base = document.base
        yield Symbol(_line(name) or "agent", "agent", "", head.node.span.shift(base), name_span.shift(base), parts)

    def _steps(self, document: WorkflowDocument, most: int) -> Iterator[Symbol]:
        by_index: Mapping[int, Step] = {step.index: step for step in document.steps}
        for index, placed in enumerate(document.tree.steps):
            if index >= most:
                self.left_out += len(document.tree.steps) - index
                return
            step = by_index.get(index)
            if step is not None:
                yield self._step(document, step)
            elif isinstance(placed.node, Scalar) and placed.node.value.strip():  # of its first key, half is typed
                span = placed.node.span.shift(placed.base)
                yield Symbol(f"step {index + 1}", "step", "", span, span)

    def _step(self, document: WorkflowDocument, step: Step) -> Symbol:
        name = _line(step.id or "") or f"step {step.index + 1}"
        detail = _line(step.type or "")
        if step.alias is not None:
            return Symbol(name, "step", detail, step.alias, step.alias)
        span = step.place(step.facts.node.span)
        children: list[Symbol] = []
        child = written_in(document, step)
        if child is not None:
            children.extend(self._inline(child))
        children.extend(self._parts(step.facts, step.base))
        return Symbol(name, "step", detail, span, _within(step.name_span, span), tuple(children))

    def _inline(self, document: WorkflowDocument) -> Iterator[Symbol]:
        allowed = max(0, min(self.left, len(document.steps)))
        self.left -= allowed
        yield from self.file(document, allowed)

    def _keys(self, field: Field, node: MappingNode, base: int) -> Iterator[Symbol]:
        """Yield what the entries of a mapping at the top define: state keys, agents, or plain settings."""
        mark = field.shape.mark("defines")
        kind: SymbolKind = "key"
        if mark is not None:
            kind = "agent" if mark.of == "agent" else "state"
        for key, value in _own(node):
            if not self._take():
                continue
            children: tuple[Symbol, ...] = ()
            if kind == "agent" and isinstance(value, MappingNode):
                block = block_of(field.shape.values, value)
                children = tuple(self._block_parts(block, value, base)) if block is not None else ()
            elif kind == "state" and isinstance(value, MappingNode):
                children = tuple(self._nested(value, base, 1))
            yield _entry(key, value, kind, base, children)

    def _nested(self, node: MappingNode, base: int, depth: int) -> Iterator[Symbol]:
        for key, value in _own(node):
            if self._take():
                deeper = isinstance(value, MappingNode) and depth < _DEEPEST
                children = tuple(self._nested(value, base, depth + 1)) if deeper else ()  # type: ignore[arg-type]
                yield _entry(key, value, "state", base, children)

    def _parts(self, facts: Facts, base: int) -> Iterator[Symbol]:
        """Yield the blocks in the lists of a step or an agent: conditions, tools, attachments."""
        if facts.block is not None and isinstance(facts.node, MappingNode):
            yield from self._block_parts(facts.block, facts.node, base)

    def _block_parts(self, block: Block, node: MappingNode, base: int) -> Iterator[Symbol]:
        for key, value in _own(node):
            field = block.fields.get(key.value)
            if field is None or not isinstance(value, Sequence):
                continue
            shape = item_shape(field.shape)
            for item in value.items:
                described = block_of(shape, item) if isinstance(item, MappingNode) else None
                if described is not None and isinstance(item, MappingNode) and self._take():
                    yield _part(described, item, base)

    def _take(self) -> bool:
        if self.left <= 0:
            self.left_out += 1
            return False
        self.left -= 1
        return True


def _part(block: Block, node: MappingNode, base: int) -> Symbol:
    """Return the symbol of a block in a list: named by its first required field, with the next one as detail."""
    written = {key.value: value for key, value in _own(node)}
    required = [field for field in block.fields.values() if field.required]
    first = required[0] if required else None
    value = written.get(first.name) if first is not None else None
    second = required[1].name if len(required) > 1 else "type"
    kind: SymbolKind = "part"
    if first is not None:
        marks = {mark.kind: mark.of for mark in first.shape.marks}
        if "expression" in marks:
            kind = "condition"
        elif "file" in marks and "ref" not in marks:
            kind = "file"
        elif marks.get("ref") == "tool":
            kind = "tool"
        elif marks.get("ref") == "agent":
            kind = "agent"
    span = node.span
    name_span = word_span(value) if value is not None and value.span.end > value.span.start else span
    shown = _shown(value) or block.title.lower()
    return Symbol(shown, kind, _shown(written.get(second)), span.shift(base), _within(name_span, span).shift(base))


def _entry(key: Scalar, value: Node, kind: SymbolKind, base: int, children: tuple[Symbol, ...] = ()) -> Symbol:
    span = Span(key.span.start, max(key.span.end, value.span.end))
    name = _line(key.value) or '""'
    return Symbol(name, kind, _shown(value), span.shift(base), word_span(key).shift(base), children)


def _own(node: MappingNode) -> Iterator[tuple[Scalar, Node]]:
    """Yield the entries that are written in a mapping itself, merge keys left out."""
    for entry in node.entries:
        if isinstance(entry.key, Scalar) and not is_merge(entry.key):
            yield entry.key, entry.value


def _shown(node: Node | None) -> str:
    if isinstance(node, Alias):
        return f"*{node.name}"
    return _line(node.value) if isinstance(node, Scalar) else ""


def _line(text: str) -> str:
    """Return a text on one line, cut where it is long."""
    flat = " ".join(text[: 4 * _LONGEST].split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


def _within(span: Span, outer: Span) -> Span:
    """Return a name's span if it lies inside the whole, as clients insist; else the whole's start."""
    if outer.start <= span.start and span.end <= outer.end:
        return span
    return Span(outer.start, outer.start)
