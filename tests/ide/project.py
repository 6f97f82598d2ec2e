"""A small workspace in memory, for features that look into other files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.text import Source
from tests.ide.marked import CURSOR

T = TypeVar("T")
FOLDER = Path("/work-space")


class Files:
    """Files by name, all in one folder; ``cursor`` is the file and the offset of the mark, where one stands in a text."""

    def __init__(self, texts: Mapping[str, str], settings: Settings | None = None) -> None:
        self.cursor: tuple[str, int] | None = None
        self.texts: dict[Path, str] = {}
        for name, text in texts.items():
            at = text.find(CURSOR)
            if at >= 0:
                self.cursor = (name, at)
                text = text[:at] + text[at + 1 :]
            self.texts[FOLDER / name] = text
        self.context = Context(
            settings or Settings(),
            read_text=self._read,
            exists=lambda path: path in self.texts,
            list_folder=lambda folder: tuple(p.name for p in self.texts if p.parent == folder),
        )
        self._known: dict[Path, WorkflowDocument] = {}

    def _read(self, path: Path) -> str:
        if path not in self.texts:
            raise FileNotFoundError(path)
        return self.texts[path]

    def document(self, path: Path) -> WorkflowDocument | None:
        if path not in self.texts:
            return None
        if path not in self._known:
            kind = "agent" if path.name.endswith(".agent.yaml") else "workflow"
            self._known[path] = analyze(Source(str(path), self.texts[path], 7), self.context, None, kind)  # type: ignore[arg-type]
        return self._known[path]

    def named(self, name: str) -> WorkflowDocument:
        found = self.document(FOLDER / name)
        assert found is not None
        return found

    def documents(self, mentioning: str = "") -> Iterator[WorkflowDocument]:
        for path in self.texts:
            if path.suffix == ".yaml" and (document := self.document(path)) and mentioning in document.source.text:
                yield document

    def each(self, function: Callable[[WorkflowDocument], T]) -> Iterable[T]:
        return [value for document in self.documents() if (value := function(document)) is not None]

    def asked(self) -> tuple[WorkflowDocument, int]:
        """Return the document with the mark, and where it stood."""
        assert self.cursor is not None
        name, offset = self.cursor
        return self.named(name), offset
