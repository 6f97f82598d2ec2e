"""The steps that are extracted, and how the graph looks without them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.refactor.accesses import Access, Accesses
from agentloom.ide.refactor.naming import child_file, free_name, state_keys


@dataclass(eq=False, repr=False)
class Selection:
    """The chosen steps of a document; ``ids`` are in file order."""

    document: WorkflowDocument
    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        self.inside = frozenset(self.ids)
        self.graph = self.document.graph

    @cached_property
    def accesses(self) -> Accesses:
        """What all steps of the document read and write."""
        return Accesses(self.document)

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        """What the chosen steps write."""
        return tuple(write for write in self.accesses.writes if write.step in self.inside)

    @cached_property
    def name(self) -> str:
        """The new step's id, which is also its state key and its file's name."""
        last = [name for name in self.ids if not self.inside.intersection(self.graph.dependents[name])]
        base = f"{last[-1] if last else self.ids[-1]}_part"
        home = self.document.path
        taken: set[str] = set()
        if home is not None:
            while self.document.context.exists(child_file(self.document, home, free_name(base, *self._taken, taken))):
                taken.add(free_name(base, *self._taken, taken))
        return free_name(base, *self._taken, taken)

    @cached_property
    def _taken(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(self.document.by_id), state_keys(self.document)

    @cached_property
    def outer_needs(self) -> tuple[str, ...]:
        """What the new step depends on: all that its steps depended on outside."""
        found = [need for name in self.ids for need in self.graph.dependencies[name] if need not in self.inside]
        return tuple(
            need
            for need in dict.fromkeys(found)
            if self.step(need).type == "router" or not any(self.graph.is_upstream(need, other) for other in found)
        )

    @cached_property
    def outer_dependents(self) -> tuple[str, ...]:
        """The steps outside that depend on one of the chosen ones."""
        found = (name for inner in self.ids for name in self.graph.dependents[inner] if name not in self.inside)
        return tuple(dict.fromkeys(found))

    @cached_property
    def expected(self) -> dict[str, tuple[str, ...]]:
        """The dependencies that the result must have."""
        expected: dict[str, tuple[str, ...]] = {}
        for name, needs in self.graph.dependencies.items():
            if name not in self.inside:
                expected[name] = tuple(dict.fromkeys(new for need in needs for new in self.outer_need(name, need)))
            elif name == self.ids[0]:
                expected[self.name] = self.outer_needs
        return expected

    def outer_need(self, name: str, need: str) -> tuple[str, ...]:
        """Return what a step outside depends on instead: the new step, unless another dependency implies it."""
        needs = self.graph.dependencies[name]
        others = [other for other in needs if other not in self.inside]
        implied = any(self.graph.is_upstream(n, other) for other in others for n in self.ids)
        if need in self.inside:
            return () if implied else (self.name,)
        new = not implied and len(others) < len(needs) and not any(self.graph.is_upstream(need, o) for o in needs)
        if new and self.step(need).type != "router" and any(self.graph.is_upstream(need, n) for n in self.ids):
            return ()  # the new step waits for it
        return (need,)

    def step(self, name: str) -> Step:
        """Return a step by its id."""
        return self.document.by_id[name]

    def has(self, index: int) -> bool:
        """Tell whether the step at a place in the list is chosen."""
        return self.by_index.get(index) in self.inside

    @cached_property
    def by_index(self) -> dict[int, str | None]:
        """The ids of the steps by their place in the list."""
        return {step.index: step.id for step in self.document.steps}

    @cached_property
    def first(self) -> tuple[str, ...]:
        """Those of the steps that wait for none of the others; what is certain for one of them is certain for the new step."""
        return tuple(name for name in self.ids if not self.inside.intersection(self.graph.dependencies[name]))
