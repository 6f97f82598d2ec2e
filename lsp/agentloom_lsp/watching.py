"""What changes around the documents: files on disk, folders, the client's configuration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentloom_lsp import uris
from agentloom_lsp.client import find
from agentloom_lsp.options import SECTION
from agentloom_lsp.session import Session
from agentloom_lsp.workspace import SETTINGS_FILES

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
WATCHED = (f"**/*.{{{','.join(suffix[1:] for suffix in SUFFIXES)}}}", *(f"**/{name}" for name in SETTINGS_FILES))
"""What is watched in the folders from the start: workflows, agents, recordings, settings."""
MOST_WATCHED = 500
"""Other files that are watched at most, because a document reads them or looks for them."""
CHANGES = "workspace/didChangeWatchedFiles"


def initialized(session: Session, params: Any) -> None:
    """`initialized`: ask to be told of changes where the client can be asked, and for its configuration."""
    if session.client.register_watching:
        _register(session, CHANGES, {"watchers": [{"globPattern": pattern} for pattern in WATCHED]})
        session.reading = lambda files: watch(session, files)
    if session.client.register_configuration:
        _register(session, "workspace/didChangeConfiguration", {"section": SECTION})
    ask_for_configuration(session)
    session.elsewhere.look_at_settings()


def watch(session: Session, files: Iterable[Path]) -> None:
    """Have the client watch files that a document asks for and that aren't watched yet."""
    watchers: list[dict[str, Any]] = []
    for path in sorted(files):
        if path in session.watched or len(session.watched) >= MOST_WATCHED:
            continue
        inside = any(uris.below(folder, path) is not None for folder in session.workspace.folders)
        if inside and (path.suffix.lower() in SUFFIXES or path.name in SETTINGS_FILES):
            continue
        if session.client.relative_watching:
            watchers.append({"globPattern": {"baseUri": session.workspace.uri_of(path.parent), "pattern": path.name}})
        elif inside:
            watchers.append({"globPattern": f"**/{path.name}"})
        else:
            continue  # this client watches nothing outside its folders
        session.watched.add(path)
    if watchers:
        _register(session, CHANGES, {"watchers": watchers}, f":{len(session.watched)}")


def did_change_watched_files(session: Session, params: Any) -> None:
    """`workspace/didChangeWatchedFiles`."""
    changed(session, [find(change, "uri") for change in params["changes"]])


def did_create_or_delete_files(session: Session, params: Any) -> None:
    """`workspace/didCreateFiles`, `workspace/didDeleteFiles`."""
    changed(session, [find(file, "uri") for file in params["files"]])


def did_rename_files(session: Session, params: Any) -> None:
    """`workspace/didRenameFiles`."""
    changed(session, [find(file, name) for file in params["files"] for name in ("oldUri", "newUri")])


def changed(session: Session, named: Iterable[Any]) -> None:
    """Files or folders were changed, made or removed: look again at everything that depends on them."""
    keys = {uris.key(uri) for uri in named if isinstance(uri, str)}
    session.workspace.forget_files()
    session.workspace.own_tools.look()
    if any(_means_settings(session, key) for key in keys):
        session.recheck_all()
    else:
        session.recheck_readers(keys)
    session.refresh()
    session.bell.ring()


def did_change_workspace_folders(session: Session, params: Any) -> None:
    """`workspace/didChangeWorkspaceFolders`."""
    event = params["event"]
    added, removed = ([find(folder, "uri") for folder in event.get(name) or ()] for name in ("added", "removed"))
    session.workspace.change_folders(_texts(added), _texts(removed))
    session.elsewhere.look_at_settings()
    session.refresh()
    session.bell.ring()


def did_change_configuration(session: Session, params: Any) -> None:
    """`workspace/didChangeConfiguration`: what is sent along counts, else the client is asked."""
    sent = find(params, "settings")
    if find(sent, SECTION) is not None or not session.client.configuration:
        session.configurations += 1
        session.configure(sent)
    else:
        ask_for_configuration(session)


def did_cancel_progress(session: Session, params: Any) -> None:
    """`window/workDoneProgress/cancel`."""
    progress = session.progresses.get(params["token"])
    if progress is not None:
        progress.cancel()


def ask_for_configuration(session: Session) -> None:
    """Ask the client for its configuration, if it can be asked; anything but a proper answer means the defaults."""
    if session.client.configuration:
        session.configurations += 1
        number, items = session.configurations, [{"section": SECTION}]
        session.ask("workspace/configuration", {"items": items}, lambda answer: _answered(session, number, answer))


def _answered(session: Session, number: int, answer: Any) -> None:
    if number == session.configurations:  # else the client has sent, or was asked for, a newer one
        session.configure(answer[0] if isinstance(answer, list) and answer else None)


def _means_settings(session: Session, key: str) -> bool:
    """Tell whether a file is one of settings, or a folder that has some which are in use."""
    if key.rsplit("/", 1)[-1] in SETTINGS_FILES:
        return True
    paths = [settings.path for settings in session.workspace.known_settings() if settings.path is not None]
    return any(uris.path_key(path).startswith(f"{key}/") for path in paths)


def _texts(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _register(session: Session, method: str, options: Any, more: str = "") -> None:
    registration = {"id": f"agentloom:{method}{more}", "method": method, "registerOptions": options}
    session.ask("client/registerCapability", {"registrations": [registration]})
