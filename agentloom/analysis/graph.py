"""The graph that `depends_on` makes: layers, ancestors, cycles. Plain names, no places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from agentloom.records import record


@record(slots=False)
class Graph:
    """Steps and their dependencies, both in file order; unknown names and self-dependencies are left out.

    ``layers`` holds ids in alphabetical order per layer; steps on a cycle or behind one are in no layer.
    """

    dependencies: Mapping[str, tuple[str, ...]]
    layers: tuple[tuple[str, ...], ...] = ()
    layer_of: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def dependents(self) -> Mapping[str, tuple[str, ...]]:
        """Direct dependants of each step, in file order."""
        found: dict[str, list[str]] = {name: [] for name in self.dependencies}
        for name, needs in self.dependencies.items():
            for need in needs:
                found[need].append(name)
        return {name: tuple(names) for name, names in found.items()}

    @cached_property
    def upstream_bits(self) -> Mapping[str, int]:
        """For each step in a layer, its ancestors as a set of bits; bit n is the n-th step of the file."""
        bit = {name: 1 << at for at, name in enumerate(self.dependencies)}
        found: dict[str, int] = {}
        for layer in self.layers:
            for name in layer:
                bits = 0
                for need in self.dependencies[name]:
                    bits |= bit[need] | found[need]
                found[name] = bits
        return found

    @cached_property
    def _bit(self) -> Mapping[str, int]:
        return {name: at for at, name in enumerate(self.dependencies)}

    def is_upstream(self, above: str, name: str) -> bool:
        """Tell whether ``name`` depends on ``above``, directly or through others; false for steps on or behind a cycle."""
        bits = self.upstream_bits.get(name)
        return bits is not None and above in self._bit and bool(bits >> self._bit[above] & 1)

    def ancestors(self, *names: str) -> frozenset[str]:
        """Return every step that one of ``names`` depends on, directly or through others; as cheap for many as for one."""
        return _reach(names, self.dependencies)

    def descendants(self, *names: str) -> frozenset[str]:
        """Return every step that depends on one of ``names``, directly or through others; as cheap for many as for one."""
        return _reach(names, self.dependents)


def _reach(starts: Iterable[str], edges: Mapping[str, Sequence[str]]) -> frozenset[str]:
    seen: set[str] = set()
    todo = [name for start in starts for name in edges.get(start, ())]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(edges.get(name, ()))
    return frozenset(seen)


def build_graph(dependencies: Mapping[str, Iterable[str]]) -> Graph:
    """Return the graph of ``{step: its dependencies}``; linear in steps and edges."""
    known = {
        name: tuple(dict.fromkeys(need for need in needs if need in dependencies and need != name))
        for name, needs in dependencies.items()
    }
    waiting = {name: len(needs) for name, needs in known.items()}
    dependents: dict[str, list[str]] = {name: [] for name in known}
    for name, needs in known.items():
        for need in needs:
            dependents[need].append(name)
    layers: list[tuple[str, ...]] = []
    layer_of: dict[str, int] = {}
    ready = [name for name, count in waiting.items() if count == 0]
    while ready:
        for name in ready:
            layer_of[name] = len(layers)
        layers.append(tuple(sorted(ready)))
        following: list[str] = []
        for name in ready:
            for dependent in dependents[name]:
                waiting[dependent] -= 1
                if waiting[dependent] == 0:
                    following.append(dependent)
        ready = following
    return Graph(dependencies=known, layers=tuple(layers), layer_of=layer_of)


MOST_LOOPS = 50
"""Loops reported per tangle of steps; more would not help anybody."""


def find_cycles(dependencies: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return loops whose closing edges, taken out, leave no cycle; deterministic in file order.

    A loop ``(a, b, c)`` means a depends on b, b on c, c on a; it starts at its step that comes first in the file, and the edge
    from its last step back to its first is the closing one. Steps merely downstream are in none, and self-dependencies are
    not loops here. Iterative, so chains of any length are fine.
    """
    order = {name: at for at, name in enumerate(dependencies)}
    loops: list[tuple[str, ...]] = []
    for component in _components(dependencies):
        if len(component) > 1:
            loops.extend(_loops_of(component, dependencies, order))
    return sorted(loops, key=lambda loop: order[loop[0]])


def _loops_of(
    component: list[str], dependencies: Mapping[str, Sequence[str]], order: Mapping[str, int]
) -> list[tuple[str, ...]]:
    """Return the loops of one tangle: take the shortest through its first step, cut it open, look again."""
    loops: list[tuple[str, ...]] = []
    todo = [component]
    edges: dict[str, list[str]] = {
        name: [need for need in dependencies[name] if need != name] for name in sorted(component, key=order.__getitem__)
    }
    while todo and len(loops) < MOST_LOOPS:
        members = todo.pop()
        inside = set(members)
        start = min(members, key=order.__getitem__)
        loop = _shortest_loop(start, edges, inside)
        loops.append(loop)
        edges[loop[-1]] = [need for need in edges[loop[-1]] if need != start]
        rest = {name: [need for need in edges[name] if need in inside] for name in edges if name in inside}
        todo.extend(part for part in _components(rest) if len(part) > 1)
    return loops


def _shortest_loop(start: str, edges: Mapping[str, Sequence[str]], inside: set[str]) -> tuple[str, ...]:
    previous: dict[str, str] = {}
    queue = [start]
    while queue:
        following: list[str] = []
        for name in queue:
            for need in edges[name]:
                if need == start:
                    loop = [name]
                    while loop[-1] != start:
                        loop.append(previous[loop[-1]])
                    return tuple(reversed(loop))
                if need in inside and need not in previous:
                    previous[need] = name
                    following.append(need)
        queue = following
    raise AssertionError("a strongly connected component has a loop through each of its steps")


def _components(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Tarjan's strongly connected components, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    result: list[list[str]] = []
    for root in edges:
        if root in index:
            continue
        work: list[tuple[str, int]] = [(root, 0)]
        while work:
            name, at = work.pop()
            if at == 0:
                index[name] = low[name] = len(index)
                stack.append(name)
                on_stack.add(name)
            needs = edges.get(name, ())
            descended = False
            for i in range(at, len(needs)):
                need = needs[i]
                if need not in edges or need == name:
                    continue
                if need not in index:
                    work.append((name, i + 1))
                    work.append((need, 0))
                    descended = True
                    break
                if need in on_stack:
                    low[name] = min(low[name], index[need])
            if descended:
                continue
            if low[name] == index[name]:
                component: list[str] = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.append(member)
                    if member == name:
                        break
                result.append(component)
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[name])
    return result
