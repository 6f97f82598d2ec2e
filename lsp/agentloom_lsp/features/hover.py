"""Hover: what stands under the cursor."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from agentloom.ide.hover import hover_at
from agentloom.ide.prose.form import Prose, markdown, plain
from agentloom_lsp import uris
from agentloom_lsp.asking import asked
from agentloom_lsp.session import Session


async def hover(session: Session, params: types.HoverParams) -> dict[str, Any] | None:
    """`textDocument/hover`."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)
    opened = session.documents.get(params.text_document.uri)
    memory = opened.memory if opened is not None else None
    last = session.runs.last(uris.key(params.text_document.uri))

    def work() -> dict[str, Any] | None:
        before = memory.readable if memory is not None else None
        told = hover_at(found.document, offset, before, session.project, last)
        if told is None:
            return None
        return {"contents": content(told.prose, session.client.markdown_hovers), "range": found.places.range(told.span)}

    return await session.worker.submit(work)


def content(prose: Prose, in_markdown: bool) -> dict[str, str]:
    """Return prose in the form that the client takes."""
    if in_markdown:
        return {"kind": "markdown", "value": markdown(prose)}
    return {"kind": "plaintext", "value": plain(prose)}
