"""The verdict on every file of ours in the workspace, open or not, for those who ask about all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agentloom_lsp.checking import Checked
from agentloom_lsp.closed import Closed
from agentloom_lsp.documents import Documents
from agentloom_lsp.scheduler import Scheduler
from agentloom_lsp.worker import CLOSED, Worker
from agentloom_lsp.workspace import Workspace


class Survey:
    """Goes through all files, one at a time, so that nothing else has to wait for it."""

    def __init__(
        self,
        documents: Documents,
        workspace: Workspace,
        worker: Worker,
        scheduler: Scheduler[Checked],
        closed: Closed,
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._worker = worker
        self._scheduler = scheduler
        self._closed = closed

    async def results(self) -> AsyncIterator[tuple[str, int | None, Checked]]:
        """Yield URI, version (of open documents) and verdict for every file that is ours."""
        for key, document in self._documents:
            checked = await self._scheduler.next(key) if self._documents.at(key) is document else None
            if checked is not None and checked.ours:
                yield document.uri, checked.source.version, checked
        paths = await self._worker.submit(lambda: list(self._workspace.candidates()), CLOSED)
        for path in paths:
            if self._documents.on_path(path) is None:
                found = await self._worker.submit(lambda path=path: self._closed.verdict(path), CLOSED)  # type: ignore[misc]
                if found is not None:
                    yield self._workspace.uri_of(path), None, found
        await self._worker.submit(lambda: self._closed.keep_only(set(paths)), CLOSED)
