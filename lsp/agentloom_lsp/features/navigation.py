"""Going to definitions, finding references, lighting up the same name."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from agentloom.ide.navigation import HighlightKind, definition, highlights, references
from agentloom_lsp.asking import asked
from agentloom_lsp.features.locating import Locating
from agentloom_lsp.session import Session
from agentloom_lsp.worker import SEARCH

KINDS: dict[HighlightKind, types.DocumentHighlightKind] = {
    "text": types.DocumentHighlightKind.Text,
    "read": types.DocumentHighlightKind.Read,
    "write": types.DocumentHighlightKind.Write,
}


async def go_to_definition(session: Session, params: types.DefinitionParams) -> list[dict[str, Any]] | None:
    """`textDocument/definition`: links with the range of the name and of the whole target, for clients that take them."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)

    def work() -> list[dict[str, Any]] | None:
        answer = definition(found.document, offset, session.project)
        if answer is None:
            return None
        locating = Locating(session)
        if not session.client.definition_links:
            return [locating.location(target) for target in answer.targets]
        origin = found.places.range(answer.origin)
        return [locating.link(target, origin) for target in answer.targets]

    return await session.worker.submit(work, SEARCH)


async def find_references(session: Session, params: types.ReferenceParams) -> list[dict[str, Any]] | None:
    """`textDocument/references`, in all files."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)

    def work() -> list[dict[str, Any]]:
        locating = Locating(session)
        places = references(found.document, offset, session.project, params.context.include_declaration)
        return [locating.location(place) for place in places]

    return await session.worker.submit(work, SEARCH)


async def document_highlight(session: Session, params: types.DocumentHighlightParams) -> list[dict[str, Any]] | None:
    """`textDocument/documentHighlight`: where the name is read, where it is written."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)

    def work() -> list[dict[str, Any]]:
        lit = highlights(found.document, offset)
        ranges = found.places.ranges([highlight.span for highlight in lit])
        return [
            {"range": place, "kind": KINDS[highlight.kind].value} for highlight, place in zip(lit, ranges, strict=True)
        ]

    return await session.worker.submit(work)
