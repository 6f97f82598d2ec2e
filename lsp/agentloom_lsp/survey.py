"""All files of ours in the workspace, open or not; each is checked again only when something that it depends on changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentloom.analysis.context import read_from_disk
from agentloom.analysis.settings import Settings
from agentloom.text import Source
from agentloom_lsp import uris
from agentloom_lsp.checking import Checked, Memory, Shown
from agentloom_lsp.documents import Documents
from agentloom_lsp.scheduler import Scheduler
from agentloom_lsp.worker import CLOSED, Worker
from agentloom_lsp.workspace import Workspace

Stamp = Any
"""Changes when a file changes: the open text itself, else time and size on disk, None for no file."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found about a closed file, and the state of everything that this was found from."""

    settings: Settings
    stamps: dict[Path, Stamp]
    checked: Checked


class Survey:
    """Remembers the verdict on each closed file. ``run_check`` and the tables it uses belong to the worker's thread."""

    def __init__(
        self,
        documents: Documents,
        workspace: Workspace,
        worker: Worker,
        scheduler: Scheduler[Checked],
        run_check: Callable[[Shown], Checked],
        new_memory: Callable[[], Memory],
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._worker = worker
        self._scheduler = scheduler
        self._run_check = run_check
        self._new_memory = new_memory
        self._known: dict[Path, _Known] = {}

    async def results(self) -> AsyncIterator[tuple[str, int | None, Checked]]:
        """Yield URI, version (of open documents) and verdict for every file that is ours."""
        for key, document in self._documents:
            checked = await self._scheduler.next(key) if self._documents.at(key) is document else None
            if checked is not None and checked.ours:
                yield document.uri, checked.source.version, checked
        paths = await self._worker.submit(lambda: list(self._workspace.candidates()), CLOSED)
        for path in paths:
            if self._documents.on_path(path) is None:
                found = await self._worker.submit(lambda path=path: self._closed(path), CLOSED)  # type: ignore[misc]
                if found is not None:
                    yield self._workspace.uri_of(path), None, found
        there = set(paths)
        self._known = {path: known for path, known in self._known.items() if path in there}

    def _closed(self, path: Path) -> Checked | None:
        settings = self._workspace.settings(path)
        known = self._known.get(path)
        if known is None or known.settings != settings or any(self._stamp(p) != s for p, s in known.stamps.items()):
            own = self._stamp(path)
            try:
                source = Source(self._workspace.uri_of(path), read_from_disk(path))
            except (OSError, UnicodeDecodeError):
                return None
            checked = self._run_check(Shown(source, "yaml", None, self._new_memory()))
            stamps = {path: own, **{file: self._stamp(file) for file in checked.files}}
            small = replace(checked, source=Source(source.uri, ""), document=None)
            known = self._known[path] = _Known(settings, stamps, small)
        return known.checked if known.checked.ours else None

    def _stamp(self, path: Path) -> Stamp:
        document = self._documents.at(uris.path_key(path))
        if document is not None:
            return document.source
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
