"""What is wrong in files that are no open workflows: settings files, and closed ones once somebody asked about all of them."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from agentloom.analysis.context import path_of
from agentloom_lsp.bell import Bell
from agentloom_lsp.checking import Checked
from agentloom_lsp.client import Client
from agentloom_lsp.documents import Documents
from agentloom_lsp.reports import Report
from agentloom_lsp.settings_reports import Found, Told, settings_reports
from agentloom_lsp.survey import Survey
from agentloom_lsp.worker import CLOSED, Worker
from agentloom_lsp.workspace import Workspace


class Elsewhere:
    """Publishes it, and takes it back when it is repaired. ``seen`` is called with settings files that are in use."""

    def __init__(
        self,
        client: Client,
        documents: Documents,
        workspace: Workspace,
        worker: Worker,
        survey: Survey,
        bell: Bell,
        publish: Callable[[str, int | None, tuple[Report, ...]], None],
        in_background: Callable[[Coroutine[Any, Any, None]], None],
        seen: Callable[[Iterable[Path]], None],
    ) -> None:
        self._client = client
        self._documents = documents
        self._workspace = workspace
        self._worker = worker
        self._survey = survey
        self._bell = bell
        self._publish = publish
        self._in_background = in_background
        self._seen = seen
        self._settings: dict[Path, Told] = {}
        self._looking = self._again = False
        self._known: frozenset[Path | None] = frozenset()
        self._closed: dict[Path, str] = {}

    def look_at_settings(self) -> None:
        """Tell what is wrong in the settings files in use, and take back what isn't any more."""
        if self._looking:
            self._again = True  # one look at a time, since each begins with what the one before it found
            return
        self._looking, self._again = True, False
        before = self._settings
        found = self._worker.submit(lambda: settings_reports(self._workspace, self._client, before), CLOSED)
        found.add_done_callback(self._tell_settings)

    def settings_used(self) -> None:
        """Look at settings if files were found whose settings weren't in use before."""
        if not self._known.issuperset(settings.path for settings in self._workspace.known_settings()):
            self.look_at_settings()

    def settings_reports(self, uri: str) -> tuple[Report, ...]:
        """Return what is wrong in a settings file that is open in the editor; nothing for other files."""
        path = path_of(uri)
        told = self._settings.get(path) if path is not None else None
        return told.reports if told is not None else ()

    def tell_closed(self, uri: str, checked: Checked) -> None:
        """Publish what was found in a closed file, and from now on what becomes of it. Clients that pull ask for that."""
        path = path_of(uri)
        if self._client.pulls or path is None or (not checked.reports and path not in self._closed):
            return
        if not self._closed:
            self._in_background(self._follow())
        if self._closed.get(path) != checked.result_id:
            self._closed[path] = checked.result_id
            self._publish(uri, None, checked.reports)

    def _tell_settings(self, future: Future[Found]) -> None:
        self._looking = False
        if self._again:
            self.look_at_settings()
            return
        if future.cancelled() or future.exception() is not None:
            return
        self._known, found = future.result()
        before, self._settings = self._settings, {path: told for path, told in found.items() if told.reports}
        for path in {**before, **self._settings}:
            reports = self._settings[path].reports if path in self._settings else ()
            if path not in before or before[path].reports != reports:
                self._publish(self._workspace.uri_of(path), None, reports)
        self._seen(path for path in self._known if path is not None)

    async def _follow(self) -> None:
        """Publish anew what is found in closed files, whenever something changes, as long as any is known."""
        heard = self._bell.count
        while self._closed:
            await self._bell.after(heard)
            heard = self._bell.count
            for path in list(self._closed):
                if self._documents.on_path(path) is not None:
                    self._closed[path] = ""  # what it shows now is that of an open document
                    continue
                checked = await self._survey.verdict(path)
                if checked is not None:
                    self.tell_closed(self._workspace.uri_of(path), checked)
                elif self._documents.on_path(path) is None:
                    del self._closed[path]
                    self._publish(self._workspace.uri_of(path), None, ())
