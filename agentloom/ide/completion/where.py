"""Where a cursor is, in the terms of the file format; works in half-typed text.

``scan`` says what is around the cursor by indentation and brackets; here the catalogue, the checked document and the marks are laid
over it. Nothing here is asked of the nodes that the cursor's own line has part in, as these change with every key pressed: nodes only
say which step it is, and what merge keys bring in.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.edits.places import line_end, line_start
from agentloom.ide.completion.frames import Frame, Kind, Spot
from agentloom.ide.completion.region import VIRTUAL, nearest_item, region_of, start_of
from agentloom.ide.completion.scan import scan
from agentloom.ide.completion.text_at import TextAt, text_at
from agentloom.ide.hits import item_shape
from agentloom.model.catalogue import STEP, Block, Field, Shape, catalogue
from agentloom.syntax.nodes import Alias, Node, Path, Style
from agentloom.syntax.nodes import Mapping as MappingNode
from agentloom.syntax.pieces import find_body
from agentloom.syntax.values import entries, find, follow
from agentloom.text import Span


class Where(NamedTuple):
    """Where a cursor is. Spans are document offsets.

    ``kind``: in a `key`, in the `value` of one, in an `item` of a list (or where one may begin), in a `comment`, or where there
    is `nothing` to say. ``document`` is the innermost workflow: that of the file, or the one written in place around the cursor;
    ``root`` is that of the file.
    ``step`` is the step that the cursor is in; None in the head, and in an item so broken that it is no step (``in_step`` tells).
    ``path`` leads from the step's (or head's) mapping to the place: to the mapping for a key, to the value or item otherwise.

    ``block`` describes the mapping whose keys are meant: around a key or value, or the one that an item may be; ``holder`` is
    that mapping's own shape, with its marks. ``keys`` are the keys it has (but the one at the cursor), each with the source of its
    value if that is a scalar on one line; ``merged`` those that only a merge key brings in. ``name``, ``field`` and ``shape`` are
    of the value's key; for an item, ``shape`` is the item's. ``items`` are the list's other scalars.

    A value or item that stands alone on its line counts as a key where only a mapping fits, and as an item whose dash is missing
    where only a list does; with both a text and a mapping possible it is a value, with ``own_line``.

    ``span`` is the word to replace and ``word`` the part of it before the cursor. ``text`` is the scalar that the cursor is
    in, for values and items: its value, the place in it, and how to get from one to the other. ``style`` and ``open``: its quotes, and
    whether they are missing at the end. ``flow``: in brackets. ``braced``: a text that begins with a brace, without the quotes
    that YAML asks for (`prompt: {state.x}`); it is in plain style here, up to the end of its line. ``colon``: a key with its colon. ``glued``: a blank has to be
    written before the word. ``dash``: the item's dash is missing. ``own_line``: nothing else stands on the line; ``column``: where the
    first character stands or has to; ``missing``: how many blanks are too few before it (negative: too many).
    """

    kind: Kind
    document: WorkflowDocument
    offset: int
    span: Span
    step: Step | None = None
    in_step: bool = False
    path: Path = ()
    block: Block | None = None
    holder: Shape | None = None
    name: str = ""
    field: Field | None = None
    shape: Shape | None = None
    keys: Mapping[str, str] = {}
    merged: frozenset[str] = frozenset()
    items: tuple[str, ...] = ()
    text: TextAt = TextAt()
    style: Style = "plain"
    open: bool = False
    flow: bool = False
    braced: bool = False
    colon: bool = False
    glued: bool = False
    dash: bool = False
    own_line: bool = False
    column: int = 0
    missing: int = 0
    root: WorkflowDocument | None = None

    @property
    def source(self) -> str:
        """The whole text of the file."""
        return self.document.source.text

    @property
    def word(self) -> str:
        """What is typed of the word: its source before the cursor."""
        return self.source[self.span.start : self.offset]

    @property
    def before(self) -> str:
        """The value before the cursor, as YAML reads it."""
        return self.text.value[: self.text.at]

    @property
    def after(self) -> str:
        """The value behind the cursor, as YAML reads it."""
        return self.text.value[self.text.at :]


def where(document: WorkflowDocument, offset: int) -> Where:
    """Return where an offset of a document is. Costs as much as the step (or entry) around it; never raises."""
    text = document.source.text
    offset = max(0, min(offset, len(text)))
    body = find_body(text)
    nothing = Where("nothing", document, offset, Span(offset, offset))
    if document.kind is None or offset > body.end or (body.extra >= 0 and offset >= body.end):
        return nothing
    if offset < body.start:
        line = text[line_start(text, offset) : offset]
        if line.strip("\ufeff \t"):
            return nothing._replace(kind="comment") if "#" in line else nothing
    if (empty := _EMPTY_BRACES.fullmatch(text, body.start, body.end)) and offset == empty.end(1):
        # behind `{}`, which is all there is: keys take its place
        block = catalogue().blocks[catalogue().agent if document.kind == "agent" else catalogue().workflow]
        holder = Shape(types=("object",), block=block.name)
        return nothing._replace(kind="key", span=Span(*empty.span(1)), block=block, holder=holder, shape=holder)
    start, frames = region_of(document, offset, 0 if body.start <= 1 else body.start)
    trusted = not any(finding.code == "AL001" for finding in document.tree.findings)
    spot, end = scan(text, offset, start, body.end, frames, trusted)
    if spot.kind in ("comment", "nothing"):
        return nothing._replace(kind=spot.kind)
    return _Resolving(document, offset, spot, end).resolve()._replace(root=document)


_EMPTY_BRACES = re.compile(r"\ufeff?(?:[ \t\r\n]|#[^\r\n]*)*(\{[ \t]*\})(?:[ \t\r\n]|#[^\r\n]*)*")
_BRACED_PATH = re.compile(r"\{[ \t]*state\b")
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})


class _Resolving:
    """Walks the frames of a spot from the outside in, with what the catalogue says of each."""

    def __init__(self, document: WorkflowDocument, offset: int, spot: Spot, end: int) -> None:
        self.document = document
        self.offset = offset
        self.spot = spot
        self.end = end
        self.step: Step | None = None
        self.in_step = False
        self.own: list[str | int] = []
        self.owner: Node | None = document.head.node
        self.block: Block | None = None
        self.holder: Shape | None = None
        self.keys: dict[str, str] = {}
        self.merged: frozenset[str] = frozenset()
        self.field: Field | None = None
        self.name = ""
        top = catalogue().agent if document.kind == "agent" else catalogue().workflow
        self.shape: Shape | None = Shape(types=("object",), block=top)

    def resolve(self) -> Where:
        spot = self.spot
        frames, path = spot.frames, spot.path
        if frames and path and path[0] == VIRTUAL:
            frames, path = frames[1:], path[1:]
        elif frames and frames[0].key == VIRTUAL:
            frames = frames[1:]
        for number, frame in enumerate(frames):
            last = number == len(frames) - 1
            if frame.flow and not frame.is_list and (number or not path) and self._is_text(frame):
                return self._braced(frame)
            if frame.is_list:
                self._enter_list(frame, int(path[number]) if number < len(path) else 0)
            else:
                self._enter_mapping(frame)
                if not (last and spot.kind == "key"):
                    self._enter_key(str(path[number]))
        return self._told(frames[-1] if frames else None)

    def _is_text(self, frame: Frame) -> bool:
        """Tell whether a brace begins a text that lacks its quotes."""
        shape = self.shape
        if shape is None:
            return False
        if shape.mark("template_deep") is not None and not shape.types:
            return _BRACED_PATH.match(self.document.source.text, frame.start) is not None
        return bool(shape.types) and _SCALARS.issuperset(shape.types)

    def _braced(self, frame: Frame) -> Where:
        text = self.document.source.text
        line = line_end(text, self.offset)
        region = Span(frame.start, frame.start + len(text[frame.start : line].rstrip(" \t")))
        if self.spot.flow and self.spot.frames[0].flow:
            region = Span(frame.start, self.spot.span.end)
        region = Span(region.start, max(region.end, self.offset))
        kind: Kind = "item" if self.own and isinstance(self.own[-1], int) else "value"
        outer = self.spot.frames[: self.spot.frames.index(frame)]
        return Where(
            kind, self.document, self.offset, region, self.step, self.in_step, tuple(self.own), self.block, self.holder,
            self.name, self.field, self.shape, self.keys, self.merged, (), text_at(text, region, "plain", False, self.offset),
            flow=bool(outer and outer[-1].flow), braced=True,
        )  # fmt: skip

    def _enter_mapping(self, frame: Frame) -> None:
        text = self.document.source.text
        self.keys = {name: text[span.start : span.end] for name, span in frame.names.items()}
        node = follow(find(self.owner, tuple(self.own)))
        self.merged = frozenset()
        if isinstance(node, MappingNode):
            self.merged = frozenset(key.value for key, _, inherited in entries(node) if inherited) - set(self.keys)
        self.holder = self.shape
        self.block = block_for(self.shape, self.keys, self.step if not self.own else None)

    def _enter_key(self, name: str) -> None:
        self.name = name
        self.field = described(self.block, name)
        self.shape = self.field.shape if self.field is not None else _below(self.holder) if self.block is None else None
        self.own.append(name)
        if self.shape is not None and self.shape.block == catalogue().workflow:
            self._enter_child()

    def _enter_child(self) -> None:
        """Go on in the workflow that is written in place here."""
        child = self.document.children.get(self.step.id) if self.step is not None and self.step.id else None
        if child is not None and child.path is None and child.document is not None:
            self.document = child.document
            self.owner = child.document.head.node
        else:
            self.owner = None
        self.step, self.in_step, self.own = None, False, []

    def _enter_list(self, frame: Frame, index: int) -> None:
        self.own.append(index)
        shape = self.shape
        self.shape = item_shape(shape) or (_below(shape) if shape is not None and shape.item is None else None)
        if self.shape is not None and self.shape.block == STEP:
            self.in_step, self.own = True, []
            self.step = self._step_in(frame)
            self.owner = self.step.facts.node if self.step is not None else None

    def _step_in(self, frame: Frame) -> Step | None:
        """Return the step that is the current item of a list of steps."""
        document = self.document
        steps = document.tree.steps
        last = frame.follows if frame.follows >= 0 else self.end
        if frame.flow:
            found = nearest_item(steps, self.offset)
        else:
            found = bisect_left(steps, frame.begins, key=start_of)
        if not 0 <= found < len(steps) or start_of(steps[found]) > last or isinstance(steps[found].node, Alias):
            return None
        at = bisect_left(document.steps, found, key=lambda step: step.index)
        return document.steps[at] if at < len(document.steps) and document.steps[at].index == found else None

    def _told(self, innermost: Frame | None) -> Where:
        spot, text = self.spot, self.document.source.text
        own, block, keys, merged = tuple(self.own), self.block, self.keys, self.merged
        kind, span, glued = spot.kind, spot.span, spot.glued
        shape, field, name, holder = self.shape, self.field, self.name, self.holder
        items: tuple[str, ...] = ()
        if spot.kind == "item" and innermost is not None:
            if spot.dash:
                self.step = None
            block, keys, merged = block_for(shape, {}, None), {}, frozenset()
            items = tuple(text[at.start : at.end] for at in innermost.items)
        elif spot.kind == "key":
            shape, field, name = self.holder, None, ""
            before, colon, _ = text[span.start : span.end].partition(":")
            known = described(block, before)
            if colon and known is not None and self.offset > span.start + len(before) and spot.style == "plain":
                # `key:word`, where the blank is missing
                kind, glued, own = "value", True, (*own, before)
                span = Span(span.start + len(before) + 1, span.end)
                shape, field, name = known.shape, known, before
        dash, column = spot.dash, spot.column
        if kind == "value" and spot.own_line and shape is not None and spot.style == "plain" and not glued:
            if shape.types and set(shape.types) <= {"object", "null"}:
                kind, block, holder = "key", block_for(shape, {}, None), shape
                keys, merged, field, name = {}, frozenset(), None, ""
            elif shape.types and set(shape.types) <= {"array", "null"}:
                kind, dash, shape = "item", True, item_shape(shape)
                own, keys, merged = (*own, 0), {}, frozenset()
                if shape is not None and shape.block == STEP:
                    self.in_step, own = True, ()
                block = block_for(shape, {}, None)
        found = Where(
            kind, self.document, self.offset, span, self.step, self.in_step, own, block, holder, name, field, shape,
            keys, merged, items, TextAt(), spot.style, spot.open, spot.flow, False, spot.colon, glued, dash,
            spot.own_line, column, spot.missing,
        )  # fmt: skip
        if kind == "key":
            return found
        if (
            kind == "item"
            and spot.kind == "value"
            and spot.span == spot.region
            and not spot.region.end > spot.region.start
        ):
            return found
        region = spot.region if kind == spot.kind else span
        return found._replace(text=text_at(text, region, spot.style, spot.open, self.offset))


def _below(shape: Shape | None) -> Shape | None:
    """Return the shape of what stands in an open mapping, or a list whose items are anything; marks on any depth go on."""
    if shape is None:
        return None
    if shape.any_of:
        shape = catalogue().alternative(shape, "object") or shape
    deep = tuple(mark for mark in shape.marks if mark.kind in ("template_deep", "json_schema"))
    values = shape.values
    if deep and (values is None or values == Shape()):
        return Shape(marks=deep)
    return values


@lru_cache(maxsize=1)
def any_step() -> Block:
    """Return what is known of a step whose type isn't: the keys that all have, and the types there are."""
    blocks = [catalogue().blocks[name] for name in catalogue().steps.values()]
    fields = {name: blocks[0].fields[name] for name in catalogue().common}
    types: dict[str, str] = {}
    for block in blocks:
        types.update(block.fields["type"].shape.enum or {})
    fields["type"] = fields["type"]._replace(shape=fields["type"].shape._replace(enum=types))
    return Block(STEP, "step", "One step of a workflow.", fields)


def described(block: Block | None, name: str) -> Field | None:
    """Return a block's field; the type of a step with every type, since another one may be meant.

    While a step's type isn't known, its fields are those of the first type that has them.
    """
    if block is not None and block.name == STEP and name not in block.fields:
        known = catalogue()
        blocks = (known.blocks[of_type] for of_type in known.steps.values())
        return next((each.fields[name] for each in blocks if name in each.fields), None)
    field = block.fields.get(name) if block is not None else None
    if field is not None and block is not None and list(field.shape.enum or ()) == [block.tag]:
        return any_step().fields[name]
    return field


def block_for(shape: Shape | None, keys: Mapping[str, str], step: Step | None) -> Block | None:
    """Return the block that describes a mapping of this shape that has these keys (each with its value's source).

    ``step`` is the step that the mapping is, if it is one: a merge key may say its type.
    """
    if shape is None:
        return None
    if shape.any_of:
        shape = catalogue().alternative(shape, "object", list(keys)) or shape
    if shape.block == STEP:
        written = keys.get("type", "").strip("\"'")
        found = catalogue().step(written)
        if found is None and not written and step is not None:
            found = step.facts.block
        return found or any_step()
    return catalogue().blocks.get(shape.block) if shape.block is not None else None
