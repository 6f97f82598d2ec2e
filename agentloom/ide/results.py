"""What several features answer with: places and edits, possibly in other files. Plain values in code-point offsets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Edit
from agentloom.text import Source, Span


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


class Refusal(Exception):
    """Why something can't be done, in words for the user: lower case, no final stop."""


class Project(Protocol):
    """What a feature may ask about other files: those of the workspace, as open in the editor or else as on disk."""

    def documents(self) -> Iterable[WorkflowDocument]:
        """Return every workflow and agent file of the workspace, checked; closed files without a cache of their own."""

    def document(self, path: Path) -> WorkflowDocument | None:
        """Return one file, checked; None when it can't be read."""
