"""What stands at an offset: the innermost node, how it is reached, and what the catalogue says about it.

Works on what was read: a text that can't be read at the place in question gives the nearest thing around it. Completion, which
has to work in half-typed text, has ways of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.model.catalogue import STEP, Block, Field, Shape, catalogue
from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Path, Scalar, Sequence
from agentloom.syntax.resolve import resolve
from agentloom.syntax.values import entries
from agentloom.text import Span


class Hit(NamedTuple):
    """The innermost node at an offset.

    ``document`` is the one that the node belongs to: that of the file, or of a workflow written in place inside it. ``step`` is
    None in the head. Nodes, ``chain`` and ``node``, are in offsets relative to ``base``: document offset = base + offset.
    ``path`` leads from the step's (or head's) mapping to the node: keys and numbers of items, the key itself included when
    ``is_key``. ``block`` describes the mapping that the innermost entry stands in, ``field`` the entry; ``shape`` is what the
    entry's value, or the item of its list, may be. All three are None where the catalogue knows nothing.
    """

    document: WorkflowDocument
    step: Step | None
    base: int
    chain: tuple[Node, ...]
    node: Node
    path: Path
    is_key: bool
    entry: Entry | None = None
    block: Block | None = None
    field: Field | None = None
    shape: Shape | None = None

    @property
    def span(self) -> Span:
        """Where the node stands, in document offsets."""
        return self.node.span.shift(self.base)

    @property
    def facts(self) -> Facts:
        """The facts of the step, or of the head."""
        return self.step.facts if self.step is not None else self.document.head


def step_at(document: WorkflowDocument, offset: int) -> Step | None:
    """Return the step whose text holds an offset (its last character's end included); an alias counts as its own place."""
    for step in document.steps:
        span = step.alias or step.place(step.facts.node.span)
        if span.contains(offset):
            return step
    return None


def hit_at(document: WorkflowDocument, offset: int) -> Hit | None:
    """Return what stands at an offset; None in blank places and comments outside every node.

    A place between two nodes belongs to the one that begins there.
    """
    step = step_at(document, offset)
    if step is not None and step.alias is None:
        child = document.children.get(step.id) if step.id is not None else None
        if child is not None and child.path is None and child.document is not None:
            located = step.facts.fields.get("workflow_inline")
            if located is not None and step.place(located.value.span).contains(offset):
                inner = hit_at(child.document, offset)
                if inner is not None:
                    return inner
        return _descend(document, step, step.base, step.facts.node, step.facts.block, offset)
    if step is not None:
        return _alias_step(document, step, offset)
    return _descend(document, None, document.base, document.head.node, document.head.block, offset)


def _alias_step(document: WorkflowDocument, step: Step, offset: int) -> Hit | None:
    for placed in document.tree.steps:
        if isinstance(placed.node, Alias) and placed.node.span.shift(placed.base).contains(offset):
            return Hit(document, step, placed.base, (placed.node,), placed.node, (), False)
    return None


def _descend(
    document: WorkflowDocument, step: Step | None, base: int, top: Node, block: Block | None, offset: int
) -> Hit | None:
    at = offset - base
    if not top.span.contains(at):
        return None
    chain: list[Node] = [top]
    path: list[str | int] = []
    shape: Shape | None = Shape(types=("object",), block=block.name) if block is not None else None
    hit = Hit(document, step, base, (top,), top, (), False, shape=shape)
    node = top
    while True:
        if isinstance(node, Mapping):
            owner = block if node is top else block_of(shape, node)
            entry = _inner(node, at)
            if entry is None:
                return hit
            name = entry.key.value if isinstance(entry.key, Scalar) else ""
            field = owner.fields.get(name) if owner is not None else None
            values = shape.values if shape is not None and owner is None else None
            is_key = entry.key.span.contains(at) and not (entry.value.span.start == at and entry.value.span.end > at)
            node = entry.key if is_key else entry.value
            shape = field.shape if field is not None else values
            path.append(name)
            chain.append(node)
            hit = Hit(document, step, base, tuple(chain), node, tuple(path), is_key, entry, owner, field, shape)
            if is_key:
                return hit
        elif isinstance(node, Sequence):
            number = _item(node, at)
            if number is None:
                return hit
            node = node.items[number]
            shape = item_shape(shape)
            path.append(number)
            chain.append(node)
            hit = hit._replace(chain=tuple(chain), node=node, path=tuple(path), is_key=False, shape=shape)
        else:
            return hit


def block_of(shape: Shape | None, node: Mapping) -> Block | None:
    """Return the block that describes a mapping whose value has this shape."""
    if shape is None:
        return None
    if shape.any_of:
        shape = catalogue().alternative(shape, "object", [key.value for key, _, _ in entries(node)]) or shape
    if shape.block == STEP:
        for key, value, _ in entries(node):
            target = value.target if isinstance(value, Alias) else value
            if key.value == "type" and isinstance(target, Scalar):
                type_ = resolve(target)
                return catalogue().step(type_) if isinstance(type_, str) else None
        return None
    return catalogue().blocks.get(shape.block) if shape.block is not None else None


def item_shape(shape: Shape | None) -> Shape | None:
    """Return the shape of a list's items."""
    if shape is None:
        return None
    if shape.any_of:
        shape = catalogue().alternative(shape, "array") or shape
    return shape.item


def _inner(node: Mapping, at: int) -> Entry | None:
    found = None
    for entry in node.entries:
        if entry.key.span.start > at:
            break
        if entry.key.span.contains(at) or entry.value.span.contains(at):
            found = entry
    return found


def _item(node: Sequence, at: int) -> int | None:
    found = None
    for number, item in enumerate(node.items):
        if item.span.start > at:
            break
        if item.span.contains(at):
            found = number
    return found
