"""What reaches a read: who has written it when the step runs, and on which routes nobody has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Self

from agentloom.analysis.dataflow.declared import Declared, declared, key_of
from agentloom.analysis.dataflow.routes import TooMany, way_around
from agentloom.analysis.dataflow.shapes import Loss, Reaching, Writer
from agentloom.analysis.dataflow.tables import STEPS, Key, Tables, bits, tables_of
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.language.paths import Part

MOST_NAMED = 50
"""Writers of one path that are named; a file that has more is told about those."""

_DECISIONS = "_approval"
# What the result of a step has under `steps.<id>`.
RESULT_FIELDS = ("output", "status")


class Outer(NamedTuple):
    """Where a child runs: the flow of its parent, the parent's step, and the keys that its `input` hands over."""

    flow: Reach
    step: Step
    isolated: bool
    given: frozenset[str]


class Reach:
    """What reaches the reads of a document; ``outer`` is where it runs, for the workflow of a subworkflow step."""

    def __init__(self, document: WorkflowDocument, outer: Outer | None = None) -> None:
        self.document = document
        self.outer = outer
        self.tables: Tables = tables_of(document)
        self.declared: Declared = _declared(document)
        self._children: dict[int, Self | None] = {}

    def writers(self, parts: Sequence[Part]) -> tuple[Writer, ...]:
        """Return every step that writes a path, something above it or something below it, in the order of the file."""
        mask, _ = self._candidates(tuple(parts))
        return self._named(mask, tuple(parts), 0)

    def child(self, step: Step) -> Self | None:
        """Return the flow of the workflow that a subworkflow step runs, seen from this one; None when it can't be read."""
        at = self.tables.index.get(step.id or "")
        if at is None or step.type != "subworkflow":
            return None
        if at not in self._children:
            self._children[at] = None  # while it is made: a ring of files has no end
            found = self.document.children.get(step.id or "")
            if found is not None and found.document is not None and not found.loop and self._depth() < 20:
                given = step.facts.data.get("input")
                isolated = step.facts.data.get("isolated_state") is True
                keys = frozenset(given) if isinstance(given, dict) else frozenset()
                self._children[at] = type(self)(found.document, Outer(self, step, isolated, keys))
        return self._children[at]

    def _depth(self) -> int:
        depth, outer = 0, self.outer
        while outer is not None:
            depth, outer = depth + 1, outer.flow.outer
        return depth

    # What reaches a read.

    def reaching(self, step: Step, parts: Sequence[Part]) -> Reaching:
        """Return what reaches a read of a path by a step."""
        at = self.tables.index.get(step.id or "")
        if at is None or self.tables.layer[at] < 0 or self.tables.steps[at] is not step:
            return Reaching("unknown")
        return self._reaching(at, tuple(parts))

    def exclusive(self, one: Step, other: Step) -> bool:
        """Tell whether two steps never run in the same run, since routers pick one or the other."""
        tables = self.tables
        a, b = tables.index.get(one.id or ""), tables.index.get(other.id or "")
        if a is None or b is None or not tables.needed[a]:
            return False
        return bool(tables.hostile(tables.needed[a]) & tables.needed[b])

    def is_sure(self, at: int, parts: tuple[Part, ...]) -> bool:
        """Tell quickly whether the n-th step surely finds a value; False also where only a closer look tells."""
        if parts[0] in self.declared.values and self.declared.origin(parts) is not None:
            return True
        return bool(self._surely(at, parts))

    def _surely(self, at: int, parts: tuple[Part, ...]) -> int:
        """Return the upstream steps that surely write a path before a step runs, as far as that is plain to see."""
        tables = self.tables
        if tables.goes_on or tables.loose:
            return 0
        if parts[0] == STEPS:
            if len(parts) < 2 or (len(parts) > 2 and parts[2] not in RESULT_FIELDS):
                return 0
            writer = tables.index.get(parts[1]) if isinstance(parts[1], str) else None
            found = 0 if writer is None else 1 << writer
        else:
            found = tables.writers_of(parts if len(parts) == 1 else key_of(parts))  # type: ignore[arg-type]
        if found & tables.children and len(parts) > 1:
            return 0
        return found & tables.upstream[at]

    def at_end(self, parts: Sequence[Part]) -> Reaching:
        """Return what is known of a path when the workflow has ended well: nothing has failed, routers decided as they liked."""
        return self._reaching(None, tuple(parts))

    def _reaching(self, at: int | None, parts: tuple[Part, ...]) -> Reaching:
        result = parts[:1] == (STEPS,)
        if not parts or parts == (STEPS,):
            return Reaching("declared", origin="engine")
        if parts[0] == _DECISIONS:
            return Reaching("declared", origin="engine")
        if not result:
            origin = self.declared.origin(parts)
            if origin is not None and (origin == "state" or self.outer is None or not self.outer.isolated):
                writers, _ = self._candidates(parts)
                return Reaching("declared", self._seen(at, writers, parts), origin=origin)
        inside = self._inside(at, parts)
        if result or inside.certainty in ("always", "unknown") or self.outer is None:
            return inside
        return self._with_outside(inside, parts)

    def _with_outside(self, inside: Reaching, parts: tuple[Part, ...]) -> Reaching:
        """Add what a child is handed by its parent."""
        outer = self.outer
        assert outer is not None
        if parts[0] in outer.given:
            return Reaching("declared", inside.writers, origin="input")
        if outer.isolated or self.declared.holds(parts):
            return inside
        outside = outer.flow.reaching(outer.step, parts)
        if outside.certainty in ("always", "declared", "unknown"):
            return outside._replace(writers=inside.writers + outside.writers)
        if inside.certainty == "sometimes" or outside.certainty == "never":
            return inside
        return outside

    def _candidates(self, parts: tuple[Part, ...]) -> tuple[int, Key]:
        """Return the steps that write what is read, as bits, and the key by which they were found."""
        tables = self.tables
        key = key_of(parts)
        if key and key[0] == STEPS:
            at = tables.index.get(key[1]) if len(key) > 1 else None
            if at is None or tables.layer[at] < 0 or (len(key) > 2 and key[2] not in RESULT_FIELDS):
                return 0, key
            return 1 << at, key
        return tables.writers_of(key), key

    def _inside(self, at: int | None, parts: tuple[Part, ...]) -> Reaching:
        """Return what the workflow's own steps do for a read."""
        tables = self.tables
        found, key = self._candidates(parts)
        if tables.is_loose(key) or (key[0] == STEPS and self._loose_step(key)):
            return Reaching("unknown")
        if not found:
            return Reaching("never")
        if at is None:
            before, upstream, needed = (1 << len(tables.steps)) - 1, 0, 0
        else:
            before, upstream, needed = tables.before[at], tables.upstream[at], tables.needed[at]
            if tables.dead >> at & 1:
                return Reaching("unknown")
        partial: tuple[Writer, Loss] | None = None
        if len(parts) > 1 and found & before & tables.children:
            left, partial = self._of_children(found, found & before & tables.children, parts, upstream)
            if left != found and left & before:
                return Reaching("unknown")  # several write it, and who comes last decides whether it holds what is read
            found = left
        live = found & before & ~tables.dead
        sure = live & upstream
        if tables.goes_on:
            sure &= tables.router_bits  # everything else may fail while the reader runs
        if sure:
            return Reaching("always", self._named(live, parts, upstream))
        if at is not None and (tables.unsure >> at & 1 or found & tables.unsure):
            return Reaching("unknown")
        if not live:
            return self._out_of_reach(at, found, before, parts, partial)
        hostile = tables.hostile(needed) if needed else 0
        possible = live
        if hostile:
            for writer in bits(live):
                if tables.needed[writer] & hostile:
                    possible &= ~(1 << writer)
            if not possible:
                if partial is not None:
                    return Reaching("sometimes", (partial[0],), loss=partial[1])
                return Reaching("excluded", self._named(live, parts, upstream))
        writers = self._named(possible, parts, upstream)
        guarded = at is not None and bool(needed) and self._guarded(needed, key, possible)
        try:
            picks = None if possible & upstream else way_around(tables, needed, list(bits(possible)))
        except TooMany:
            return Reaching("unknown", writers)
        if picks is not None:
            loss = partial[1] if partial is not None and not picks else Loss(picks)
            return Reaching("sometimes", writers, loss=loss, guarded=guarded)
        if at is None:
            return Reaching("always", writers)
        fails = tuple(tables.steps[n].id or "" for n in islice(bits(possible), MOST_NAMED))
        return Reaching("sometimes", writers, loss=Loss(fails=fails), guarded=guarded)

    def _out_of_reach(
        self,
        at: int | None,
        found: int,
        before: int,
        parts: tuple[Part, ...],
        partial: tuple[Writer, Loss] | None,
    ) -> Reaching:
        tables = self.tables
        if partial is not None:
            return Reaching("sometimes", (partial[0],), loss=partial[1])
        if at is not None:
            later = found & ~before & ~(1 << at) & ~tables.dead
            if later:
                return Reaching("unordered", later=self._named(later, parts, 0))
        if found & before & tables.dead:
            return Reaching("excluded", self._named(found & before, parts, 0))
        return Reaching("never", later=self._named(found, parts, 0))

    def _of_children(
        self, found: int, children: int, parts: tuple[Part, ...], upstream: int
    ) -> tuple[int, tuple[Writer, Loss] | None]:
        """Take out the subworkflow steps whose workflow doesn't write what is read below their output; keep one that may."""
        partial: tuple[Writer, Loss] | None = None
        for at in bits(children):
            step = self.tables.steps[at]
            for rest in self._below_output(step, parts):
                given = self.returned(step, rest)
                if given.certainty in ("never", "excluded", "unordered", "sometimes"):
                    found &= ~(1 << at)
                if given.certainty == "sometimes":
                    loss = Loss(given.loss.picks if given.loss else (), child=step.id)
                    partial = (self._named(1 << at, parts, upstream)[0], loss)
        return found, partial

    def _below_output(self, step: Step, parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
        """Yield what of a path lies below the output of a step; nothing where it is the output itself, or not the only writer."""
        if parts[0] == STEPS:
            if len(parts) > 3:
                yield parts[3:]
            return
        for write in step.facts.writes:
            size = len(write.parts)
            if size < len(parts) and parts[:size] == write.parts:
                yield parts[size:]

    def returned(self, step: Step, parts: Sequence[Part]) -> Reaching:
        """Return what is known of a path below the output of a subworkflow step that has succeeded."""
        child = self.child(step)
        if child is None or not parts:
            return Reaching("unknown")
        keys = step.facts.data.get("return_keys")
        if isinstance(keys, list) and parts[0] not in keys:
            return Reaching("never")
        found = child.at_end(parts)
        if found.certainty == "never" and child.broken:
            return Reaching("unknown")  # a step that can't be read may write it
        return found

    @cached_property
    def broken(self) -> bool:
        """Whether some of the text can't be read, so that steps may be missing here."""
        if self.document.inline and self.outer is not None:
            return self.outer.flow.broken
        return any(finding.code == "AL001" for finding in self.document.tree.findings)

    def _loose_step(self, key: Key) -> bool:
        """Tell whether a result is that of a step whose id stands twice or that is on a ring."""
        at = self.tables.index.get(key[1]) if len(key) > 1 else None
        return at is not None and self.tables.layer[at] < 0

    def _guarded(self, needed: int, key: Key, writers: int) -> bool:
        """Tell whether a router that must pick a branch for the reader to run looks at what is read, or at its writer's result."""
        tables = self.tables
        ids = {tables.steps[at].id for at in bits(writers)}
        for edge in bits(needed):
            for expression in tables.routers[tables.edges[edge][0]].expressions:
                for read in expression.reads:
                    asked = key_of(read.parts)
                    if asked[:1] == (STEPS,) and len(asked) > 1 and asked[1] in ids:
                        return True
                    if asked[: len(key)] == key[: len(asked)] and asked != (STEPS,):
                        return True
        return False

    def _seen(self, at: int | None, mask: int, parts: tuple[Part, ...]) -> tuple[Writer, ...]:
        if not mask:
            return ()
        if at is None:
            return self._named(mask, parts, 0)
        return self._named(mask & self.tables.before[at], parts, self.tables.upstream[at])

    def _named(self, mask: int, parts: tuple[Part, ...], upstream: int) -> tuple[Writer, ...]:
        """Return steps as writers of a path, upstream ones first, then in the order of the file."""
        tables, key = self.tables, key_of(parts)
        found = [
            Writer(tables.steps[at], key, tables.layer[at], True) for at in islice(bits(mask & upstream), MOST_NAMED)
        ]
        rest = islice(bits(mask & ~upstream), MOST_NAMED - len(found))
        found.extend(Writer(tables.steps[at], key, tables.layer[at], False) for at in rest)
        return tuple(found)


def _declared(document: WorkflowDocument) -> Declared:
    kept: Declared | None = document.__dict__.get("_flow_declared")
    if kept is None:
        kept = document.__dict__["_flow_declared"] = declared(document)
    return kept
