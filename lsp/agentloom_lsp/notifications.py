"""Every notification that the server takes. Parameters are plain JSON.

They are what must never be lost, late or refused: to miss one edit spoils all that follow. So they don't wait for the
protocol's library, and don't need a message to be of the right type down to its last field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentloom_lsp import sync, watching
from agentloom_lsp.session import Session

NOTIFICATIONS: Mapping[str, Callable[[Session, Any], None]] = {
    "initialized": watching.initialized,
    "textDocument/didOpen": sync.did_open,
    "textDocument/didChange": sync.did_change,
    "textDocument/didSave": sync.did_save,
    "textDocument/didClose": sync.did_close,
    "workspace/didChangeConfiguration": watching.did_change_configuration,
    "workspace/didChangeWatchedFiles": watching.did_change_watched_files,
    "workspace/didCreateFiles": watching.did_create_or_delete_files,
    "workspace/didDeleteFiles": watching.did_create_or_delete_files,
    "workspace/didRenameFiles": watching.did_rename_files,
    "workspace/didChangeWorkspaceFolders": watching.did_change_workspace_folders,
    "window/workDoneProgress/cancel": watching.did_cancel_progress,
}
