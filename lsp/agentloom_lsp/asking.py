"""What every handler of a request begins with: the document that is meant, checked, and the place in it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.text import Source
from agentloom_lsp import uris
from agentloom_lsp.checking import Checked
from agentloom_lsp.convert import Places
from agentloom_lsp.session import Session

seen: ContextVar[Source | None] = ContextVar("seen", default=None)
"""The version of the document that the client had before it when it sent the request under way."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A document of ours as it is in the editor now. ``places`` is for this request alone."""

    checked: Checked
    document: WorkflowDocument
    places: Places

    def offset(self, position: Any) -> int:
        """Return the offset of a position of the protocol."""
        return self.places.offset(position.line, position.character)


async def asked(session: Session, text_document: Any) -> Asked | None:
    """Return the document that a request is about, checked in its newest version; None when it isn't open, or not ours."""
    try:
        checked = await session.scheduler.now(uris.key(text_document.uri))
    except KeyError:
        return None
    if checked.document is None:
        return None
    return Asked(checked, checked.document, Places(checked.document.lines, session.client.encoding))


async def asked_before(session: Session, text_document: Any) -> Asked | None:
    """Return the document that a request is about as it was when the client asked, also when more has been typed since.

    For answers that the client fits to what is typed meanwhile. None when the document isn't open, or not ours.
    """
    text = seen.get()
    try:
        checked = await session.scheduler.since_now(uris.key(text_document.uri))
        if text is not None and checked.source is not text:
            checked = await session.check_again(text)
    except KeyError:
        return None
    if checked.document is None:
        return None
    return Asked(checked, checked.document, Places(checked.document.lines, session.client.encoding))
