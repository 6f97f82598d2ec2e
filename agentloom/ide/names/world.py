"""The names of one request in all files that take part: which of them mean the same thing, and where they stand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.symbols import Role
from agentloom.ide.names.calls import Call, Links, calls_of, links_of
from agentloom.ide.names.index import ROLES, Index, index_of
from agentloom.ide.names.scope import Name, Place, Scope
from agentloom.ide.results import Project

MOST_NAMES = 2_000
"""Names of one thing that are followed; more is surely a ring of some kind."""

DEEPER = 2
"""Segments that a followed path may have more than any that stands in a file: values are nested and taken apart on the way."""


class World:
    """The files around a document, read when they are needed. For one request."""

    def __init__(self, document: WorkflowDocument, project: Project | None = None) -> None:
        own = index_of(document)
        self.own = own
        self._project = project
        self._indexes: dict[str, Index | None] = {own.file: own}
        self._callers: dict[str, tuple[Index, ...]] = {}

    def index(self, file: str) -> Index | None:
        """Return the index of a file; None when it can't be read."""
        if file not in self._indexes:
            document = self._project.document(Path(file)) if self._project is not None else self._child(file)
            self._indexes[file] = index_of(document) if document is not None else None
        return self._indexes[file]

    def loaded(self) -> list[Index]:
        """Return the files that were read so far."""
        return [index for index in self._indexes.values() if index is not None]

    def callers(self, file: str) -> tuple[Index, ...]:
        """Return the files that run a file."""
        if file not in self._callers:
            found: dict[str, Index] = {}
            if any(call.child.file == file for call in calls_of(self.own)):
                found[self.own.file] = self.own
            for links in self._links():
                if file in links.runs and links.file not in found:
                    index = self.index(links.file)
                    if index is not None:
                        found[links.file] = index
            self._callers[file] = tuple(found.values())
        return self._callers[file]

    def namers(self, file: str) -> Iterator[Index]:
        """Yield the files that name a file in any way."""
        if file in self.own.files:
            yield self.own
        for links in self._links():
            if file in links.names and links.file != self.own.file:
                index = self.index(links.file)
                if index is not None:
                    yield index

    def calls_from(self, scope: Scope) -> Iterator[Call]:
        """Yield what a workflow runs."""
        index = self.index(scope.file)
        for call in calls_of(index) if index is not None else ():
            if call.caller == scope:
                yield call

    def calls_to(self, scope: Scope) -> Iterator[Call]:
        """Yield the steps and agents that run a workflow."""
        own = self.index(scope.file)
        for index in self.callers(scope.file) if not scope.trail else (own,) if own is not None else ():
            for call in calls_of(index):
                if call.child == scope:
                    yield call

    def same(self, name: Name) -> list[Name]:
        """Return every name that means the same thing, the given one first: in callers and children, and through aliases."""
        found: dict[Name, None] = {name: None}
        todo = [name]
        while todo and len(found) < MOST_NAMES:
            for other in self._beside(todo.pop()):
                if other not in found and len(other.path) <= self._longest() + DEEPER:
                    found[other] = None
                    todo.append(other)
        return list(found)

    def _longest(self) -> int:
        return max(index.longest for index in self.loaded())

    def places(self, names: Iterable[Name], roles: Collection[Role] = ROLES) -> list[Place]:
        """Return every place of some names in some roles, those of the request's own file first, each once."""
        found: dict[tuple[str, int, int], Place] = {}
        for name in names:
            for index in self._indexes_for(name):
                for place in index.places(name, roles):
                    key = (index.file, *place.span)
                    if key not in found or (found[key].role == "read" and place.role == "write"):
                        found[key] = place
        own = self.own.file
        return [found[key] for key in sorted(found, key=lambda key: (key[0] != own, key))]

    def is_mentioned(self, name: Name) -> bool:
        """Tell whether a name stands anywhere."""
        return any(True for index in self._indexes_for(name) for _ in index.places(name))

    def at_home(self, name: Name, roles: Collection[Role] = ROLES) -> list[Place]:
        """Return the places of a name in some roles that stand in the workflow where it holds, and not in one that runs it."""
        index = self.index(name.scope.file) if name.scope is not None else None
        found = index.places(name, roles) if index is not None else ()
        own = [place for place in found if place.mention is None or place.mention.where.scope == name.scope]
        return sorted(own, key=lambda place: place.span)

    def _beside(self, name: Name) -> Iterator[Name]:
        if name.scope is None or name.kind == "anchor":
            return
        for call in self.calls_from(name.scope):
            yield from call.below(name)
        for call in self.calls_to(name.scope):
            yield from call.above(name)
        for index in self._indexes_for(name):
            if index.anchors:
                for place in index.places(name):
                    yield from index.sharing(place)

    def _indexes_for(self, name: Name) -> Iterator[Index]:
        """Yield the files in which a name may stand."""
        if name.kind == "file":
            yield from self.namers(name.path[0] or "")
        elif name.scope is None:
            yield self.own
            word = name.path[0] or ""
            for document in self._project.documents(word) if self._project is not None else ():
                found = index_of(document)
                if found.file != self.own.file:
                    yield self._indexes.setdefault(found.file, found) or found
        else:
            index = self.index(name.scope.file)
            if index is not None:
                yield index
            if name.kind == "state" and not name.scope.trail:
                yield from (caller for caller in self.callers(name.scope.file) if caller is not index)

    def _links(self) -> Iterator[Links]:
        for links in self._project.each(links_of) if self._project is not None else ():
            if links is not None:
                yield links

    def _child(self, file: str) -> WorkflowDocument | None:
        """Return a child's document as the documents at hand have read it."""
        for index in list(self._indexes.values()):
            for document in index.scopes.values() if index is not None else ():
                for child in document.children.values():
                    if child.document is not None and str(child.path) == file:
                        return child.document
        return None
