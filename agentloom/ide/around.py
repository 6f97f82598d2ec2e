"""The workflow around one that is written in place: what its steps see besides their own state."""

from __future__ import annotations

from typing import NamedTuple

from agentloom.analysis.document import Step, WorkflowDocument


class Around(NamedTuple):
    """Where a workflow written in place runs: the step of the document around it, and what is around that.

    ``isolated`` tells that it sees nothing of that state but the keys that `input` hands over, which are ``given``.
    """

    document: WorkflowDocument
    step: Step
    isolated: bool = False
    given: frozenset[str] = frozenset()
    around: Around | None = None


def around(root: WorkflowDocument, document: WorkflowDocument) -> Around | None:
    """Return what is around a document that is written in place somewhere in ``root``; None for ``root`` itself."""
    if document is root or not document.inline:
        return None
    todo: list[tuple[WorkflowDocument, Around | None]] = [(root, None)]
    while todo:
        parent, outer = todo.pop()
        for name, child in parent.children.items():
            if child.path is not None or child.document is None:
                continue
            step = parent.by_id[name]
            given = step.facts.data.get("input")
            isolated = step.facts.data.get("isolated_state") is True
            found = Around(parent, step, isolated, frozenset(given) if isinstance(given, dict) else frozenset(), outer)
            if child.document is document:
                return found
            todo.append((child.document, found))
    return None
