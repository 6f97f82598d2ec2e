"""Files that are not open: what they were found to be, until something that this was found from changes.

For each file little is kept: its verdict, and small values that features made of it. Documents are large, so only some are kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from agentloom.analysis.context import read_from_disk
from agentloom.analysis.document import FileKind, WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.text import Source
from agentloom.tools.learning import Learned
from agentloom_lsp.checking import Checked, Memory, Shown
from agentloom_lsp.documents import Documents
from agentloom_lsp.workspace import Stamp, Workspace

logger = logging.getLogger(__name__)

T = TypeVar("T")
MOST_KEPT = 500_000
"""Code points of text whose documents are kept, children included; each costs about 110 bytes."""


class _Key(NamedTuple):
    """A file, as its looks say, or as one that is ``named`` by a file of ours and so is a workflow whatever it looks like."""

    path: Path
    named: bool = False


@dataclass(slots=True, eq=False)
class _Known:
    """What was found about a file, and the state of everything that this was found from.

    ``checked`` is without text and document. ``values`` are what functions made of its document.
    """

    settings: Settings
    learned: Learned | None
    stamps: dict[Path, Stamp]
    checked: Checked
    values: dict[Callable[..., Any], Any] = field(default_factory=dict)


class _Kept(NamedTuple):
    known: _Known
    document: WorkflowDocument
    weight: int


class Closed:
    """Remembers what closed files are. For the worker's thread."""

    def __init__(
        self,
        documents: Documents,
        workspace: Workspace,
        run_check: Callable[[Shown], Checked],
        new_memory: Callable[[], Memory],
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._run_check = run_check
        self._new_memory = new_memory
        self._known: dict[_Key, _Known] = {}
        self._kept: dict[_Key, _Kept] = {}  # least lately used first
        self._weight = 0
        self.expected: tuple[Callable[[WorkflowDocument], Any], ...] = ()
        """What will be asked of every file sooner or later, and so is worked out when one is checked anyway."""

    def verdict(self, path: Path) -> Checked | None:
        """Return the verdict on a file, without text and document; None when it can't be read, or isn't ours."""
        key = _Key(path)
        known = self._fresh(key)
        if known is None:
            known, document = self._check(key)
            if known is not None and document is not None:
                self._keep(key, _Kept(known, document, _weight(document)), passing=True)
                self._expect(known, document)
        return known.checked if known is not None and known.checked.ours else None

    def document(self, path: Path, passing: bool = False) -> WorkflowDocument | None:
        """Return a file's document; None when it can't be read, or isn't ours. ``passing``: it won't be asked for again soon."""
        return self._document(_Key(path), passing)

    def named_document(self, path: Path) -> WorkflowDocument | None:
        """Return the document of a file that somebody names as ours, whatever it looks like; None when it can't be read."""
        return self._document(_Key(path)) or self._document(_Key(path, named=True))

    def value(self, path: Path, function: Callable[[WorkflowDocument], T]) -> T | None:
        """Return what a function makes of a file's document, from memory if nothing changed; None where there is no document."""
        key = _Key(path)
        known = self._fresh(key)
        if known is None or function not in known.values:
            document = self._document(key, passing=True)
            known = self._known.get(key)
            if document is None or known is None:
                return None
            known.values[function] = function(document)
        value: T | None = known.values[function]
        return value

    def files(self, path: Path) -> frozenset[Path]:
        """Return the files that a file was last found to read or look for."""
        known = self._known.get(_Key(path))
        return known.checked.files if known is not None else frozenset()

    def reads(self, key: str) -> bool:
        """Tell whether the verdict on a file depends on another one. For any thread."""
        return any(key in known.checked.keys for known in list(self._known.values()))

    def keep_only(self, paths: set[Path]) -> None:
        """Forget all other files, but those that these read: the others are gone, or out of the workspace."""
        wanted = paths.union(*(known.checked.files for key, known in self._known.items() if key.path in paths))
        self._known = {key: known for key, known in self._known.items() if key.path in wanted}
        for key in [key for key in self._kept if key not in self._known]:
            self._drop(key)

    def _document(self, key: _Key, passing: bool = False) -> WorkflowDocument | None:
        known = self._fresh(key)
        if known is not None:
            kept = self._kept.get(key)
            if kept is not None and kept.known is known:
                self._kept[key] = self._kept.pop(key)
                return kept.document
            if not known.checked.ours:
                return None
        values = known.values if known is not None else None  # what was made of the same document before
        known, document = self._check(key, values)
        if known is not None and document is not None:
            self._keep(key, _Kept(known, document, _weight(document)), passing)
        return document

    def _fresh(self, key: _Key) -> _Known | None:
        """Return what is known of a file if everything is still as it was then."""
        known = self._known.get(key)
        settings = self._workspace.settings(key.path)
        if known is None or known.settings != settings or known.learned is not self._workspace.own_tools.of(settings):
            return None
        changed = any(self._workspace.stamp(file) != stamp for file, stamp in known.stamps.items())
        return None if changed else known

    def _check(
        self, key: _Key, values: dict[Callable[..., Any], Any] | None = None
    ) -> tuple[_Known | None, WorkflowDocument | None]:
        self._drop(key)
        settings, own = self._workspace.settings(key.path), self._workspace.stamp(key.path)
        learned = self._workspace.own_tools.of(settings)
        try:
            source = Source(self._workspace.uri_of(key.path), read_from_disk(key.path))
        except (OSError, ValueError):
            self._known.pop(key, None)
            return None, None
        kind: FileKind | None = "workflow" if key.named else None
        memory = self._new_memory()
        checked = self._run_check(Shown(source, "yaml", kind, memory))
        memory.cache = memory.readable = None  # its context lives on in the document
        asked = {**memory.asked, **memory.listed}  # as they were when they were asked for: they may have changed since
        stamps = {file: asked[file] if file in asked else self._workspace.stamp(file) for file in checked.files}
        stamps.update(memory.listed)
        stamps[key.path] = own
        small = replace(checked, source=Source(source.uri, ""), document=None)
        known = self._known[key] = _Known(settings, learned, stamps, small, values or {})
        return known, checked.document

    def _keep(self, key: _Key, kept: _Kept, passing: bool) -> None:
        if passing and self._weight + kept.weight > MOST_KEPT:
            return  # a walk through all files would throw out what is in use, and come too late for each of them again
        self._kept[key] = kept
        self._weight += kept.weight
        while self._weight > MOST_KEPT and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def _expect(self, known: _Known, document: WorkflowDocument) -> None:
        for function in self.expected:
            try:
                known.values[function] = function(document)
            except Exception:
                logger.debug(
                    "%s failed on %s", function, document.source.uri, exc_info=True
                )  # told when it is asked for

    def _drop(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._weight -= kept.weight


def _weight(document: WorkflowDocument) -> int:
    """Return how many code points a document holds, those of its children included."""
    return len(document.source.text) + sum(
        _weight(child.document)
        for child in document.children.values()
        if child.path is not None and child.document is not None
    )
