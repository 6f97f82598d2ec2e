"""One client's session: its documents, what they were found to be, and the way back to it. Knows no library of the protocol."""

from __future__ import annotations

import asyncio
import logging
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from agentloom.text import Source
from agentloom_lsp import uris
from agentloom_lsp.bell import Bell
from agentloom_lsp.checking import Checked, Door, Memory, Shown, check
from agentloom_lsp.client import Client
from agentloom_lsp.closed import Closed
from agentloom_lsp.documents import Document, Documents
from agentloom_lsp.elsewhere import Elsewhere
from agentloom_lsp.options import read_options
from agentloom_lsp.progress import Progress
from agentloom_lsp.project import WorkspaceProject
from agentloom_lsp.runs.kept import KeptRuns
from agentloom_lsp.runs.places import working_folder
from agentloom_lsp.runs.run import Run
from agentloom_lsp.runs.running import Runs
from agentloom_lsp.runs.stored import StoredRuns, database
from agentloom_lsp.runs.telling import Teller
from agentloom_lsp.scheduler import Scheduler
from agentloom_lsp.survey import Survey
from agentloom_lsp.wire import ClientRefused, Wire
from agentloom_lsp.worker import Worker
from agentloom_lsp.workspace import Workspace

logger = logging.getLogger(__name__)

ERROR, WARNING, INFO = 1, 2, 3
"""Levels of the client's log."""


class Session:
    """Everything the handlers work on. Its methods are called in the loop's thread."""

    def __init__(
        self, loop: AbstractEventLoop, client: Client, wire: Wire, door: Door, new_cache: Callable[[], Any]
    ) -> None:
        self.loop = loop
        self.client = client
        self.wire = wire
        self.documents = Documents()
        self.bell = Bell()
        self.progresses: dict[Any, Progress] = {}
        self.configurations = 0
        """How many were sent or asked for: the answer to an older question counts no more."""
        self.watched: set[Path] = set()
        self.reading: Callable[[Iterable[Path]], None] = lambda files: None
        """Called with the files that a document asks for."""
        self.poll: object = None
        """The question about all files that still stands."""
        self.polled = False
        self.workspace = Workspace(self.documents, client.folders)
        self.workspace.own_tools.told = self._other_tools
        self.worker = Worker(loop)
        self.scheduler: Scheduler[Checked] = Scheduler(
            clock=loop, prepare=self._prepare, submit=self._submit, deliver=self._deliver
        )
        closed = Closed(self.documents, self.workspace, self.run_check, self.new_memory)
        self.survey = Survey(self.documents, self.workspace, self.worker, self.scheduler, closed)
        self.project = WorkspaceProject(
            self.documents, self.workspace, closed, self.scheduler.latest, self._check_opened, self.worker.breathe
        )
        self.runs = Runs(self)
        self.kept_runs = KeptRuns(self.worker.breathe)
        self.stored_runs = StoredRuns()
        self.after_run: Callable[[Run], None] = lambda run: None
        """Called with each run that has ended."""
        self._door = door
        self._new_cache = new_cache
        self.elsewhere = Elsewhere(
            client,
            self.documents,
            self.workspace,
            self.worker,
            self.survey,
            self.bell,
            self.publish,
            self._in_background,
            lambda files: self.reading(files),
        )
        self._spread: dict[str, Source] = {}
        self._results: dict[str, str] = {}
        self._said: set[str] = set()
        self.unstructure: Callable[[Any], Any] = lambda value: value
        """Makes plain JSON of the protocol's types; put in place with the protocol's library."""
        self._asking: set[asyncio.Task[None]] = set()
        self.options, _ = read_options(client.options)
        self.configure(None)

    def configure(self, sent: Any) -> None:
        """Take over the client's configuration, whatever it is; what it leaves open is as in `initialize`, else the default."""
        before = self.options
        self.options, problems = read_options(sent, self.client.options)
        for problem in problems:
            self.say_once(problem, WARNING)
        self.scheduler.debounce = self.options.debounce
        # What the client said at first holds: a workspace that isn't trusted may say anything afterwards.
        self.workspace.own_tools.enable(self.options.learn_tools and read_options(self.client.options)[0].learn_tools)
        if self.options._replace(debounce=before.debounce) != before:
            self.refresh_hints()
            self.refresh_lenses()

    def opened(self, uri: str, language_id: str, version: int, text: str) -> None:
        """Take a document in and check it."""
        self.workspace.own_tools.look()  # a client that tells nothing of other files is there, too
        key = self.documents.open(uri, language_id, version, text)
        self.scheduler.closed(key)
        self.scheduler.opened(key)

    def edited(self, document: Document) -> None:
        """Check a document that was edited."""
        self.scheduler.changed(uris.key(document.uri))

    def closed(self, uri: str) -> None:
        """Let a document go: its diagnostics are taken back, and what reads it sees the file on disk again."""
        document = self.documents.close(uri)
        if document is None:
            return
        key = uris.key(uri)
        if self.documents.at(key) is document:  # still open under another spelling
            self.publish(uri, None, ())
            self.scheduler.opened(key)
            return
        self.scheduler.closed(key)
        self._spread.pop(key, None)
        self._results.pop(key, None)
        if not self.client.pulls:
            self.publish(document.uri, document.source.version, self.elsewhere.settings_reports(document.uri))
        self.recheck_readers({key})
        self.bell.ring()

    def recheck_readers(self, keys: set[str], on_disk: bool = True) -> None:
        """Check again the open documents that read one of these files. ``on_disk``: not only their text in the editor changed."""
        listed = {key.rpartition("/")[0] for key in keys if self.documents.at(key) is None}
        self._recheck(
            key
            for key, _ in self.documents
            if (on_disk and self.scheduler.running(key))  # what it reads is known afterwards, and may be old already
            or ((checked := self.scheduler.latest(key)) is not None and checked.depends_on(keys, listed))
        )

    def recheck_all(self) -> None:
        """Check all open documents again: settings changed."""
        self.workspace.forget_settings()
        self.workspace.own_tools.look()
        self._recheck(key for key, _ in self.documents)
        self.elsewhere.look_at_settings()
        self.bell.ring()

    def _other_tools(self) -> None:
        self.loop.call_soon_threadsafe(self._tools_learned)

    def _tools_learned(self) -> None:
        """Check again whatever may name a tool: others are known now than before."""
        self.reading(self.workspace.own_tools.files())
        self.recheck_all()

    def refresh(self) -> None:
        """Have a client ask again for what depends on other files too, if it can be told to."""
        if self.client.pulls and self.client.refreshes_diagnostics:
            self.ask("workspace/diagnostic/refresh", None)
        self.refresh_hints()
        self.refresh_lenses()

    def refresh_hints(self) -> None:
        """Have a client ask again for hints, if it can be told to."""
        if self.client.refreshes_hints:
            self.ask("workspace/inlayHint/refresh", None)

    def refresh_lenses(self) -> None:
        """Have a client ask again for lenses, if it can be told to."""
        if self.client.refreshes_lenses:
            self.ask("workspace/codeLens/refresh", None)

    def run_moved(self, keys: Iterable[str], told: bool) -> None:
        """A run of some documents went on: hints and lenses are others now, and with ``told`` where it failed, too."""
        self.refresh_hints()
        self.refresh_lenses()
        if not told:
            return
        for key in dict.fromkeys(keys):
            if self.documents.at(key) is not None:
                self.scheduler.opened(key)
        if self.client.pulls and self.client.refreshes_diagnostics:
            self.ask("workspace/diagnostic/refresh", None)

    def run_ended(self, run: Run) -> None:
        """A run has ended; it was told, and what it left behind can be read."""
        self.after_run(run)

    def call_off(self, run: Run) -> None:
        """Cancel a run in a database, wherever it is performed."""
        if run.on is not None:
            self.begin(self.stored_runs.cancel(run.on, self.home, run.run_id))

    @property
    def database(self) -> str | None:
        """The address of the database that runs live in; None for files."""
        return database(self.options.run_database, self.workspace.roots)

    @property
    def home(self) -> Path:
        """Where questions to the command line are asked that are about no document."""
        return working_folder(None, self.workspace.roots)

    def look_at_database(self) -> None:
        """Have the runs of the database listed anew, in the background, and lenses drawn by what there is."""

        async def look(url: str) -> None:
            before = self.stored_runs.known(url)
            after = await self.stored_runs.listed(url, self.home, 0.0)
            if (after.runs, after.problems) != (before.runs, before.problems):
                self.refresh_lenses()

        if (url := self.database) is not None:
            self.begin(look(url))

    def tell_run(self, run: Run) -> Teller:
        """Return what tells the client of a run."""
        progress = self.progress(f"Running {run.title}")
        events = self.client.run_events or self.options.run_events
        return Teller(run, self.wire, progress, events, self.client.shows_actions)

    def ask(self, method: str, params: Any, then: Callable[[Any], None] = lambda _: None) -> None:
        """Send a request and go on; ``then`` gets the answer. A client that refuses is logged once and left in peace."""

        async def wait() -> None:
            try:
                answer = await self.wire.request(method, params)
            except ClientRefused as error:
                self.say_once(f"the client refused `{method}`: {error}", WARNING)
            else:
                try:
                    then(answer)
                except Exception as error:
                    self.log_once(method, error)

        self._in_background(wait())

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Have work done in the background; what it returns is nobody's."""

        async def wait() -> None:
            try:
                await work
            except Exception as error:
                self.log_once("work in the background", error)

        self._in_background(wait())

    def progress(self, title: str, token: Any = None, unasked: bool = True) -> Progress:
        """Return a way to show how far some work is. ``unasked``: also where the client gave no token for it, if it lets us."""
        ask = self.ask if unasked and self.client.makes_progress else None
        return Progress(title, token, self.wire, ask, self.progresses)

    def publish(self, uri: str, version: int | None, reports: tuple[Any, ...]) -> None:
        """Send a document's diagnostics; an empty list takes the old ones back."""
        params: dict[str, Any] = {"uri": uri, "diagnostics": reports}
        if version is not None:
            params["version"] = version
        self.wire.notify("textDocument/publishDiagnostics", params)

    def run_check(self, shown: Shown) -> Checked:
        """Check a text. For the worker's thread."""
        return check(shown, self.workspace, self.client, self._door)

    def new_memory(self) -> Memory:
        """Return an empty memory for the checks of one document."""
        return Memory(self.workspace, self._new_cache())

    def log_once(self, what: str, error: BaseException) -> None:
        """Tell the log, and the client's, that something went wrong inside; the same thing only once."""
        if self.say_once(f"`{what}` failed with {type(error).__name__}; standard error tells more", ERROR):
            logger.error("%s failed", what, exc_info=error)

    def say_once(self, words: str, level: int) -> bool:
        """Put a line into the client's log, the same only once; tell whether it is new."""
        if words in self._said:
            return False
        self._said.add(words)
        self.wire.notify("window/logMessage", {"type": level, "message": f"agentloom: {words}"})
        return True

    async def check_again(self, source: Source) -> Checked:
        """Check an earlier version of an open document. Raises ``KeyError`` when it has been closed."""
        document = self.documents.get(source.uri)
        if document is None:
            raise KeyError(source.uri)
        memory = document.memory or self.new_memory()
        shown = Shown(source, document.language_id, document.kind, memory)
        return await self.worker.submit(lambda: self.run_check(shown))

    def _check_opened(self, document: Document) -> Checked:
        memory = document.memory or self.new_memory()
        return self.run_check(Shown(document.source, document.language_id, document.kind, memory))

    def _prepare(self, key: str) -> Callable[[], Checked] | None:
        document = self.documents.at(key)
        if document is None:
            return None
        if document.memory is None:
            document.memory = self.new_memory()
        last = self.runs.last(key)
        shown = Shown(document.source, document.language_id, document.kind, document.memory, last)
        return lambda: self.run_check(shown)

    def _submit(self, work: Callable[[], Checked]) -> Future[Checked]:
        return self.worker.submit(work)

    def _deliver(self, key: str, checked: Checked) -> None:
        document = self.documents.at(key)
        if document is None:
            return
        if checked.document is not None:
            document.kind = checked.document.kind
        if not self.client.pulls:
            reports = checked.reports if checked.ours else self.elsewhere.settings_reports(document.uri)
            self.publish(document.uri, checked.source.version, reports)
        self.reading(checked.files)
        self.elsewhere.settings_used()
        if self._results.get(key) != checked.result_id or self.survey.reads(key):
            self._results[key] = checked.result_id
            self.bell.ring()
        if self._spread.get(key) is not checked.source:
            self._spread[key] = checked.source  # once per text, so that files that read each other come to rest
            self.recheck_readers({key}, on_disk=False)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _recheck(self, keys: Iterable[str]) -> None:
        found = list(keys)
        for key in found:
            self.scheduler.opened(key)
        if found:
            self.refresh()
