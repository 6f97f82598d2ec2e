"""The inlining as a whole: checked, written, and read again."""

from __future__ import annotations

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.refactor.checked import after
from agentloom.ide.refactor.inline.call import Call
from agentloom.ide.refactor.inline.checks import check
from agentloom.ide.refactor.inline.state import moves_of
from agentloom.ide.refactor.inline.writing import edits_of
from agentloom.ide.refactor.replies import replies_after
from agentloom.ide.results import Changes, Project, Refusal, TextEdits


def inline(document: WorkflowDocument, step: Step, project: Project | None = None) -> Changes:
    """Return the changes that put a subworkflow's steps in its place, recordings included. Raises ``Refusal``."""
    call = Call(document, step)
    check(call)
    edits = edits_of(call, moves_of(call))
    result = after(document, edits, known=call.child.diagnostics)
    found = {name: frozenset(needs) for name, needs in result.graph.dependencies.items()}
    if found != {name: frozenset(needs) for name, needs in call.needs.items()}:
        raise Refusal("the order of the steps would change")
    return (TextEdits(document.source, edits), *replies_after(document, project, call.me, call.ids))


def why_not(document: WorkflowDocument, step: Step) -> str | None:
    """Return the reason for which a subworkflow can't be inlined; None when nothing speaks against it at first sight."""
    try:
        call = Call(document, step)
        check(call)
        moves_of(call)
    except Refusal as refusal:
        return str(refusal)
    return None
