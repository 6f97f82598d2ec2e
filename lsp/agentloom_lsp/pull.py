"""Diagnostics for clients that ask for them: of one document, and of every file of ours in the workspace."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from agentloom_lsp import uris
from agentloom_lsp.checking import Checked
from agentloom_lsp.session import Session


async def document_diagnostic(session: Session, params: types.DocumentDiagnosticParams) -> Any:
    """`textDocument/diagnostic`: those of the newest version, checked when the typing pauses."""
    try:
        checked = await session.scheduler.next(uris.key(params.text_document.uri))
    except KeyError:  # not open, or closed meanwhile
        return {"kind": "full", "items": []}
    return report_of(checked, params.previous_result_id)


async def workspace_diagnostic(session: Session, params: types.WorkspaceDiagnosticParams) -> Any:
    """`workspace/diagnostic`: all files of ours in the folders; open ones as they are in the editor."""
    before = {uris.key(known.uri): (known.uri, known.value) for known in params.previous_result_ids}
    items = []
    async for uri, version, checked in session.survey.results():
        told, previous = before.pop(uris.key(uri), (uri, None))
        items.append({"uri": told, "version": version, **report_of(checked, previous)})
    for told, _ in before.values():  # gone, or none of ours any more
        items.append({"uri": told, "version": None, "kind": "full", "items": []})
    return {"items": items}


def report_of(checked: Checked, previous: str | None) -> dict[str, Any]:
    """Return a document's report: in full, or that it is what the client has already."""
    if previous == checked.result_id:
        return {"kind": "unchanged", "resultId": checked.result_id}
    return {"kind": "full", "resultId": checked.result_id, "items": checked.reports}
