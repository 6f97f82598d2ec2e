"""The steps that are extracted, and how the graph looks without them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.refactor.accesses import Access, Accesses
from agentloom.ide.refactor.naming import child_file, free_name, state_keys
from agentloom.ide.refactor.needs import routers_of, without_implied


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
        found = (need for name in self.ids for need in self.graph.dependencies[name] if need not in self.inside)
        return tuple(dict.fromkeys(found))

    @cached_property
    def expected(self) -> dict[str, tuple[str, ...]]:
        """The dependencies that the result must have."""
        needs: dict[str, tuple[str, ...]] = {}
        for name, listed in self.graph.dependencies.items():
            if name not in self.inside:
                needs[name] = tuple(dict.fromkeys(map(self._mapped, listed)))
            elif name == self.ids[0]:
                needs[self.name] = self.outer_needs
        return without_implied(needs, self.graph, routers_of(self.document))

    def outer_need(self, name: str, need: str) -> tuple[str, ...]:
        """Return what a step outside depends on instead: the new step, unless another dependency implies it."""
        mapped = self._mapped(need)
        return (mapped,) if mapped in self.expected[name] else ()

    def _mapped(self, need: str) -> str:
        return self.name if need in self.inside else need

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
