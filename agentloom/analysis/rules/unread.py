"""The rule about outputs that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.dataflow import Flow, dataflow
from agentloom.analysis.dataflow.declared import key_of
from agentloom.analysis.document import WorkflowDocument
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
    writers = [
        step
        for step in document.steps
        if "output" in step.facts.fields and document.graph.dependents.get(step.id or "")
    ]
    if not writers:
        return
    flow = dataflow(document)
    reads = _reads(flow)
    if reads is None or any(one.reaching.certainty == "never" for one in doubtful(document)):
        return  # one of the names that nobody sets may be meant
    first: dict[str, list[Key]] = {}
    for key in reads:
        first.setdefault(key[0], []).append(key)
    for step in writers:
        write = next((write for write in step.facts.writes if write.key == "output"), None)
        if write is None or step.id is None or document.by_id[step.id] is not step or ("steps", step.id) in reads:
            continue
        mine = key_of(write.parts)
        if len(flow.writers(write.parts)) > 1:
            continue  # another step goes on with it
        if not any(all(a == b for a, b in zip(mine, key, strict=False)) for key in first.get(mine[0], ())):
            yield Finding(
                "AL405", step.place(write.span), f"no other step reads `{write.name}`; read it, or leave `output` out"
            )


def _reads(flow: Flow) -> set[Key] | None:
    """Return all that a workflow and those below it that share its state read; None when that can't be told."""
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
                below = _reads(child)
                if below is None:
                    return None
                found |= {key for key in below if key[0] != "steps"}
    return found
