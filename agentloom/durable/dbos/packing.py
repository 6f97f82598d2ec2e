"""Files that go along with a run that is performed on another machine: attachments and recordings, found where the run is asked for.

Small ones stand in the order itself, larger ones in a folder that all machines share (`--blobs`). With `--shared` nothing goes along: then
the files are in that folder, and relative paths start there.
"""

from __future__ import annotations

import base64
import copy
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from agentloom.analysis.document import WorkflowDocument, word_span
from agentloom.core.definition import begins_a_path, change_paths
from agentloom.durable.dbos.blobs import digest_of, keep_blob
from agentloom.durable.dbos.orders import Order
from agentloom.errors import AgentLoomError, WorkflowError
from agentloom.files import in_plain_words, read_bytes
from agentloom.language.rendering import render
from agentloom.language.template import parse_template
from agentloom.model.sources import source_kind

MOST_INSIDE = 1024 * 1024
"""How many bytes of files may go through the database with a run, in all."""

APART = ".carried"
"""The folder in which files lie that lie outside of the workflow's own here."""

Files = Mapping[str, Mapping[str, Any]]
"""Files by their path below the workflow's folder: `size` and `sha256`, and in `data`, base64, what stands in the order itself."""


class Ways(NamedTuple):
    """How files get to the workers: folders that all machines share."""

    shared: Path | None = None
    blobs: Path | None = None


NO_WAYS = Ways()


def packed(order: Order, ways: Ways) -> Order:
    """Return the order of a run's first segment with the files that its workflow names, or with where its paths start in the shared folder.

    Raises ``WorkflowError`` for files that can't go along, with the place where they are named.
    """
    document = order.document
    assert document is not None
    folder = Path.cwd() if document.path is None else Path(os.path.abspath(document.path)).parent
    definition = copy.deepcopy(order.input["definition"])
    if ways.shared is not None:
        shared = Path(os.path.abspath(ways.shared))
        start = folder.relative_to(shared) if folder.is_relative_to(shared) else Path()
        change_paths(definition, lambda _, path: _relative(path, folder) or path)
        return order._replace(input={**order.input, "definition": definition, "shared": start.as_posix()})
    state = {**order.input["state"], **order.secrets}
    packing = _Packing(folder, state, ways.blobs, _places(document, folder, _is_confined(document)))
    change_paths(definition, packing.change)
    return order._replace(input={**order.input, "definition": definition, "files": packing.files})


class _Named(NamedTuple):
    """Where a path is named: file, line and column; and whether a sandbox is on there."""

    place: str
    confined: bool


class _Packing:
    """Takes files in, one after the other, as they are named."""

    def __init__(self, folder: Path, state: Mapping[str, Any], blobs: Path | None, named: Mapping[str, _Named]) -> None:
        self.files: dict[str, dict[str, Any]] = {}
        self._folder = folder
        self._state = state
        self._blobs = blobs
        self._named = named
        self._inside = 0

    def change(self, kind: str, path: str) -> str:
        """Take in what a path of the definition names, if it is a file here, and return the path that it has where the run is performed."""
        if kind not in ("attachment", "recording"):
            return _relative(path, self._folder) or path
        made = kind == "attachment" and "{" in path
        rendered = self._rendered(path) if made else path
        if rendered is None or not rendered or (kind == "attachment" and source_kind(rendered) != "path"):
            return path
        try:
            file = Path(os.path.abspath(self._folder / rendered))
            if not file.is_file():
                return path  # who needs it is told so, there as here
        except (OSError, ValueError):
            return path
        below = _relative(str(file), self._folder)
        where = self._named.get(str(self._folder / path)) or self._named.get(path) or _Named("", False)
        if below is None and (made or where.confined):
            why = "its path is made from the state" if made else "the sandbox is on"
            raise _refusal(
                where,
                f"`{rendered}` lies outside of the workflow's folder, and {why}; put it there, or give `--shared DIR`",
            )
        name = self._take(file, below, where)
        return path if made else name

    def _rendered(self, path: str) -> str | None:
        """Return what a template is going to render to, as far as that is known before the run."""
        template = parse_template(path)
        if any(placeholder.parts[0] not in self._state for placeholder in template.placeholders):
            return None
        try:
            return render(template, self._state, strict=True).strip()
        except AgentLoomError:
            return None

    def _take(self, file: Path, below: str | None, where: _Named) -> str:
        try:
            data = read_bytes(file)
        except OSError as error:
            raise _refusal(where, f"`{file}` can't be read: {in_plain_words(error)}") from None
        digest = digest_of(data)
        name = below if below is not None else f"{APART}/{digest[:16]}/{file.name}"
        if name in self.files:
            return name
        entry: dict[str, Any] = {"size": len(data), "sha256": digest}
        if self._inside + len(data) <= MOST_INSIDE:
            self._inside += len(data)
            entry["data"] = base64.b64encode(data).decode("ascii")
        elif self._blobs is not None:
            keep_blob(self._blobs, data)
        else:
            raise _refusal(
                where,
                f"`{file.name}` has {_size(data)}, and 1 MB of files in all goes through the database with a run; give a folder"
                " that is the same on all machines, with `--blobs DIR`",
            )
        self.files[name] = entry
        return name


def _size(data: bytes) -> str:
    return f"{len(data) / MOST_INSIDE:.1f} MB" if len(data) > MOST_INSIDE // 10 else f"{len(data)} bytes"


def _relative(path: str, folder: Path) -> str | None:
    """Return where a path lies below a folder that relative ones start at, as it is written everywhere; None when it is outside."""
    if not begins_a_path(path):
        return None
    whole = PurePath(os.path.normpath(folder / path))
    return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else None


def _is_confined(document: WorkflowDocument) -> bool:
    config = document.head.data.get("config")
    sandbox = config.get("sandbox") if isinstance(config, Mapping) else None
    return isinstance(sandbox, Mapping) and sandbox.get("enabled") is True


def _places(document: WorkflowDocument, folder: Path, confined: bool) -> dict[str, _Named]:
    """Return where the files of attachments and recordings are named, by their whole paths."""
    found: dict[str, _Named] = {}
    for path, place in _mentions(document):
        found.setdefault(str(folder / path), _Named(place, confined))
    for child in document.children.values():
        if child.document is not None:
            below = folder if child.path is None else child.path.parent
            for path, named in _places(child.document, below, confined or _is_confined(child.document)).items():
                found.setdefault(path, named)
    return found


def _mentions(document: WorkflowDocument) -> Iterator[tuple[str, str]]:
    for facts, base in ((document.head, document.base), *((step.facts, step.base) for step in document.steps)):
        for leaf in facts.leaves:
            mark = leaf.shape.mark("file")
            if mark is not None and mark.of in ("attachment", "recording") and isinstance(leaf.value, str):
                line, column = document.lines.position(word_span(leaf.node).shift(base).start)
                yield leaf.value, f"{document.source.uri}:{line + 1}:{column + 1}: "


def _refusal(where: _Named, why: str) -> WorkflowError:
    return WorkflowError(f"{where.place}AL707 {why}" if where.place else why)
