"""Commands that the client has the server carry out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from agentloom_lsp.features import graph, running
from agentloom_lsp.handshake import (
    APPROVE,
    CANCEL,
    GRAPH,
    REJECT,
    REPLAY,
    RESUME,
    RUN,
    RUN_WITH_MOCK,
    SHOW_RUN,
    VALIDATE_WORKSPACE,
)
from agentloom_lsp.reports import RUN_FAILED
from agentloom_lsp.session import ERROR, INFO, WARNING, Session

WORDS = ("error", "warning", "information", "hint")
"""The severities, as they are numbered in diagnostics from 1 on."""


async def execute(session: Session, params: types.ExecuteCommandParams) -> Any:
    """`workspace/executeCommand`."""
    handle = COMMANDS.get(params.command)
    if handle is None:
        raise JsonRpcInvalidParams(f"there is no command `{params.command}`")
    return await handle(session, params)


async def validate_workspace(session: Session, params: types.ExecuteCommandParams) -> dict[str, Any]:
    """Check every file of the workspace, open or not; return how much was found, and say it to the user."""
    counts = dict.fromkeys(WORDS, 0)
    files = 0
    progress = session.progress("Checking workflows", params.work_done_token)
    try:
        async for uri, version, checked in session.survey.results(progress):
            files += 1
            for report in checked.reports:
                if report["code"] == RUN_FAILED:
                    continue  # that was found by running, not by checking
                counts[WORDS[report["severity"] - 1]] += 1
            if version is None:
                session.elsewhere.tell_closed(uri, checked)
    finally:
        progress.end()
    session.elsewhere.settings_used()
    found = [_plural(counts[word], word) for word in WORDS[:2] if counts[word]]
    words = f"{_plural(files, 'file')} checked: {', '.join(found) or 'no problems'}"
    if progress.cancelled:
        words = f"cancelled; {words}"
    level = ERROR if counts["error"] else WARNING if counts["warning"] else INFO
    session.wire.notify("window/showMessage", {"type": level, "message": words})
    return {"files": files, **counts, "cancelled": progress.cancelled}


def _plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


COMMANDS: Mapping[str, Callable[[Session, types.ExecuteCommandParams], Awaitable[Any]]] = {
    VALIDATE_WORKSPACE: validate_workspace,
    RUN: running.run,
    RUN_WITH_MOCK: running.run_with_mock,
    REPLAY: running.replay,
    RESUME: running.resume,
    APPROVE: running.approve,
    REJECT: running.reject,
    CANCEL: running.cancel,
    GRAPH: graph.graph_command,
    SHOW_RUN: running.show_run,
}
