"""All files of the workspace for features that look beyond one document: `agentloom.ide.results.Project`, kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from agentloom.analysis.context import path_of, read_from_disk
from agentloom.analysis.document import WorkflowDocument
from agentloom_lsp import uris
from agentloom_lsp.checking import Checked
from agentloom_lsp.closed import Closed
from agentloom_lsp.documents import Document, Documents
from agentloom_lsp.workspace import Workspace

T = TypeVar("T")
UPWARDS = ("../", "..\\")
"""What stands in a text that names a file outside its folder."""


class WorkspaceProject:
    """The files of the folders, those open in the editor wherever they lie, and those that one of them names.

    For the worker's thread. ``latest`` returns what an open document was last found to be; ``breathe`` is called between two files.
    """

    def __init__(
        self,
        documents: Documents,
        workspace: Workspace,
        closed: Closed,
        latest: Callable[[str], Checked | None],
        check: Callable[[Document], Checked],
        breathe: Callable[[], None],
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._closed = closed
        self._latest = latest
        self._check = check
        self._breathe = breathe

    def documents(self, mentioning: str = "") -> Iterator[WorkflowDocument]:
        """Yield every workflow and agent file, checked; ``mentioning``: only those in whose text this stands."""
        for path, document in self._walk():
            if document is None and (not mentioning or self._mentions(path, mentioning)):
                document = self._closed.document(path, passing=True)
            if document is not None and mentioning in document.source.text:
                yield document

    def each(self, function: Callable[[WorkflowDocument], T]) -> Iterator[T]:
        """Yield what a function makes of each file; for closed files remembered until they change.

        So the function must be a module's own, and its result small: without the document or parts of it.
        """
        for path, document in self._walk():
            value = function(document) if document is not None else self._closed.value(path, function)
            if value is not None:
                yield value

    def expect(self, *functions: Callable[[WorkflowDocument], Any]) -> None:
        """Say which functions `each` will be asked with, so that the first look at the whole workspace is enough for them."""
        self._closed.expected = functions

    def document(self, path: Path) -> WorkflowDocument | None:
        """Return one file, checked: as a workflow, where its looks don't tell; None when it can't be read."""
        opened = self._documents.on_path(path)
        document = self._open(opened) if opened is not None else None
        return document if document is not None else self._closed.named_document(path)

    def _walk(self) -> Iterator[tuple[Path, WorkflowDocument | None]]:
        """Yield the path of each file that may be ours, and its document if it is open; files outside the folders last.

        Which those are is known of the files that were looked into while the others were gone through.
        """
        seen: set[str] = set()
        named: set[Path] = set()
        for _, opened in self._documents:
            self._breathe()
            path = path_of(opened.uri)
            document = self._open(opened)
            seen.add(uris.key(opened.uri))
            if document is not None:
                named.update(document.files)
                yield path or Path(opened.uri), document
        for path in self._workspace.candidates(self._breathe):
            if uris.path_key(path) not in seen:
                self._breathe()
                seen.add(uris.path_key(path))
                yield path, None
                named.update(self._closed.files(path))
        for path in sorted(named):
            if uris.path_key(path) not in seen and self._workspace.may_be_ours(path):
                self._breathe()
                yield path, None

    def _open(self, opened: Document) -> WorkflowDocument | None:
        checked = self._latest(uris.key(opened.uri))
        if checked is None or checked.source is not opened.source:
            checked = self._check(opened)
        return checked.document

    def _mentions(self, path: Path, word: str) -> bool:
        try:
            text = read_from_disk(path)
        except (OSError, ValueError):
            return False
        if word in text:
            return True
        if any(up in text for up in UPWARDS):
            self._closed.verdict(path)  # to learn which files outside the folders it names
        return False
