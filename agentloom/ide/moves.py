"""Files that move: every path that names one of them, and the paths inside those that move themselves."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.edits import replace_value
from agentloom.diagnostics import Edit
from agentloom.ide.names.calls import links_of
from agentloom.ide.names.index import Index, index_of
from agentloom.ide.names.scope import Name
from agentloom.ide.results import Project, TextEdits


class Move(NamedTuple):
    """A file or folder that gets another path; both absolute."""

    old: Path
    new: Path


def paths_after(project: Project, moves: Sequence[Move]) -> tuple[TextEdits, ...]:
    """Return the edits, of the files as they are before the moves, after which every path leads where it led before."""
    known = [Move(Path(os.path.abspath(move.old)), Path(os.path.abspath(move.new))) for move in moves]
    changes: list[TextEdits] = []
    for links in project.each(links_of):
        if links is None or not _concerns(known, links.file, links.names):
            continue
        document = project.document(Path(links.file))
        if document is None or document.path is None:
            continue
        edits = tuple(_edits(document, known))
        if edits:
            changes.append(TextEdits(document.source, edits))
    return tuple(changes)


def _concerns(moves: Sequence[Move], file: str, names: Iterable[str]) -> bool:
    return any(_after(moves, path) != path for path in (file, *names))


def _after(moves: Sequence[Move], path: str) -> str:
    """Return where a file is after the moves; of a folder and a file in it, the file's own move counts."""
    best: Move | None = None
    for move in moves:
        old = str(move.old)
        inside = path == old or path.startswith(old.rstrip(os.sep) + os.sep)
        if inside and (best is None or len(old) > len(str(best.old))):
            best = move
    return (
        path
        if best is None
        else os.path.join(best.new, os.path.relpath(path, best.old))
        if path != str(best.old)
        else str(best.new)
    )


def _edits(document: WorkflowDocument, moves: Sequence[Move]) -> Iterator[Edit]:
    index = index_of(document)
    found: dict[tuple[int, int], Edit] = {}
    for target in index.files:
        after = _after(moves, target)
        if after == target and not _is_there(index, target):
            continue  # not made yet, or meant for another machine
        for mention in index.mentions(Name("file", None, (target,))):
            written = _written(mention.node.value, Path(_after(moves, index.file)).parent, after)
            if written == mention.node.value:
                continue
            for edit in replace_value(mention.node, written):
                span = edit.span.shift(mention.where.base)
                found[span] = Edit(span, edit.text)
    yield from (found[span] for span in sorted(found))


def _is_there(index: Index, target: str) -> bool:
    try:
        return index.document.context.exists(Path(target))
    except (OSError, ValueError):
        return False


def _written(old: str, folder: Path, target: str) -> str:
    """Return the path of a file as it is written in a folder: relative, unless it was absolute, and with `./` if it had that."""
    if PurePath(old).is_absolute():
        return target
    if os.path.normpath(folder / old) == os.path.normpath(target):
        return old
    try:
        path = os.path.relpath(target, folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return target
    return f"./{path}" if old.startswith("./") and not path.startswith("../") else path
