"""Code actions: the fixes of the diagnostics under the cursor, and all safe ones at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lsprotocol import types

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Diagnostic, Edit
from agentloom.text import Span
from agentloom_lsp import uris
from agentloom_lsp.checking import Checked
from agentloom_lsp.convert import Places, Position
from agentloom_lsp.handshake import FIX_ALL
from agentloom_lsp.session import Session

QUICK_FIX = "quickfix"


async def code_action(session: Session, params: types.CodeActionParams) -> list[dict[str, Any]] | None:
    """`textDocument/codeAction`."""
    try:
        checked = await session.scheduler.now(uris.key(params.text_document.uri))
    except KeyError:
        return None
    if checked.document is None or not session.client.literal_actions:
        return None
    start, end = params.range.start, params.range.end
    places = Places(checked.document.lines, session.client.encoding)
    span = places.span(Position(start.line, start.character), Position(end.line, end.character))
    actions = [*_quick_fixes(session, checked, checked.document, span), *_fix_all(session, checked, checked.document)]
    return [action for action in actions if _wanted(action["kind"], params.context.only)]


def safe_edits(diagnostics: Iterable[Diagnostic]) -> list[Edit]:
    """Return the edits of the first safe fix of each diagnostic, without those that touch one taken before."""
    taken: list[Edit] = []
    spans: list[Span] = []
    for diagnostic in diagnostics:
        fix = next((fix for fix in diagnostic.fixes if fix.safe), None)
        if fix is None:
            continue
        edits = [edit for edit in fix.edits if edit not in taken]
        if not any(_touch(edit.span, span) for edit in edits for span in spans):
            taken.extend(edits)
            spans.extend(edit.span for edit in edits)
    return taken


def _quick_fixes(
    session: Session, checked: Checked, document: WorkflowDocument, span: Span
) -> Iterator[dict[str, Any]]:
    for diagnostic, report in zip(document.diagnostics, checked.reports, strict=True):
        if diagnostic.span.start > span.end or diagnostic.span.end < span.start:
            continue
        for number, fix in enumerate(diagnostic.fixes):
            yield {
                "title": fix.title,
                "kind": QUICK_FIX,
                "diagnostics": [report],
                "isPreferred": number == 0 and fix.safe,
                "edit": _workspace_edit(session, document, fix.edits),
            }


def _fix_all(session: Session, checked: Checked, document: WorkflowDocument) -> Iterator[dict[str, Any]]:
    edits = safe_edits(document.diagnostics)
    if edits:
        yield {
            "title": "Fix everything that is safe to fix",
            "kind": FIX_ALL,
            "edit": _workspace_edit(session, document, edits),
        }


def _workspace_edit(session: Session, document: WorkflowDocument, edits: Iterable[Edit]) -> dict[str, Any]:
    places = Places(document.lines, session.client.encoding)
    texts = [{"range": places.range(edit.span), "newText": edit.text} for edit in edits]
    source = document.source
    if session.client.versioned_edits:
        identifier = {"uri": source.uri, "version": source.version}
        return {"documentChanges": [{"textDocument": identifier, "edits": texts}]}
    return {"changes": {source.uri: texts}}


def _wanted(kind: str, only: Iterable[Any] | None) -> bool:
    """Tell whether a kind is among those asked for; a kind covers those below it."""
    if only is None:
        return True
    asked = [str(getattr(name, "value", name)) for name in only]
    return any(name == "" or kind == name or kind.startswith(f"{name}.") for name in asked)


def _touch(one: Span, other: Span) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start
