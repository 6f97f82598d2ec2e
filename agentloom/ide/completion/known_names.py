"""Names to propose in what is inserted: of steps and agents that are there, and an id that no step has."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.model.catalogue import Shape

Propose = Callable[[Shape], str | None]
"""From the shape of a text to a name that fits; None when it names nothing, or nothing of its kind is there."""


def proposals(document: WorkflowDocument, offset: int, step: Step | None) -> Propose:
    """Return what proposes names in (or for) a step at a place."""

    @cache
    def free() -> str:
        return free_id(document.source.text)

    def propose(shape: Shape) -> str | None:
        for mark in shape.marks:
            if mark.kind == "defines" and mark.of == "step":
                return free()
            if mark.kind == "ref" and mark.of == "step":
                return _step(document, offset, step)
            if mark.kind == "ref" and mark.of == "agent":
                agents = document.head.data.get("agents")
                first = next(iter(agents), None) if isinstance(agents, dict) else None
                return first if isinstance(first, str) else None
        return None

    return propose


def _step(document: WorkflowDocument, offset: int, step: Step | None) -> str | None:
    own = step.id if step is not None else None
    if own is not None:
        waiting = document.graph.dependents.get(own)
        if waiting:
            return waiting[0]
    return next((other.id for other in nearest(document, offset, step) if other.id != own), None)


def nearest(document: WorkflowDocument, offset: int, step: Step | None) -> Iterator[Step]:
    """Yield a document's steps that have an id, each id once: those above a place, upwards, then those below it."""
    steps = document.steps
    index = step.index if step is not None else items_above(document, offset)
    middle = bisect_left(steps, index, key=lambda other: other.index)
    seen: set[str] = set()
    for number in [*range(middle - 1, -1, -1), *range(middle, len(steps))]:
        name = steps[number].id
        if name is not None and name not in seen:
            seen.add(name)
            yield steps[number]


def items_above(document: WorkflowDocument, offset: int) -> int:
    """Return how many items of `steps` begin before a place."""
    return bisect_left(document.tree.steps, offset, key=lambda placed: placed.base + placed.node.span.start)


def free_id(text: str) -> str:
    """Return an id that no step has: `step_` and a number, that of the step if all are counted.

    It is read off the text: half-typed lines hide steps, of workflows inside a step above all.
    """
    number = 1 + sum(1 for _ in re.finditer(r"^[ \t]*-[ \t]+\{?[ \t]*id[ \t]*:", text, re.MULTILINE))
    while re.search(rf"\bstep_{number}\b", text):
        number += 1
    return f"step_{number}"
