"""Renaming names and files: whether it can be done, and the edits of all files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from agentloom.analysis.context import path_of
from agentloom.ide.moves import Move, paths_after
from agentloom.ide.rename import prepare_rename, rename
from agentloom.ide.results import Refusal
from agentloom_lsp.asking import asked
from agentloom_lsp.features.editing import workspace_edit
from agentloom_lsp.session import Session
from agentloom_lsp.wire import REQUEST_FAILED
from agentloom_lsp.worker import SEARCH

T = TypeVar("T")


async def prepare(session: Session, params: types.PrepareRenameParams) -> dict[str, Any] | None:
    """`textDocument/prepareRename`: the range of the name; an error with the reason where it can't be renamed."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)

    def work() -> dict[str, Any]:
        name = prepare_rename(found.document, offset, session.project)
        return {"range": found.places.range(name.span), "placeholder": name.word}

    return await _done(session, work)


async def rename_symbol(session: Session, params: types.RenameParams) -> dict[str, Any] | None:
    """`textDocument/rename`: the edits of all files; an error with the reason where it can't be done."""
    found = await asked(session, params.text_document)
    if found is None:
        return None
    offset = found.offset(params.position)

    def work() -> dict[str, Any]:
        return workspace_edit(session, rename(found.document, offset, params.new_name, session.project))

    return await _done(session, work)


async def _done(session: Session, work: Callable[[], T]) -> T:
    try:
        return await session.worker.submit(work, SEARCH)
    except Refusal as refusal:
        raise JsonRpcException(str(refusal), REQUEST_FAILED) from None


async def will_rename_files(session: Session, params: types.RenameFilesParams) -> dict[str, Any] | None:
    """`workspace/willRenameFiles`: the edits after which every path leads where it led before."""
    moves = []
    for file in params.files:
        old, new = path_of(file.old_uri), path_of(file.new_uri)
        if old is not None and new is not None:
            moves.append(Move(old, new))

    def work() -> dict[str, Any] | None:
        changes = paths_after(session.project, moves)
        return workspace_edit(session, changes) if changes else None

    return await session.worker.submit(work, SEARCH)
