"""Documents come, change and go."""

from __future__ import annotations

from typing import Any

from agentloom_lsp.convert import Position
from agentloom_lsp.documents import Change
from agentloom_lsp.session import Session
from agentloom_lsp.workspace import SETTINGS_FILES


def did_open(session: Session, params: Any) -> None:
    """`textDocument/didOpen`."""
    item = params["textDocument"]
    language = item.get("languageId")
    session.opened(item["uri"], language if isinstance(language, str) else "", _version(item), item["text"])


def did_change(session: Session, params: Any) -> None:
    """`textDocument/didChange`, incremental."""
    item = params["textDocument"]
    document = session.documents.get(item["uri"])
    if document is None:
        raise LookupError(f"{item['uri']} is not open")
    document.apply([_change(change) for change in params["contentChanges"]], _version(item), session.client.encoding)
    session.edited(document)


def did_save(session: Session, params: Any) -> None:
    """`textDocument/didSave`: settings may be what was saved; a client that watches no files tells us this way."""
    name = params["textDocument"]["uri"].rsplit("/", 1)[-1]
    if name in SETTINGS_FILES or not session.client.register_watching:
        session.recheck_all()


def did_close(session: Session, params: Any) -> None:
    """`textDocument/didClose`."""
    session.closed(params["textDocument"]["uri"])


def _version(item: Any) -> int:
    """Return a document's version; 0 when the client leaves it out."""
    version = item.get("version")
    return version if isinstance(version, int) else 0


def _change(change: Any) -> Change:
    """Return a change in our terms."""
    place = change.get("range")
    if place is None:
        return Change(change["text"])
    return Change(change["text"], _position(place["start"]), _position(place["end"]))


def _position(place: Any) -> Position:
    return Position(int(place["line"]), int(place["character"]))
