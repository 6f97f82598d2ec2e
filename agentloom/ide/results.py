"""What several features answer with: places and edits, possibly in other files. Plain values in code-point offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit
from agentloom.text import Source, Span

T = TypeVar("T")


class Location(NamedTuple):
    """A place in a text. ``whole`` is the thing around it that a client may show or select (a step, an entry)."""

    source: Source
    span: Span
    whole: Span | None = None


class FileLocation(NamedTuple):
    """A file as a whole, which need not be one of ours: a recording, an attachment."""

    path: Path


class TextEdits(NamedTuple):
    """Edits of one text: non-overlapping, in ascending order."""

    source: Source
    edits: tuple[Edit, ...]


class NewFile(NamedTuple):
    """A file to be made; never over one that is there."""

    path: Path
    text: str


Changes = tuple[TextEdits | NewFile, ...]


class Refusal(Exception):
    """Why something can't be done, in words for the user: lower case, no final stop."""


class Project(Protocol):
    """What a feature may ask about other files: those of the workspace, as open in the editor or else as on disk.

    Going through all files may take seconds. In the server it is done in the worker's thread.
    """

    def documents(self, mentioning: str = "") -> Iterable[WorkflowDocument]:
        """Return every workflow and agent file of the workspace, checked; closed files without a cache of their own.

        ``mentioning``: only those in whose text this stands, which saves checking the others.
        """

    def each(self, function: Callable[[WorkflowDocument], T]) -> Iterable[T]:
        """Return what a function makes of every file (None is left out); remembered until the file changes.

        So it must be a function of a module, not one made for the occasion, and its result small: without the document.
        """

    def document(self, path: Path) -> WorkflowDocument | None:
        """Return one file, checked (as a workflow where its looks don't tell); None when it can't be read."""
