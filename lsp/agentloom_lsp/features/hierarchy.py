"""The call hierarchy over `depends_on`, through the workflows that steps run.

An item carries the trail to itself, so that the next request finds it in whatever the file has become.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsprotocol import types

from agentloom.analysis.context import path_of
from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.hierarchy import Call, Caller, callers_at, incoming, outgoing
from agentloom.ide.results import Project
from agentloom_lsp.asking import asked
from agentloom_lsp.client import find
from agentloom_lsp.features.locating import Locating
from agentloom_lsp.session import Session
from agentloom_lsp.worker import SEARCH

KINDS = {"step": types.SymbolKind.Function, "workflow": types.SymbolKind.Module}
Look = Callable[[WorkflowDocument, str, tuple[str, ...], Project], list[Call]]


async def prepare(session: Session, params: types.CallHierarchyPrepareParams) -> list[dict[str, Any]] | None:
    """`textDocument/prepareCallHierarchy`: the step that is meant at a place."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)

    def work() -> list[dict[str, Any]]:
        locating = Locating(session)
        return [_item(caller, locating) for caller in callers_at(found.document, offset)]

    return await session.worker.submit(work) or None


async def incoming_calls(
    session: Session, params: types.CallHierarchyIncomingCallsParams
) -> list[dict[str, Any]] | None:
    """`callHierarchy/incomingCalls`: what needs or runs it; the ranges are those in the caller."""
    return await _calls(session, params.item, incoming, "from")


async def outgoing_calls(
    session: Session, params: types.CallHierarchyOutgoingCallsParams
) -> list[dict[str, Any]] | None:
    """`callHierarchy/outgoingCalls`: what it needs and runs; the ranges are those in itself."""
    return await _calls(session, params.item, outgoing, "to")


async def _calls(session: Session, item: types.CallHierarchyItem, look: Look, name: str) -> list[dict[str, Any]] | None:
    found = await asked(session, item)
    opened = found.document if found is not None else None
    path, kind, trail = path_of(item.uri), find(item.data, "kind"), find(item.data, "trail")
    if not isinstance(kind, str) or not isinstance(trail, list) or not all(isinstance(part, str) for part in trail):
        return None

    def work() -> list[dict[str, Any]]:
        document = opened or (session.project.document(path) if path is not None else None)
        if document is None:
            return []
        locating = Locating(session)
        answer = []
        for call in look(document, kind, tuple(trail), session.project):
            source = call.end.place.source if name == "from" else document.source
            ranges = [locating.range(source, span) for span in call.spans]
            answer.append({name: _item(call.end, locating), "fromRanges": ranges})
        return answer

    return await session.worker.submit(work, SEARCH)


def _item(caller: Caller, locating: Locating) -> dict[str, Any]:
    place = caller.place
    said: dict[str, Any] = {
        "name": caller.name,
        "kind": KINDS[caller.kind].value,
        "uri": place.source.uri,
        "range": locating.range(place.source, place.whole or place.span),
        "selectionRange": locating.range(place.source, place.span),
        "data": {"kind": caller.kind, "trail": caller.trail},
    }
    if caller.detail:
        said["detail"] = caller.detail
    return said
