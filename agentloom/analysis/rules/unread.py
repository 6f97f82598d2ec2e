"""The rule about outputs that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.dataflow import Flow, dataflow
from agentloom.analysis.dataflow.declared import key_of
from agentloom.analysis.document import Facts, Step, WorkflowDocument
from agentloom.analysis.effort import mapping
from agentloom.analysis.rules.reading import doubtful
from agentloom.diagnostics import Finding

Key = tuple[str, ...]


def unread_output(document: WorkflowDocument) -> Iterator[Finding]:
    """A step writes a key that no other step reads, though steps come after it.

    What the last steps of a workflow write is its result; what one in the middle writes is mostly meant for those behind it. The step's
    result under `steps.<id>` counts, too.

    Read it, or leave `output` out.
    """
    if document.inline or document.kind != "workflow":
        return
    flow = dataflow(document)
    for step in _unread(flow):
        write = next(write for write in step.facts.writes if write.key == "output")
        yield Finding(
            "AL405", step.place(write.span), f"no other step reads `{write.name}`; read it, or leave `output` out"
        )


def _unread(flow: Flow) -> tuple[Step, ...]:
    """Return the steps whose output nobody reads; remembered from version to version while no read changes."""
    tables = flow.tables
    if any(one.reaching.certainty == "never" for one in doubtful(flow.document)):
        return ()  # one of the names that nobody sets may be meant
    kept = tables.unread
    if (
        kept is not None
        and len(kept[0]) == len(tables.steps)
        and all(a is b.facts or _keys(a) == _keys(b.facts) for a, b in zip(kept[0], tables.steps, strict=True))
    ):
        return tuple(tables.steps[at] for at in kept[1])
    reads = _reads(flow)
    found = () if reads is None else tuple(_unread_of(flow, reads))
    whole = tables.children or any(step.type == "agent" for step in tables.steps)  # others read, too
    tables.unread = None if whole else (tuple(step.facts for step in tables.steps), found)
    return tuple(tables.steps[at] for at in found)


def _unread_of(flow: Flow, reads: set[Key]) -> Iterator[int]:
    tables = flow.tables
    dependents = flow.document.graph.dependents
    first: dict[str, list[Key]] = {}
    for key in reads:
        first.setdefault(key[0], []).append(key)
    for at, step in enumerate(tables.steps):
        if "output" not in step.facts.fields or not dependents.get(step.id or "") or ("steps", step.id or "") in reads:
            continue
        write = next((write for write in step.facts.writes if write.key == "output"), None)
        if write is None:
            continue
        mine = key_of(write.parts)
        others = tables.writers_of(mine) & ~(1 << at)  # another step goes on with it
        if not others and not any(
            all(a == b for a, b in zip(mine, key, strict=False)) for key in first.get(mine[0], ())
        ):
            yield at


def _keys(facts: Facts) -> list[Key]:
    return [key_of(place.parts) for place in facts.occurrences if place.kind == "state" and place.role == "read"]


def _reads(flow: Flow, known: dict[int, set[Key] | None] | None = None) -> set[Key] | None:
    """Return all that a workflow and those below it that share its state read; None when that can't be told.

    ``known`` has that of workflows that were looked at already: many steps may run the same file.
    """
    known = {} if known is None else known
    if id(flow.document) not in known:
        known[id(flow.document)] = _read_in(flow, known)
    return known[id(flow.document)]


def _read_in(flow: Flow, known: dict[int, set[Key] | None]) -> set[Key] | None:
    if flow.broken:
        return None
    found: set[Key] = set()
    agents = mapping(flow.document.head.data.get("agents"))
    for step in flow.document.steps:
        if step.type == "agent" and not isinstance(agents.get(step.facts.text("agent") or ""), dict):
            return None  # its prompt stands in another file
        if any(place.kind == "state" and place.role == "read" and not place.parts for place in step.facts.occurrences):
            return None  # the whole state
        for read in flow.reads(step):
            key = key_of(read.parts)
            found.add(key[:2] if key[:1] == ("steps",) else key)
            if key == ("steps",):
                return None
        if step.type == "subworkflow":
            child = flow.child(step)
            if child is None:
                return None
            if child.outer is not None and not child.outer.isolated:
                below = _reads(child, known)
                if below is None:
                    return None
                found |= {key for key in below if key[0] != "steps"}
    return found
