"""Where a name is defined, where it is used, and which places of a file to light up with it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.names.index import DEFINING, index_of
from agentloom.ide.names.recordings import recorded
from agentloom.ide.names.scope import Name, Place, name_of_path
from agentloom.ide.names.world import World
from agentloom.ide.results import FileLocation, Location, Project
from agentloom.text import Span

HighlightKind = Literal["text", "read", "write"]


class Definition(NamedTuple):
    """Where something is defined: ``origin`` is the name that was asked about, in the document's own offsets."""

    origin: Span
    targets: tuple[Location | FileLocation, ...]


class Highlight(NamedTuple):
    """A place of the same name in the same file."""

    span: Span
    kind: HighlightKind


def definition(document: WorkflowDocument, offset: int, project: Project | None = None) -> Definition | None:
    """Return where the name at an offset is defined; None where no name stands, or none that is defined in a file.

    A key that no file defines is part of a value that some step writes: that step's `output` is the answer then.
    """
    place = index_of(document).at(offset)
    if place is None:
        return None
    name = place.name
    if name.kind == "file":
        target = _file(document, name)
        return Definition(place.span, (target,)) if target is not None else None
    if name.kind in ("tool", "model", "provider"):
        return None
    world = World(document, project)
    for path in _nearest(name):
        found = world.at_home(path, DEFINING) or world.places(world.same(path), DEFINING)
        if found:
            return Definition(place.span, tuple(Location(p.source, p.span, p.whole) for p in _keys_first(found)))
    return None


def references(
    document: WorkflowDocument, offset: int, project: Project | None = None, declaration: bool = True
) -> list[Location]:
    """Return every place of the name at an offset, in all files that mean the same, recordings included; those of this file first.

    ``declaration``: the places that define it, too.
    """
    place = index_of(document).at(offset)
    if place is None:
        return []
    world = World(document, project)
    names = world.same(place.name)
    found = world.places(names)
    if place.name.kind == "step":
        found.extend(item.place for name in names for item in recorded(world, name))
    return [Location(p.source, p.span, p.whole) for p in found if declaration or p.role != "define"]


def highlights(document: WorkflowDocument, offset: int) -> list[Highlight]:
    """Return the places of the name at an offset in the same file, in order."""
    place = index_of(document).at(offset)
    if place is None:
        return []
    world = World(document)
    found = [p for p in world.places(world.same(place.name)) if p.source is document.source]
    return [Highlight(p.span, _kind(p)) for p in found]


def _kind(place: Place) -> HighlightKind:
    if place.name.kind in ("tool", "model", "provider", "file"):
        return "text"
    return "write" if place.role in ("define", "write") else "read"


def _nearest(name: Name) -> Iterable[Name]:
    """Yield a name, and for a state path what holds it, from the inside out."""
    yield name
    if name.kind == "state":
        for length in range(len(name.path) - 1, 0, -1):
            if name.path[length - 1] is not None:
                yield name_of_path(name.scope, name.path[:length])


def _keys_first(places: Iterable[Place]) -> list[Place]:
    return sorted(places, key=lambda place: place.role != "define")


def _file(document: WorkflowDocument, name: Name) -> FileLocation | None:
    path = Path(name.path[0] or "")
    if document.path is None:
        return None
    try:
        there = document.context.exists(path) and not document.context.list_folder(path)
    except (OSError, ValueError):
        return None
    return FileLocation(path) if there else None
