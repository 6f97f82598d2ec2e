"""Code actions: fixes of the diagnostics under the cursor, all safe ones at once, suppressions, refactorings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from agentloom.ide.offers import KINDS, Offer, offers
from agentloom.ide.results import Refusal
from agentloom.text import Span
from agentloom_lsp import uris
from agentloom_lsp.asking import Asked, asked
from agentloom_lsp.client import find
from agentloom_lsp.convert import Position
from agentloom_lsp.features.editing import workspace_edit
from agentloom_lsp.handshake import ACTION_KINDS
from agentloom_lsp.session import Session

REQUEST_FAILED = -32803
CONTENT_MODIFIED = -32801
AUTOMATIC = 2


async def code_action(session: Session, params: types.CodeActionParams) -> list[dict[str, Any]] | None:
    """`textDocument/codeAction`."""
    found = await asked(session, params.text_document)
    if found is None or not session.client.literal_actions or uris.is_past(params.text_document.uri):
        return None
    start, end = params.range.start, params.range.end
    span = found.places.span(Position(start.line, start.character), Position(end.line, end.character))
    only = params.context.only
    kinds = [kind for kind in KINDS if _wanted(ACTION_KINDS[kind], only)]
    # An editor that asks by itself, for its light bulb, has no use for what can't be done.
    automatic = getattr(params.context.trigger_kind, "value", params.context.trigger_kind) == AUTOMATIC
    if automatic and not only and span.start == span.end:
        kinds = [kind for kind in kinds if kind in ("fix", "fix_all")]  # else the bulb would burn on every line
    disabled = session.client.disabled_actions and not automatic
    project = session.project
    cheap = automatic and not session.client.resolves_actions

    def work() -> list[dict[str, Any]]:
        return [
            action
            for offer in offers(found.document, span, kinds, session.client.creates_files, not automatic, project)
            if (offer.refused is None or disabled)
            and not (cheap and offer.costly)
            and (action := _action(session, found, offer, span)) is not None
        ]

    return await session.worker.submit(work)


async def resolve(session: Session, params: types.CodeAction) -> dict[str, Any]:
    """`codeAction/resolve`: work out the edit of an action that was offered without one; one that has its edit is complete."""
    if params.edit is not None or params.disabled is not None:
        whole: dict[str, Any] = session.unstructure(params)
        return whole
    data = params.data
    uri, kind, title = _told(data, "uri"), _told(data, "kind"), _told(data, "title")
    found = await asked(session, types.TextDocumentIdentifier(str(uri)))
    if found is None or found.document.source.version != _told(data, "version") or kind not in KINDS:
        raise JsonRpcException("the text has changed since this was offered", CONTENT_MODIFIED)
    span = Span(int(_told(data, "start") or 0), int(_told(data, "end") or 0))
    project = session.project

    def work() -> dict[str, Any]:
        for offer in offers(found.document, span, (kind,), session.client.creates_files, project=project):
            if offer.title == title:
                if offer.refused is not None:
                    raise Refusal(offer.refused)
                action = _shown(found, offer)
                action["edit"] = workspace_edit(session, offer.changes())
                return action
        raise Refusal("this can't be done here any more")

    try:
        return await session.worker.submit(work)
    except Refusal as refusal:
        raise JsonRpcException(str(refusal), REQUEST_FAILED) from None


def _action(session: Session, found: Asked, offer: Offer, span: Span) -> dict[str, Any] | None:
    """Return an offer as the client takes it; None when it turns out that it can't be done."""
    action = _shown(found, offer)
    if offer.refused is not None:
        action["disabled"] = {"reason": offer.refused}
    elif offer.costly and session.client.resolves_actions:
        source = found.document.source
        action["data"] = {
            "uri": source.uri,
            "version": source.version,
            "kind": offer.kind,
            "title": offer.title,
            "start": span.start,
            "end": span.end,
        }
    else:
        try:
            action["edit"] = workspace_edit(session, offer.changes())
        except Refusal as refusal:
            if not session.client.disabled_actions:
                return None
            action["disabled"] = {"reason": str(refusal)}
    return action


def _shown(found: Asked, offer: Offer) -> dict[str, Any]:
    action: dict[str, Any] = {"title": offer.title, "kind": ACTION_KINDS[offer.kind]}
    if offer.cures:
        action["diagnostics"] = [found.checked.reports[number] for number in offer.cures]
    if offer.kind == "fix":
        action["isPreferred"] = offer.preferred
    return action


def _wanted(kind: str, only: Iterable[Any] | None) -> bool:
    """Tell whether a kind is among those asked for; a kind covers those below it."""
    if only is None:
        return True
    named = [str(getattr(name, "value", name)) for name in only]
    return any(name == "" or kind == name or kind.startswith(f"{name}.") for name in named)


def _told(data: Any, name: str) -> Any:
    """Return what stands in an action's data, however the library hands it on."""
    return find(data, name) if isinstance(data, dict) else getattr(data, name, None)
