"""Where every name of one file stands, sorted by what is named; made once for each version of a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.symbols import Occurrence, Role
from agentloom.ide.hits import hit_at
from agentloom.ide.names.anchors import Anchored, anchors_of
from agentloom.ide.names.mentions import child_of, child_scope, mention_of, mentions_in, other_mentions
from agentloom.ide.names.scope import (
    OF_STEPS,
    Kind,
    Mention,
    Name,
    Place,
    Scope,
    Where,
    file_of,
    names_of,
)
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.scalars import text_span
from agentloom.text import Span

ROLES: tuple[Role, ...] = ("define", "write", "read", "refer")
DEFINING: tuple[Role, ...] = ("define", "write")
"""Roles of the places where a name comes from."""

Key = tuple[str, Scope | None, str | None]


def index_of(document: WorkflowDocument) -> Index:
    """Return the index of a file's document; the same one each time."""
    known = known_index(document)
    if known is None:
        known = document.__dict__["_ide_names"] = Index(document)
    return known


def known_index(document: WorkflowDocument) -> Index | None:
    """Return the index of a file's document if it was made already."""
    known: Index | None = document.__dict__.get("_ide_names")
    return known


class Index:
    """Every name of one file, workflows written in place included."""

    def __init__(self, document: WorkflowDocument) -> None:
        self.document = document
        self.file = file_of(document)
        self.scopes: dict[Scope, WorkflowDocument] = {}
        self.wheres: list[Where] = []
        self._where_of: dict[tuple[int, int], Where] = {}
        self._buckets: dict[Key, list[tuple[Where, Occurrence | Mention]]] = {}
        self.longest = 1
        """Segments of the longest state path."""
        self._half_typed = any(found.code == "AL304" for found in document.diagnostics)
        self._add(document, Scope(self.file))

    def places(self, name: Name, roles: Collection[Role] = ROLES) -> Iterator[Place]:
        """Yield the places of a name in some roles, each once for every step that it belongs to."""
        if name.kind == "anchor":
            for anchored in self.anchors:
                marked = self._anchor_place(anchored)
                if marked.name == name and marked.role in roles:
                    yield marked
            return
        for mention in self.mentions(name):
            place = self._place(mention, name) if mention.role in roles else None
            if place is not None:
                yield place

    def mentions(self, name: Name) -> Iterator[Mention]:
        """Yield what may name a thing: of a state path, every path with the same first key (or the same step's results)."""
        return self._of(_bucket(name))

    def named(self, kind: Kind, scope: Scope | None) -> Iterator[str]:
        """Yield the first segments that there are of a kind in a scope."""
        for bucket_kind, bucket_scope, word in self._buckets:
            if bucket_kind == kind and bucket_scope == scope and word is not None:
                yield word

    def head(self, scope: Scope) -> Where:
        """Return the head of one of the workflows in the file."""
        return self._where_of[(id(self.scopes[scope]), -1)]

    @property
    def files(self) -> frozenset[str]:
        """The files that are named here, as absolute paths."""
        return frozenset(self.named("file", None))

    def at(self, offset: int) -> Place | None:
        """Return the name that stands at an offset, a cursor behind it included; None where none does."""
        for anchored in self.anchors:
            if Span(anchored.span.start - 1, anchored.span.end).contains(offset):
                return self._anchor_place(anchored)
        hit = hit_at(self.document, offset)
        if hit is None or not isinstance(hit.node, Scalar):
            return None
        where = self._where_of.get((id(hit.document), -1 if hit.step is None else hit.step.index))
        if where is None:
            return None
        found: Place | None = None
        for mention in mentions_in(where, self._half_typed):
            if mention.node is not hit.node:
                continue
            for name, inside in names_of(mention):
                span = text_span(mention.node, *inside).shift(where.base)
                if not span.contains(offset) or span.end == span.start:
                    continue
                place = Place(name, mention.role, self.document.source, span, mention, self._whole(mention, span))
                if found is None or (found.role == "read" and mention.role == "write"):
                    found = place
        return found

    @cached_property
    def anchors(self) -> tuple[Anchored, ...]:
        """The anchors and aliases of the file."""
        return anchors_of(self.document)

    @cached_property
    def shared(self) -> dict[tuple[int, int, int], set[Name]]:
        """Names by the place in a node that they share through aliases; empty for files without any."""
        found: dict[tuple[int, int, int], set[Name]] = {}
        if self.anchors:
            for where in self.wheres:
                for mention in mentions_in(where, self._half_typed):
                    for name, inside in names_of(mention):
                        found.setdefault((where.base, id(mention.node), inside.start), set()).add(name)
        return found

    def sharing(self, place: Place) -> Iterable[Name]:
        """Return every name that stands at a place, through aliases."""
        mention = place.mention
        if mention is None or not self.anchors:
            return ()
        for name, inside in names_of(mention):
            if name == place.name:
                return self.shared.get((mention.where.base, id(mention.node), inside.start), ())
        return ()

    def mentions_node(self, document: WorkflowDocument, step: Step | None, field: str | None, node: Scalar) -> bool:
        """Tell whether a field (any, for None) of a step or head names something in a scalar, through whatever aliases."""
        where = self._where_of.get((id(document), -1 if step is None else step.index))
        if where is None:
            return False
        for mention in mentions_in(where, self._half_typed):
            if mention.node is node and (field is None or mention.key.split(".", 1)[0] == field):
                return True
        return False

    def _add(self, document: WorkflowDocument, scope: Scope) -> None:
        self.scopes[scope] = document
        self._take(Where(scope, document, None, document.head, document.base), -1)
        for step in document.steps:
            where = Where(scope, document, step, step.facts, step.base)
            self._take(where, step.index)
            child = child_of(document, step)
            if child is not None and child.path is None and child.document is not None:
                self._add(child.document, child_scope(where, step))

    def _take(self, where: Where, number: int) -> None:
        """Sort what a step or head names into the buckets. Most occurrences stay as they are: few are ever looked at."""
        self.wheres.append(where)
        self._where_of[(id(where.document), number)] = where
        buckets, scope = self._buckets, where.scope
        for found in where.facts.occurrences:
            kind = found.kind
            if kind == "step":
                key: Key = (kind, scope, found.name)
            elif kind == "state":
                parts = found.parts
                if not parts:
                    continue
                key = (kind, scope, str(parts[0]))
                if len(parts) > self.longest:
                    self.longest = len(parts)
                if parts[0] in OF_STEPS and len(parts) > 1:
                    key = ("step", scope, str(parts[1]))
            else:
                mention = mention_of(where, found)
                if mention is None:
                    continue
                key = (mention.kind, mention.scope, mention.parts[0])
            bucket = buckets.get(key)
            if bucket is None:
                buckets[key] = [(where, found)]
            else:
                bucket.append((where, found))
        for mention in other_mentions(where, self._half_typed):
            key = (mention.kind, mention.scope, mention.parts[0])
            self.longest = max(self.longest, len(mention.parts))
            if mention.kind == "state" and mention.parts[0] in OF_STEPS and len(mention.parts) > 1:
                key = ("step", mention.scope, mention.parts[1])
            buckets.setdefault(key, []).append((where, mention))

    def _of(self, key: Key) -> Iterator[Mention]:
        for where, found in self._buckets.get(key, ()):
            mention = found if isinstance(found, Mention) else mention_of(where, found)
            if mention is not None:
                yield mention

    def _place(self, mention: Mention, name: Name) -> Place | None:
        """Return the place of a name in a mention, if it is there."""
        parts, path = mention.parts, name.path
        if mention.kind != name.kind:  # a step below `steps` in a path
            path = (parts[0], *path)
        length = len(path)
        at = length - 1 - (len(parts) - len(mention.insides))
        if at < 0 or parts[:length] != path:
            return None
        span = text_span(mention.node, *mention.insides[at]).shift(mention.where.base)
        role = mention.role
        return Place(name, role, self.document.source, span, mention, self._whole(mention, span))

    def _whole(self, mention: Mention, span: Span) -> Span | None:
        """Return the thing around a name: the step that an id names, the entry of a key or field; None if that is elsewhere."""
        where = mention.where
        located = where.facts.fields.get(mention.key.split(".", 1)[0])
        whole = mention.whole
        if whole is None and mention.kind == "step" and mention.role == "define":
            whole = where.facts.node.span
        if whole is None and located is not None:
            whole = Span(located.key.span.start, located.value.span.end)
        if whole is None:
            return None
        whole = whole.shift(where.base)
        return whole if whole.start <= span.start and span.end <= whole.end else None

    def _anchor_place(self, anchored: Anchored) -> Place:
        role: Role = "define" if anchored.defines else "refer"
        name = _name_of(anchored, self.file)
        return Place(name, role, self.document.source, anchored.span, None, anchored.whole)


def _name_of(anchored: Anchored, file: str) -> Name:
    return Name("anchor", Scope(file), (anchored.word, str(anchored.group)))


def _bucket(name: Name) -> Key:
    if name.kind == "state" and name.path[0] in OF_STEPS and len(name.path) > 1:
        return "step", name.scope, name.path[1]
    return name.kind, name.scope, name.path[0]
