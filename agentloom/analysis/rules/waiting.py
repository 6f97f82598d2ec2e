"""The fix that makes one step wait for another."""

from __future__ import annotations

from agentloom.analysis import edits
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.diagnostics import Edit, Fix
from agentloom.syntax.nodes import Mapping


def wait_for(document: WorkflowDocument, step: Step, name: str) -> tuple[Fix, ...]:
    """Return the fix that makes a step depend on another; none where that would close a ring, or can't be written."""
    node = step.facts.node
    graph = document.graph
    if not isinstance(node, Mapping) or step.alias is not None or step.id is None or step.id == name:
        return ()
    if name not in graph.layer_of or graph.is_upstream(step.id, name):
        return ()
    located = step.facts.fields.get("depends_on")
    if located is not None and located.via is not None:
        return ()  # it comes from a merge key, and others have it, too
    added = edits.add_item(step.facts.unit.text, step.facts.fields, node, "depends_on", name)
    if not added:
        return ()
    moved = tuple(Edit(edit.span.shift(step.base), edit.text) for edit in added)
    return (Fix(f"make `{step.id}` depend on `{name}`", moved, safe=False),)
