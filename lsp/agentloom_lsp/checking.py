"""One check of one document: from what the editor shows to the diagnostics it gets. Runs in the worker's thread."""

from __future__ import annotations

import logging
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agentloom.analysis.classify import classify
from agentloom.analysis.context import Context, path_of
from agentloom.analysis.document import FileKind, WorkflowDocument
from agentloom.analysis.settings import matches_glob
from agentloom.ide.last_run import LastRun
from agentloom.text import LineTable, Source, Span
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.learning import Learned
from agentloom_lsp import uris
from agentloom_lsp.client import Client
from agentloom_lsp.convert import Places
from agentloom_lsp.reports import SOURCE, Report, Reporter, result_id
from agentloom_lsp.workspace import SUFFIXES, Stamp, Workspace

logger = logging.getLogger(__name__)

UNREADABLE = ("AL001", "AL006")
"""Codes of lines that could not be read as they stand."""


class Door(Protocol):
    """The analysis, as the server sees it."""

    def __call__(self, source: Source, context: Context, cache: Any, kind: FileKind) -> WorkflowDocument:
        """Return the checked document; ``cache`` is kept per document, and empty for the first check."""


class Memory:
    """What is kept from one check of a document to the next. For one check at a time.

    ``cache`` is the analysis' own. The context stays the same object as long as the settings and their tools do, since the cache goes by it;
    ``asked`` holds every file that was read or looked for meanwhile, ``listed`` every folder. ``readable`` is the last version
    without a syntax error.
    """

    __slots__ = ("_context", "_learned", "_workspace", "asked", "cache", "listed", "readable")

    def __init__(self, workspace: Workspace, cache: Any) -> None:
        self._workspace = workspace
        self._context: Context | None = None
        self._learned: Learned | None = None
        self.cache = cache
        self.asked: dict[Path, Stamp] = {}
        self.listed: dict[Path, Stamp] = {}
        self.readable: WorkflowDocument | None = None

    def context(self, path: Path | None) -> Context:
        """Return the context to check a file in."""
        settings = self._workspace.settings(path)
        learned = self._workspace.own_tools.of(settings)
        if self._context is None or self._context.settings is not settings or self._learned is not learned:
            self.asked, self.listed = {}, {}
            tools, complete = (BUILTIN_TOOLS, False) if learned is None else (learned.tools, learned.complete)
            self._context = Context(settings, self._read, self._exists, self._list, tools, tools_complete=complete)
            self._learned = learned
        return self._context

    def _read(self, path: Path) -> str:
        self._note(path)
        return self._workspace.read_text(path)

    def _exists(self, path: Path) -> bool:
        self._note(path)
        return self._workspace.exists(path)

    def _list(self, folder: Path) -> tuple[str, ...]:
        if folder not in self.listed:
            self.listed[folder] = self._workspace.stamp(folder)
        return self._workspace.list_folder(folder)

    def _note(self, path: Path) -> None:
        if path not in self.asked:
            self.asked[path] = self._workspace.stamp(path)


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is to check: a text and what the client calls it. ``kind`` is what it was taken for before.

    ``last`` is its last run, whose failures are told with what the check finds.
    """

    source: Source
    language_id: str
    kind: FileKind | None
    memory: Memory
    last: LastRun | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """The outcome. ``ours`` tells whether it is a file of ours; ``files`` are the files that were read or looked for,
    ``folders`` those whose names were, ``keys`` the files' keys.

    ``document`` is None when it isn't, or when the check itself failed.
    """

    source: Source
    ours: bool
    document: WorkflowDocument | None
    reports: tuple[Report, ...] = ()
    result_id: str = ""
    files: frozenset[Path] = frozenset()
    folders: frozenset[Path] = frozenset()
    keys: frozenset[str] = frozenset()

    def depends_on(self, keys: Set[str], listed: Set[str] = frozenset()) -> bool:
        """Tell whether one of these files, given by their keys, was read or looked for, or lies in a folder of these.

        ``listed`` are folders in which something was made or removed.
        """
        return any(reaches(key, keys) for key in self.keys) or any(
            uris.path_key(path) in listed for path in self.folders
        )


def reaches(key: str, keys: Set[str]) -> bool:
    """Tell whether a file is among these, or in a folder that is."""
    if key in keys:
        return True
    head, slash, _ = key.rpartition("/")
    while slash:
        if head in keys:
            return True
        head, slash, _ = head.rpartition("/")
    return False


def check(shown: Shown, workspace: Workspace, client: Client, door: Door) -> Checked:
    """Check a text. Never raises: what goes wrong inside is logged and becomes one diagnostic."""
    path = path_of(shown.source.uri)
    context = shown.memory.context(path)
    kind = kind_of(shown, path, context)
    if kind is None:
        return Checked(shown.source, False, None, result_id=result_id(()))
    try:
        document = door(shown.source, context, shown.memory.cache, kind)
        reports: list[Report] = []
        if not uris.is_past(shown.source.uri):  # nobody can mend the past
            reporter = Reporter(document, client, workspace.read_text, workspace.uri_of)
            reports = [*reporter.reports(), *reporter.failures(shown.last)]
    except Exception:
        logger.exception("the check of %s failed", shown.source.uri)
        reports = [_crash(shown.source, client)]
        return Checked(shown.source, True, None, tuple(reports), result_id(reports))
    if not any(finding.code in UNREADABLE for finding in document.tree.findings):
        shown.memory.readable = document
    files = document.files.union(shown.memory.asked)
    return Checked(
        shown.source,
        True,
        document,
        tuple(reports),
        result_id(reports),
        files,
        frozenset(shown.memory.listed),
        frozenset(map(uris.path_key, files)),
    )


def kind_of(shown: Shown, path: Path | None, context: Context) -> FileKind | None:
    """Return what kind of file a text is. A file that was ours stays ours while it is edited."""
    if path is None and (inside := uris.path_in(shown.source.uri)) is not None:
        path = Path(inside)  # nothing on disk, but it has a name
    language = shown.language_id.lower()
    if language and language != "agentloom" and not language.startswith("yaml"):
        named = path is not None and (path.name.lower().endswith(SUFFIXES) or matches_glob(path, context.settings))
        if not named:
            return None
    return classify(shown.source.text, path, context.settings, language) or shown.kind


def _crash(source: Source, client: Client) -> Report:
    lines = LineTable(source.text)
    return {
        "range": Places(lines, client.encoding).range(Span(0, lines.line_span(0).end)),
        "severity": 1,
        "code": "AL900",
        "source": SOURCE,
        "message": "internal error, this file could not be checked; please report it",
    }
