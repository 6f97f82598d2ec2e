"""The catalogue: every block and field of the two file kinds as plain data, generated from the pydantic model.

``catalogue.json`` beside this module is written by ``agentloom.model.export`` and checked for drift by a test. It exists so that
the shape check, completion and hover need not import pydantic: that import alone costs more than checking a file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.model.marks import Mark
from agentloom.records import record

CATALOGUE_FILE = Path(__file__).with_name("catalogue.json")

STEP = "step"
"""Stands as a shape's ``block`` where the mapping's own ``type`` decides, see ``Catalogue.step``."""


class Shape(NamedTuple):
    """What a value may be.

    ``types`` uses JSON Schema's words (``string integer number boolean null object array``); empty means any. ``enum`` maps
    each allowed value to its description; null is allowed besides if ``types`` says so. ``block`` names the block that describes
    an object, or is ``STEP`` for an object whose ``type`` decides; ``values`` is the shape of an open mapping's values; ``item``
    that of a list's items. ``any_of`` holds alternatives that types alone don't tell apart, see ``Catalogue.alternative``; such a
    shape has nothing else but marks.

    A ``pattern`` has to match the whole text (use ``re.fullmatch``: with ``re.match`` its ``$`` would let a final line break
    pass). Bounds hold for numbers only. Numbers are finite: NaN, infinity and whole
    numbers beyond a float fit no shape (of type `number`). An integer is no ``5.0`` and no true.
    """

    types: tuple[str, ...] = ()
    enum: Mapping[str, str] | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    min_items: int | None = None
    min_length: int | None = None
    pattern: str | None = None
    block: str | None = None
    item: Shape | None = None
    values: Shape | None = None
    any_of: tuple[Shape, ...] = ()
    marks: tuple[Mark, ...] = ()

    def mark(self, kind: str) -> Mark | None:
        """Return the mark of a kind, if the shape carries it."""
        for mark in self.marks:
            if mark.kind == kind:
                return mark
        return None


class Field(NamedTuple):
    """One key of a block. ``has_default`` tells a default of null from none at all."""

    name: str
    shape: Shape
    description: str
    required: bool = False
    default: Any = None
    has_default: bool = False
    examples: tuple[Any, ...] = ()


class Block(NamedTuple):
    """A mapping with known keys. ``tag`` is the ``type`` value of a step block."""

    name: str
    title: str
    description: str
    fields: Mapping[str, Field]
    tag: str | None = None


@record()
class Catalogue:
    """All blocks. ``workflow`` and ``agent`` are the names of the two file kinds' top blocks; ``steps`` maps type to block name."""

    blocks: Mapping[str, Block]
    steps: Mapping[str, str]
    workflow: str = "workflow"
    agent: str = "agent"
    common: tuple[str, ...] = ()
    """Keys that every step type has."""

    def step(self, type_: str) -> Block | None:
        """Return the block of a step type."""
        name = self.steps.get(type_)
        return self.blocks[name] if name else None

    def alternative(self, shape: Shape, type_: str, keys: Collection[str] = ()) -> Shape | None:
        """Return the alternative of a shape that a value of JSON type ``type_`` is measured by; None if none takes the type.

        Among several blocks a mapping with these ``keys`` is measured by the last one whose required keys are all there, else
        by the first. The JSON Schema says the same with ``if``. A shape without alternatives is returned as it is.
        """
        if not shape.any_of:
            return shape
        fitting = [
            s for s in shape.any_of if not s.types or type_ in s.types or (type_ == "integer" and "number" in s.types)
        ]
        for candidate in reversed(fitting[1:]):
            if candidate.block and self.required(candidate.block) <= set(keys):
                return candidate
        return fitting[0] if fitting else None

    def required(self, block: str) -> frozenset[str]:
        """Return the keys that a block can't do without."""
        return frozenset(field.name for field in self.blocks[block].fields.values() if field.required)


def _shape(data: dict[str, Any]) -> Shape:
    return Shape(
        types=tuple(data.get("types", ())),
        enum=data.get("enum"),
        minimum=data.get("minimum"),
        maximum=data.get("maximum"),
        exclusive_minimum=data.get("exclusive_minimum"),
        min_items=data.get("min_items"),
        min_length=data.get("min_length"),
        pattern=data.get("pattern"),
        block=data.get("block"),
        item=_shape(data["item"]) if "item" in data else None,
        values=_shape(data["values"]) if "values" in data else None,
        any_of=tuple(_shape(s) for s in data.get("any_of", ())),
        marks=tuple(Mark(*m) for m in data.get("marks", ())),
    )


def _field(name: str, data: dict[str, Any]) -> Field:
    return Field(
        name=name,
        shape=_shape(data["shape"]),
        description=data["description"],
        required=data.get("required", False),
        default=data.get("default"),
        has_default="default" in data,
        examples=tuple(data.get("examples", ())),
    )


def parse(data: Mapping[str, Any]) -> Catalogue:
    """Return the catalogue that a parsed ``catalogue.json`` describes."""
    blocks = {
        name: Block(
            name=name,
            title=block["title"],
            description=block["description"],
            fields={key: _field(key, value) for key, value in block["fields"].items()},
            tag=block.get("tag"),
        )
        for name, block in data["blocks"].items()
    }
    return Catalogue(blocks=blocks, steps=data["steps"], common=tuple(data["common"]))


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """Return the catalogue, read once from its file."""
    return parse(json.loads(CATALOGUE_FILE.read_text(encoding="utf-8")))
