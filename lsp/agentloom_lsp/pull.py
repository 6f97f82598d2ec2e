"""Diagnostics for clients that ask for them: of one document, and of every file of ours in the workspace."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from agentloom_lsp import uris
from agentloom_lsp.checking import Checked
from agentloom_lsp.session import Session

PART = 100
"""Reports sent at once to a client that takes the answer in parts."""


async def document_diagnostic(session: Session, params: types.DocumentDiagnosticParams) -> Any:
    """`textDocument/diagnostic`: those of the newest version, checked when the typing pauses."""
    try:
        checked = await session.scheduler.next(uris.key(params.text_document.uri))
    except KeyError:  # not open, or closed meanwhile
        return {"kind": "full", "items": []}
    return report_of(checked, params.previous_result_id)


async def workspace_diagnostic(session: Session, params: types.WorkspaceDiagnosticParams) -> Any:
    """`workspace/diagnostic`: all files of ours in the folders; open ones as they are in the editor.

    A client that takes the answer in parts leaves the question standing: it is told what has changed since its last answer, as
    soon as there is something. Editors ask again whenever they are answered, all day.
    """
    before: dict[str, tuple[str, str | None]] = {
        uris.key(known.uri): (known.uri, known.value) for known in params.previous_result_ids
    }
    token = params.partial_result_token
    if token is None:
        items, _ = await _look_around(session, params, before)
        return {"items": items}
    poll = session.poll = object()  # an earlier question that still stands is answered now
    session.bell.ring()
    while True:
        heard = session.bell.count
        items, sent = await _look_around(session, params, before)
        if items or sent or not session.polled or session.poll is not poll:
            session.polled = True
            return {"items": items}
        await session.bell.after(heard)


async def _look_around(
    session: Session, params: types.WorkspaceDiagnosticParams, before: dict[str, tuple[str, str | None]]
) -> tuple[list[dict[str, Any]], bool]:
    """Return reports on all files, and whether others were sent ahead.

    ``before`` has the client's spelling and result id of each file, and is brought up to date. What is unchanged is only said to a
    client that gets everything at once.
    """
    token = params.partial_result_token
    progress = session.progress("Checking workflows", params.work_done_token, not session.survey.finished)
    items: list[dict[str, Any]] = []
    sent = False
    there: set[str] = set()
    try:
        async for uri, version, checked in session.survey.results(progress):
            key = uris.key(uri)
            there.add(key)
            told, previous = before.get(key, (uri, None))
            report = report_of(checked, previous)
            before[key] = told, checked.result_id
            if token is None or report["kind"] == "full":
                items.append({"uri": told, "version": version, **report})
            if token is not None and len(items) >= PART:
                session.wire.notify("$/progress", {"token": token, "value": {"items": items}})
                items, sent = [], True
    finally:
        progress.end()
    session.elsewhere.settings_used()
    if not progress.cancelled:
        for key in before.keys() - there:  # gone, or none of ours any more
            told, _ = before.pop(key)
            items.append({"uri": told, "version": None, "kind": "full", "items": []})
    return items, sent


def report_of(checked: Checked, previous: str | None) -> dict[str, Any]:
    """Return a document's report: in full, or that it is what the client has already."""
    if previous == checked.result_id:
        return {"kind": "unchanged", "resultId": checked.result_id}
    return {"kind": "full", "resultId": checked.result_id, "items": checked.reports}
