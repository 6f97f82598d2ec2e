"""A subworkflow step and the workflow that it runs, and how the graph looks when the one takes the other's place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.refactor.accesses import Accesses, Parts
from agentloom.ide.refactor.chunks import Chunks, chunks_of, steps_of
from agentloom.ide.refactor.naming import free_name, state_keys
from agentloom.ide.refactor.needs import routers_of, without_implied
from agentloom.ide.results import Refusal
from agentloom.language.paths import Part, PathFault, parse_output_path
from agentloom.syntax.values import find


@dataclass(eq=False, repr=False)
class Call:
    """One step that runs a child workflow."""

    document: WorkflowDocument
    step: Step

    @cached_property
    def child(self) -> WorkflowDocument:
        """The workflow that the step runs. Raises ``Refusal`` when it can't be read."""
        found = self.document.children.get(self.step.id or "")
        if found is None or found.document is None or found.loop:
            raise Refusal("the workflow that it runs can't be read")
        return found.document

    @cached_property
    def folder(self) -> Path | None:
        """The child's folder; None for a workflow in place."""
        found = self.document.children[self.step.id or ""]
        return found.path.parent if found.path is not None else None

    @cached_property
    def me(self) -> str:
        """The step's id."""
        return self.step.id or ""

    @cached_property
    def outer(self) -> Accesses:
        """What the file's steps read and write."""
        return Accesses(self.document)

    @cached_property
    def inner(self) -> Accesses:
        """What the child's steps read and write."""
        return Accesses(self.child)

    @cached_property
    def isolated(self) -> bool:
        """Whether the child sees only what it is handed."""
        return self.step.facts.data.get("isolated_state") is True

    @cached_property
    def output(self) -> Parts:
        """The path that the step's output goes to; empty when there is none."""
        path = parse_output_path(self.step.facts.text("output") or "")
        return () if isinstance(path, PathFault) else path.parts

    @cached_property
    def ids(self) -> dict[str, str]:
        """The child's ids and their new names."""
        taken = set(self.document.by_id) - {self.me}
        found: dict[str, str] = {}
        for name in self.child.by_id:
            free = name if name not in taken else free_name(f"{self.me}_{name}", taken, self.child.by_id)
            taken.add(free)
            found[name] = free
        return found

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The child's steps that wait for none."""
        return tuple(name for name, needs in self.child.graph.dependencies.items() if not needs)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """The child's steps that none waits for."""
        return tuple(name for name in self.child.by_id if not self.child.graph.dependents[name])

    @cached_property
    def written(self) -> tuple[Part, ...]:
        """The keys at the top of the child's state that its steps write."""
        return tuple(dict.fromkeys(write.parts[0] for write in self.inner.writes))

    @cached_property
    def returned(self) -> frozenset[Part] | None:
        """The keys that come back; None for all of them."""
        keys = self.step.facts.data.get("return_keys")
        return frozenset(keys) if isinstance(keys, list) else None

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys at the top of the state that this file and what it runs know of."""
        others = [access for access in (*self.outer.reads, *self.outer.writes) if access.step != self.me]
        return state_keys(self.document) | {str(access.parts[0]) for access in others if access.parts}

    @cached_property
    def places(self) -> dict[Part, Parts]:
        """Where each key that the child writes stands afterwards."""
        found: dict[Part, Parts] = {}
        for key in self.written:
            back = self.returned is None or key in self.returned
            found[key] = (*self.output, key) if back and self.output else (self.free(str(key)),)
        return found

    def free(self, key: str) -> str:
        """Return a key that the file doesn't know, like the child's own where that may be."""
        return key if key not in self.keys else free_name(f"{self.me}_{key}", self.keys, self.inner_keys)

    @cached_property
    def inner_keys(self) -> frozenset[str]:
        """The keys at the top of the state that the child names."""
        return state_keys(self.child)

    def given(self, key: Part) -> bool:
        """Tell whether the child may find a key when it begins."""
        if key in self.input or key in self.defaults:
            return True
        return not self.isolated and key in self.keys

    @cached_property
    def input(self) -> dict[Part, Any]:
        """The values of the step's `input`."""
        given = self.step.facts.data.get("input")
        return dict(given) if isinstance(given, dict) else {}

    @cached_property
    def defaults(self) -> dict[Part, Any]:
        """The child's own `state`."""
        state = self.child.head.data.get("state")
        return dict(state) if isinstance(state, dict) else {}

    @cached_property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The dependencies that the result must have."""
        graph = self.document.graph
        found: dict[str, tuple[str, ...]] = {}
        for name, needs in graph.dependencies.items():
            if name != self.me:
                found[name] = tuple(new for need in needs for new in self._mapped(need))
        for name, needs in self.child.graph.dependencies.items():
            found[self.ids[name]] = tuple(self.ids[need] for need in needs) or graph.dependencies[self.me]
        routers = {self.ids[name] for name in routers_of(self.child)} | routers_of(self.document)
        inner = {self.ids[name]: found[self.ids[name]] for name in self.child.by_id if name not in self.roots}
        return {**without_implied(found, graph, routers), **inner}

    def outer_need(self, name: str, need: str) -> tuple[str, ...]:
        """Return what a step of the file depends on instead."""
        return tuple(new for new in self._mapped(need) if new in self.needs[name])

    def _mapped(self, need: str) -> tuple[str, ...]:
        return tuple(self.ids[sink] for sink in self.sinks) if need == self.me else (need,)

    @cached_property
    def chunks(self) -> Chunks:
        """The lines of the child's steps, in offsets of the text that they stand in. Raises ``Refusal``."""
        if self.folder is not None:
            return chunks_of(self.child, steps_of(self.child))
        path = ("steps", self.step.index, "workflow_inline", "steps")
        return chunks_of(self.document, find(self.document.tree.root, path))
