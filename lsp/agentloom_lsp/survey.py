"""The verdict on every file of ours in the workspace, open or not, for those who ask about all of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

from agentloom_lsp import uris
from agentloom_lsp.checking import Checked
from agentloom_lsp.closed import Closed
from agentloom_lsp.documents import Documents
from agentloom_lsp.progress import Progress
from agentloom_lsp.scheduler import Scheduler
from agentloom_lsp.worker import CLOSED, Worker
from agentloom_lsp.workspace import Workspace

SLICE = 0.02
"""Seconds that closed files are checked in one go."""


class Survey:
    """Goes through all files, a few at a time, so that nothing else has to wait for it. ``finished`` tells whether it ever got through."""

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
        self.finished = False

    async def results(self, progress: Progress) -> AsyncIterator[tuple[str, int | None, Checked]]:
        """Yield URI, version (of open documents) and verdict for every file that is ours, until the user calls it off."""
        for key, document in self._documents:
            checked = await self._scheduler.next(key) if self._documents.at(key) is document else None
            if checked is not None and checked.ours:
                yield document.uri, checked.source.version, checked
        paths = await self._worker.submit(lambda: self._workspace.candidates(self._worker.breathe), CLOSED)
        done = 0
        while done < len(paths) and not progress.cancelled:
            progress.step(done, len(paths))
            done, verdicts = await self._worker.submit(lambda begin=done: self._verdicts(paths, begin), CLOSED)  # type: ignore[misc]
            for path, checked in verdicts:
                yield self._workspace.uri_of(path), None, checked
        if not progress.cancelled:
            self.finished = True
            await self._worker.submit(lambda: self._closed.keep_only(set(paths)), CLOSED)

    async def verdict(self, path: Path) -> Checked | None:
        """Return the verdict on a closed file; None when it is open, can't be read, or isn't ours."""
        if self._documents.on_path(path) is not None:
            return None
        return await self._worker.submit(lambda: self._closed.verdict(path), CLOSED)

    def reads(self, key: str) -> bool:
        """Tell whether the verdict on a closed file depends on this one."""
        return self._closed.reads(key)

    def _verdicts(self, paths: tuple[Path, ...], begin: int) -> tuple[int, list[tuple[Path, Checked]]]:
        """Check files from a number on, for a moment; return the number to go on with, and what was found."""
        until = time.monotonic() + SLICE
        found: list[tuple[Path, Checked]] = []
        while begin < len(paths):
            path = paths[begin]
            begin += 1
            if self._documents.at(uris.path_key(path)) is None:
                checked = self._closed.verdict(path)
                if checked is not None:
                    found.append((path, checked))
            if time.monotonic() > until:
                break
        return begin, found
