"""Documents come, change and go."""

from __future__ import annotations

from lsprotocol import types

from agentloom_lsp.convert import Position
from agentloom_lsp.documents import Change
from agentloom_lsp.session import Session
from agentloom_lsp.workspace import SETTINGS_FILES


def did_open(session: Session, params: types.DidOpenTextDocumentParams) -> None:
    """`textDocument/didOpen`."""
    document = params.text_document
    session.opened(document.uri, document.language_id, document.version, document.text)


def did_change(session: Session, params: types.DidChangeTextDocumentParams) -> None:
    """`textDocument/didChange`, incremental."""
    document = session.documents.get(params.text_document.uri)
    if document is None:
        raise LookupError(f"{params.text_document.uri} is not open")
    changes = [change_of(change) for change in params.content_changes]
    document.apply(changes, params.text_document.version, session.client.encoding)
    session.edited(document)


def did_save(session: Session, params: types.DidSaveTextDocumentParams) -> None:
    """`textDocument/didSave`: settings may be what was saved; a client that watches no files tells us this way."""
    if params.text_document.uri.rsplit("/", 1)[-1] in SETTINGS_FILES or not session.client.register_watching:
        session.recheck_all()


def did_close(session: Session, params: types.DidCloseTextDocumentParams) -> None:
    """`textDocument/didClose`."""
    session.closed(params.text_document.uri)


def change_of(change: types.TextDocumentContentChangeEvent) -> Change:
    """Return a change in our terms."""
    if isinstance(change, types.TextDocumentContentChangePartial):
        start, end = change.range.start, change.range.end
        return Change(change.text, Position(start.line, start.character), Position(end.line, end.character))
    return Change(change.text)
