"""Keys of the step above, where a new item could begin: many editors put the cursor there after the first line of a step.

Behind `- id: a` a new line begins below the dash in editors that don't know where YAML's keys stand, and what is typed there is
meant for the step that isn't finished.
"""

from __future__ import annotations

from agentloom.analysis.edits.places import line_end, line_start
from agentloom.ide.completion.keys import line_column
from agentloom.ide.completion.where import Where, where
from agentloom.model.catalogue import STEP


def step_above(place: Where) -> Where | None:
    """Return the place of a key in the step on the line above; None where the line is no first one of a new step, or that one is whole."""
    if place.kind != "item" or not place.dash or place.flow or place.style != "plain" or place.shape is None:
        return None
    if place.shape.block != STEP:
        return None
    source, start = place.source, line_start(place.source, place.span.start)
    if (
        start == 0
        or source[start : place.span.start].strip()
        or source[place.span.end : line_end(source, start)].strip()
    ):
        return None
    end = line_end(source, line_start(source, start - 1))
    line = source[line_start(source, end) : end]
    behind = where(place.root or place.document, end - (len(line) - len(line.rstrip())))
    if behind.kind != "value" or not behind.in_step or len(behind.path) != 1 or behind.flow or behind.block is None:
        return None
    keys = {**behind.keys, behind.name: ""}
    if all(
        field.name in keys or field.name in behind.merged for field in behind.block.fields.values() if field.required
    ):
        return None
    column = line_column(behind)
    here = place.span.start - start
    return place._replace(
        kind="key", step=behind.step, in_step=True, path=(), block=behind.block, holder=behind.holder, name="", field=None,
        shape=behind.holder, keys=keys, merged=behind.merged, items=(), dash=False, own_line=True, column=column,
        missing=column - here,
    )  # fmt: skip
