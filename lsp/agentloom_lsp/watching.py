"""What changes around the documents: files on disk, folders, the client's configuration."""

from __future__ import annotations

from typing import Any

from agentloom_lsp import uris
from agentloom_lsp.client import find
from agentloom_lsp.options import SECTION
from agentloom_lsp.session import Session
from agentloom_lsp.workspace import SETTINGS_FILES

WATCHED = ("**/*.{yaml,yml,json,jsonl}", *(f"**/{name}" for name in SETTINGS_FILES))


def initialized(session: Session, params: Any) -> None:
    """`initialized`: ask to be told of changes where the client can be asked, and for its configuration."""
    if session.client.register_watching:
        watchers = [{"globPattern": pattern} for pattern in WATCHED]
        _register(session, "workspace/didChangeWatchedFiles", {"watchers": watchers})
    if session.client.register_configuration:
        _register(session, "workspace/didChangeConfiguration", {"section": SECTION})
    ask_for_configuration(session)


def did_change_watched_files(session: Session, params: Any) -> None:
    """`workspace/didChangeWatchedFiles`."""
    changed = [change["uri"] for change in params["changes"]]
    if any(uri.rsplit("/", 1)[-1] in SETTINGS_FILES for uri in changed):
        session.recheck_all()
    else:
        session.recheck_readers({uris.key(uri) for uri in changed})
    session.refresh()


def did_change_workspace_folders(session: Session, params: Any) -> None:
    """`workspace/didChangeWorkspaceFolders`."""
    added, removed = ([folder["uri"] for folder in params["event"].get(name) or ()] for name in ("added", "removed"))
    session.workspace.change_folders(added, removed)
    session.refresh()


def did_change_configuration(session: Session, params: Any) -> None:
    """`workspace/didChangeConfiguration`: what is sent along counts, else the client is asked."""
    sent = find(params, "settings")
    if find(sent, SECTION) is not None or not session.client.configuration:
        session.configure(sent)
    else:
        ask_for_configuration(session)


def ask_for_configuration(session: Session) -> None:
    """Ask the client for its configuration, if it can be asked; anything but a proper answer means the defaults."""
    if session.client.configuration:
        items = [{"section": SECTION}]
        session.ask("workspace/configuration", {"items": items}, lambda answer: _answered(session, answer))


def _answered(session: Session, answer: Any) -> None:
    session.configure(answer[0] if isinstance(answer, list) and answer else None)


def _register(session: Session, method: str, options: Any) -> None:
    registration = {"id": f"agentloom:{method}", "method": method, "registerOptions": options}
    session.ask("client/registerCapability", {"registrations": [registration]})
