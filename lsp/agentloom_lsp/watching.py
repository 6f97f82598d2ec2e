"""What changes around the documents: files on disk, folders, the client's configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lsprotocol import types

from agentloom_lsp import uris
from agentloom_lsp.session import Session
from agentloom_lsp.workspace import SETTINGS_FILES

SECTION = "agentloom"
WATCHED = ("**/*.{yaml,yml,json,jsonl}", *(f"**/{name}" for name in SETTINGS_FILES))


def initialized(session: Session, params: types.InitializedParams) -> None:
    """`initialized`: read the options, and ask to be told of changes where the client can be asked."""
    configure(session, session.client.options)
    if session.client.register_watching:
        watchers = [{"globPattern": pattern} for pattern in WATCHED]
        _register(session, "workspace/didChangeWatchedFiles", {"watchers": watchers})
    if session.client.register_configuration:
        _register(session, "workspace/didChangeConfiguration", {"section": SECTION})
    ask_for_configuration(session)


def did_change_watched_files(session: Session, params: types.DidChangeWatchedFilesParams) -> None:
    """`workspace/didChangeWatchedFiles`."""
    if any(change.uri.rsplit("/", 1)[-1] in SETTINGS_FILES for change in params.changes):
        session.recheck_all()
    else:
        session.recheck_readers({uris.key(change.uri) for change in params.changes})
    session.refresh()


def did_change_workspace_folders(session: Session, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """`workspace/didChangeWorkspaceFolders`."""
    event = params.event
    session.workspace.change_folders((f.uri for f in event.added), (f.uri for f in event.removed))
    session.refresh()


def did_change_configuration(session: Session, params: types.DidChangeConfigurationParams) -> None:
    """`workspace/didChangeConfiguration`: what is sent along counts, else the client is asked."""
    sent = params.settings
    if isinstance(sent, Mapping) and isinstance(sent.get(SECTION), Mapping):
        configure(session, sent[SECTION])
    else:
        ask_for_configuration(session)


def ask_for_configuration(session: Session) -> None:
    """Ask the client for its configuration, if it can be asked; anything but a proper answer means the defaults."""
    if session.client.configuration:
        items = [{"section": SECTION}]
        session.ask("workspace/configuration", {"items": items}, lambda answer: _answered(session, answer))


def configure(session: Session, options: Mapping[str, Any]) -> None:
    """Take over options. `debounce`: milliseconds between a change and its check; null for the adaptive delay."""
    value = options.get("debounce")
    fine = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    session.scheduler.debounce = float(value) / 1000 if fine and value is not None else None


def _answered(session: Session, answer: Any) -> None:
    if isinstance(answer, list) and answer and isinstance(answer[0], Mapping):
        configure(session, {**session.client.options, **answer[0]})


def _register(session: Session, method: str, options: Any) -> None:
    registration = {"id": f"agentloom:{method}", "method": method, "registerOptions": options}
    session.ask("client/registerCapability", {"registrations": [registration]})
