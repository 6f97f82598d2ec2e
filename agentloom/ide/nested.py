"""Workflows written in place inside a step: documents of their own in the same text."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.syntax.nodes import Mapping


def written_in(document: WorkflowDocument, step: Step) -> WorkflowDocument | None:
    """Return the workflow that stands inside a step itself, not behind an alias, a merge key or a path."""
    if step.id is None or step.alias is not None:
        return None
    child = document.children.get(step.id)
    if child is None or child.path is not None or child.document is None or document.by_id[step.id] is not step:
        return None
    located = step.facts.fields.get("workflow_inline")
    if located is None or located.via is not None or not isinstance(located.value, Mapping):
        return None
    return child.document


def documents_in(document: WorkflowDocument) -> Iterator[WorkflowDocument]:
    """Yield a document, and every workflow written in place in it, at any depth."""
    todo = [document]
    while todo:
        found = todo.pop()
        yield found
        inner = [child for name in found.children if (child := written_in(found, found.by_id[name])) is not None]
        todo.extend(reversed(inner))
