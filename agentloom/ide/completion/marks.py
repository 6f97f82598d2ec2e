"""Marks of a shape at the cursor, whichever of its alternatives carries them."""

from __future__ import annotations

from agentloom.model.catalogue import Shape
from agentloom.model.marks import Mark


def mark_of(shape: Shape | None, kind: str, of: str | None = None) -> Mark | None:
    """Return the mark of a kind that a value of this shape may carry; ``of`` narrows it down."""
    if shape is None:
        return None
    for each in (shape, *shape.any_of):
        for mark in each.marks:
            if mark.kind == kind and (of is None or mark.of == of):
                return mark
    return None
