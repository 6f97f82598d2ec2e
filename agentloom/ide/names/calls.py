"""Which state keys of a workflow and of what it runs are the same: shared, handed over with `input`, or given back.

A child without `isolated_state` begins with a copy of its caller's state; `input` sets keys in it; its final state, or the
`return_keys` of it, becomes what the step writes. Agents read their caller's state as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.names.index import Index, known_index
from agentloom.ide.names.keys import given, handed
from agentloom.ide.names.mentions import child_of, child_scope, mention_of
from agentloom.ide.names.scope import STEPS, Name, Parts, Scope, Where, folded, name_of_path


class Call(NamedTuple):
    """One workflow, or an agent's file, that another one runs. ``step`` is the step that does; None for a file under `agents`.

    ``inputs`` are the keys that the step sets in the child; ``handed`` the values that it hands over whole, as (path in the child,
    path in the caller). The child's state ends up below each of ``outputs``, cut down to ``returned`` unless that is None.
    """

    caller: Scope
    child: Scope
    step: str | None = None
    agent: bool = False
    shares: bool = True
    inputs: frozenset[str] = frozenset()
    handed: tuple[tuple[Parts, Parts], ...] = ()
    outputs: tuple[Parts, ...] = ()
    returned: frozenset[str] | None = None

    def below(self, name: Name) -> Iterator[Name]:
        """Yield what a name of the caller is called in the child."""
        if self.agent:
            yield Name(name.kind, self.child, name.path)
        if self.agent or name.kind != "state":
            return
        path = name.path
        if self.shares and path[0] != STEPS and path[0] not in self.inputs:
            yield Name("state", self.child, path)
        for output in self.outputs:
            rest = path[len(output) :]
            if rest and path[: len(output)] == output and rest[0] is not None and self._returns(rest[0]):
                yield Name("state", self.child, rest)
        for inner, outer in self.handed:
            if len(path) > len(outer) and path[: len(outer)] == outer:
                yield Name("state", self.child, inner + path[len(outer) :])

    def above(self, name: Name) -> Iterator[Name]:
        """Yield what a name of the child is called in the caller."""
        if self.agent:
            yield Name(name.kind, self.caller, name.path)
        if self.agent or name.kind != "state" or name.path[0] == STEPS:
            return
        path = name.path
        if self.shares and path[0] not in self.inputs:
            yield Name("state", self.caller, path)
        if path[0] is not None and self._returns(path[0]):
            for output in self.outputs:
                yield name_of_path(self.caller, output + path)
        for inner, outer in self.handed:
            if len(path) > len(inner) and path[: len(inner)] == inner:
                yield name_of_path(self.caller, outer + path[len(inner) :])

    def _returns(self, key: str) -> bool:
        return key != STEPS and (self.returned is None or key in self.returned)


class Links(NamedTuple):
    """Which files a file runs, and which it names at all; small, so that it can be kept for every file of a workspace."""

    file: str
    runs: frozenset[str]
    names: frozenset[str]


def links_of(document: WorkflowDocument) -> Links | None:
    """Return the files that a document runs and names; None when there are none. Keeps nothing with the document."""
    index = known_index(document) or Index(document)
    runs = frozenset(call.child.file for call in calls_of(index) if call.child.file != index.file)
    named = index.files | runs
    return Links(index.file, runs, named) if named else None


def calls_of(index: Index) -> tuple[Call, ...]:
    """Return what a file runs, what its workflows written in place run included; the same tuple each time."""
    known: tuple[Call, ...] | None = index.__dict__.get("_calls")
    if known is None:
        known = tuple(call for where in index.wheres for call in _calls(where))
        index.__dict__["_calls"] = known
    return known


def _calls(where: Where) -> Iterator[Call]:
    step = where.step
    if step is not None and child_of(where.document, step) is not None:
        data = where.facts.data
        returned = data.get("return_keys")
        outputs = [folded(write.parts) for write in where.facts.writes]
        yield Call(
            where.scope,
            child_scope(where, step),
            step.id,
            shares=data.get("isolated_state") is not True,
            inputs=given(where),
            handed=handed(where),
            outputs=(*outputs, (STEPS, step.id, "output")),
            returned=frozenset(key for key in returned if isinstance(key, str)) if isinstance(returned, list) else None,
        )
    for file in where.facts.files:
        leaf = next((leaf for leaf in where.facts.leaves if leaf.node is file.node), None)
        mark = leaf.shape.mark("file") if leaf is not None else None
        mention = mention_of(where, file) if mark is not None and mark.of == "agent" else None
        if mention is not None:
            yield Call(where.scope, Scope(mention.parts[0] or ""), step.id if step is not None else None, agent=True)
