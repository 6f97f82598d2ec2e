"""What a field begins with when it is added: a blank, a choice that comes next, or a block with what it can't do without."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentloom.ide.completion.known_names import Propose
from agentloom.ide.completion.layout import Bare, Blank, Writer
from agentloom.model.catalogue import STEP, Field, Shape, catalogue

OFFERED = frozenset({"ref", "model", "file", "state_read", "expression"})
"""Marks of texts whose values can be completed."""
FIRST_STEP = {"id": Blank("step_1"), "type": "llm_call", "prompt": Blank("Say hello."), "output": Blank("reply")}
"""What a workflow begins with."""


class Beginning(NamedTuple):
    """The source behind a key, as snippet text; ``retrigger``: something can be completed where the cursor then is."""

    text: str
    retrigger: bool = False


def has_choices(shape: Shape) -> bool:
    """Tell whether values of this shape can be completed."""
    if shape.any_of:
        return any(has_choices(other) or other.block is not None for other in shape.any_of)
    return shape.enum is not None or "boolean" in shape.types or any(mark.kind in OFFERED for mark in shape.marks)


def _is_offered(shape: Shape, propose: Propose) -> bool:
    """Tell whether there is something to choose: a name of a step only if there is another one."""
    mark = shape.mark("ref")
    return has_choices(shape) and not (mark is not None and mark.of == "step" and propose(shape) is None)


def begin(
    field: Field, writer: Writer, column: int, flow: bool, propose: Propose, lists_in_line: bool = False
) -> Beginning:
    """Return what stands behind the colon of a new key at ``column``."""
    shape, layout = field.shape, writer.layout
    if shape.any_of:
        return Beginning(" $0", True)
    if "array" in shape.types:
        return _list(field, writer, column, flow or lists_in_line, propose)
    if "object" in shape.types:
        required = needed(shape, propose)
        if required and flow:
            return Beginning(" " + writer.flow(required))
        if required:
            return Beginning(writer.below(required, column))
        known = shape.block is not None or bool(shape.marks)
        return Beginning(" {$0}" if flow else layout.newline + " " * (column + layout.width) + "$0", known)
    if has_choices(shape):
        return Beginning(" $0", _is_offered(shape, propose))
    return Beginning(" " + writer.scalar(first_value(field, propose), flow))


def _list(field: Field, writer: Writer, column: int, in_line: bool, propose: Propose) -> Beginning:
    item = field.shape.item or Shape()
    required = needed(item, propose)
    retrigger = _is_offered(item, propose) or item.block is not None
    if in_line:
        return Beginning(" [" + (writer.flow(required) if required else "$0") + "]", retrigger and not required)
    inner = column + writer.layout.dashes
    start = writer.layout.newline + " " * inner + "- "
    if required:
        return Beginning(start + writer.item(required, inner))
    if not retrigger and not has_choices(item):
        known = [*field.examples, *([field.default] if field.has_default else [])]
        example = next((e[0] for e in known if isinstance(e, list) and e), None)
        if example is not None:
            number = isinstance(example, (int, float))
            blank = Bare(plain_number(example)) if number else Blank(example)
            return Beginning(start + writer.scalar(blank, False))
    return Beginning(start + "$0", retrigger)


def needed(shape: Shape, propose: Propose) -> dict[str, Any]:
    """Return the keys that a block can't do without, each with a blank; empty for other shapes and for steps."""
    if shape.any_of or shape.block is None or shape.block == STEP:
        return {}
    fields = catalogue().blocks[shape.block].fields.values()
    return {field.name: _needed_value(field, propose) for field in fields if field.required}


def _needed_value(field: Field, propose: Propose) -> Any:
    item = field.shape.item
    return [FIRST_STEP] if item is not None and item.block == STEP else first_value(field, propose, True)


def first_value(field: Field, propose: Propose, filled: bool = False) -> Blank:
    """Return a blank with what a value may look like; an empty one where null will do and nothing is known (unless ``filled``)."""
    shape = field.shape
    number = bool({"number", "integer"} & set(shape.types)) and "string" not in shape.types
    nullable = "null" in shape.types
    known: list[Any] = [*([field.default] if field.has_default else []), *field.examples]
    if number:
        known = [*known, *([shape.minimum] if shape.minimum is not None else [])]
        value = next((value for value in known if isinstance(value, (int, float))), None if nullable else 0)
        return Blank("") if value is None else Bare(plain_number(value))
    name = propose(shape)
    if name is not None:
        return Blank(name)
    if nullable and not filled:
        return Blank("")
    if shape.enum:
        return Blank(next(iter(shape.enum)))
    return Blank(next((value for value in known if isinstance(value, str) and value), field.name))


def plain_number(value: float) -> str:
    """Return a number as people write it: without an exponent, and without a fraction where there is none."""
    return str(int(value)) if float(value).is_integer() else str(value)
