"""Every method of the protocol that the server answers, and what it answers when a handler fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from agentloom_lsp import actions, pull, sync, watching
from agentloom_lsp.session import Session


class Feature(NamedTuple):
    """One method: its handler, and the empty answer. Notifications have none."""

    method: str
    handle: Callable[[Session, Any], Any]
    empty: Any = None


FEATURES: tuple[Feature, ...] = (
    Feature("initialized", watching.initialized),
    Feature("textDocument/didOpen", sync.did_open),
    Feature("textDocument/didChange", sync.did_change),
    Feature("textDocument/didSave", sync.did_save),
    Feature("textDocument/didClose", sync.did_close),
    Feature("workspace/didChangeConfiguration", watching.did_change_configuration),
    Feature("workspace/didChangeWatchedFiles", watching.did_change_watched_files),
    Feature("workspace/didChangeWorkspaceFolders", watching.did_change_workspace_folders),
    Feature("textDocument/diagnostic", pull.document_diagnostic, {"kind": "full", "items": []}),
    Feature("workspace/diagnostic", pull.workspace_diagnostic, {"items": []}),
    Feature("textDocument/codeAction", actions.code_action),
)
