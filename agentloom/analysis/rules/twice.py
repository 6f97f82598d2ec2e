"""`state.` where paths begin below it: `output: state.reply` writes a key in a key `state`, which nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis import edits
from agentloom.analysis.dataflow import dataflow
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.rules.reading import Doubtful
from agentloom.analysis.symbols import Occurrence
from agentloom.diagnostics import Edit, Finding, Fix, Related
from agentloom.language.paths import format_path


def state_twice(one: Doubtful) -> Finding | None:
    """Return the finding for `state.` where paths begin below it: in a read that is a bare path, or in the `output` that was meant."""
    flow, parts = one.flow, one.parts
    place, base = one.read.occurrence, one.read.base
    others: tuple[Related, ...] = ()
    if parts[0] == "state" and len(parts) > 1:
        if flow.reaching(one.step, parts[1:]).certainty not in ("always", "declared", "sometimes"):
            return None
        said = f"paths here begin below the state, so nothing sets `{format_path(parts)}`; leave out `state.`"
    else:
        writer = next(
            (found for found in flow.writers(("state", *parts)) if found.parts[:2] == ("state", parts[0])), None
        )
        if writer is None:
            return None
        others = (Related(writer.span, f"`{writer.id}` writes it here"),)
        place = next(write for write in writer.step.facts.writes if write.parts == writer.parts)
        base = writer.step.base
        said = f"`{writer.id}` writes `{format_path(parts)}` below a key `state`, so it is not found here; leave out `state.` in its `output`"
    return Finding("AL401", one.read.span, said, related=others, fixes=_left_out(place, base))


def conversations_twice(document: WorkflowDocument) -> Iterator[Finding]:
    """Yield a finding for each conversation that is kept in a key `state` which nothing declares: what `state` holds of it is never read."""
    for step in document.steps:
        for place in step.facts.writes:
            if place.key != "conversation" or place.parts[0] != "state" or len(place.parts) < 2:
                continue
            if dataflow(document).declared.origin(("state",)) is None:
                said = f"paths here begin below the state, so this conversation isn't the one in `{format_path(place.parts[1:])}`; leave out `state.`"
                yield Finding("AL401", step.place(place.span), said, fixes=_left_out(place, step.base))


def _left_out(place: Occurrence, base: int) -> tuple[Fix, ...]:
    """Return the fix that takes `state.` out of a path."""
    if len(place.parts_inside) < 2:
        return ()
    edit = edits.replace_inside(place.node, place.parts_inside[0][0], place.parts_inside[1][0], "")
    moved = tuple(Edit(e.span.shift(base), e.text) for e in edit)
    return (Fix("leave out `state.`", moved, safe=False),) if moved else ()
