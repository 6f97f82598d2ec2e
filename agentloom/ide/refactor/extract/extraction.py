"""The extraction as a whole: checked, written, and read again."""

from __future__ import annotations

from collections.abc import Sequence

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.refactor.checked import after
from agentloom.ide.refactor.extract.checks import check
from agentloom.ide.refactor.extract.interface import interface_of
from agentloom.ide.refactor.extract.selection import Selection
from agentloom.ide.refactor.extract.writing import Writing
from agentloom.ide.refactor.replies import replies_within
from agentloom.ide.results import Changes, NewFile, Project, Refusal, TextEdits
from agentloom.text import Span


def steps_in(document: WorkflowDocument, span: Span) -> tuple[str, ...]:
    """Return the ids of the steps that a selection touches, in file order."""
    found: list[str] = []
    for step in document.steps:
        place = step.alias or step.place(step.facts.node.span)
        if place.start <= span.end and span.start <= place.end and step.id is not None:
            found.append(step.id)
    return tuple(dict.fromkeys(found))


def extract(document: WorkflowDocument, ids: Sequence[str], to_file: bool, project: Project | None = None) -> Changes:
    """Return the changes that move steps to a subworkflow, recordings included. Raises ``Refusal``."""
    selection = Selection(document, tuple(ids))
    check(selection)
    changes = Writing(selection, interface_of(selection)).changes(to_file)
    edits = next(change for change in changes if isinstance(change, TextEdits)).edits
    result = after(document, edits, (change for change in changes if isinstance(change, NewFile)))
    if dict(result.graph.dependencies) != selection.expected:
        raise Refusal("the order of the steps would change")
    return (*changes, *replies_within(document, project, selection.ids, selection.name))


def why_not(document: WorkflowDocument, ids: Sequence[str]) -> str | None:
    """Return the reason for which steps can't be extracted; None when nothing speaks against it at first sight."""
    try:
        selection = Selection(document, tuple(ids))
        check(selection)
        interface_of(selection)
    except Refusal as refusal:
        return str(refusal)
    return None
