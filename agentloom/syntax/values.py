"""Nodes as plain values: merge keys applied, aliases followed, paths looked up."""

from __future__ import annotations

from typing import TypeAlias

from agentloom.syntax.duplicates import is_merge
from agentloom.syntax.nodes import Alias, Mapping, Node, Path, Scalar, Sequence
from agentloom.syntax.resolve import Plain, resolve

Json: TypeAlias = "Plain | list[Json] | dict[str, Json]"

MOST_NODES = 1_000_000
"""Nodes that one call to ``plain_value`` makes values of, aliases followed; what lies beyond becomes None.

The reader refuses a text whose aliases grow out of proportion (AL005) long before; this guards the callers.
"""


def follow(node: Node | None) -> Node | None:
    """Return what a node stands for: itself, or the target of an alias; None for an alias without one."""
    return node.target if isinstance(node, Alias) else node


def entries(mapping: Mapping) -> list[tuple[Scalar, Node, bool]]:
    """Return the (key, value, inherited) of a mapping with its merge keys applied, own entries first, in written order.

    Own keys win over merged ones, earlier mappings in a merge list over later ones, and of two equal own keys the last.
    Keys that are no scalars are left out.
    """
    found: dict[str, tuple[Scalar, Node, bool]] = {}
    merges: list[Node] = []
    for entry in mapping.entries:
        key = entry.key.target if entry.key.__class__ is Alias else entry.key
        if not isinstance(key, Scalar):
            continue
        if is_merge(key):
            merges.append(entry.value)
        else:
            found[key.value] = (key, entry.value, False)
    if merges:
        _merge(merges, found, {id(mapping)})
    return list(found.values())


def _merge(merges: list[Node], found: dict[str, tuple[Scalar, Node, bool]], within: set[int]) -> None:
    for merged in _merged_mappings(merges):
        if id(merged) in within:
            continue
        within.add(id(merged))
        deeper: list[Node] = []
        for entry in merged.entries:
            key = follow(entry.key)
            if not isinstance(key, Scalar):
                continue
            if is_merge(key):
                deeper.append(entry.value)
            else:
                found.setdefault(key.value, (key, entry.value, True))
        if deeper:
            _merge(deeper, found, within)


def _merged_mappings(merges: list[Node]) -> list[Mapping]:
    mappings: list[Mapping] = []
    for value in merges:
        value_node = follow(value)
        if isinstance(value_node, Mapping):
            mappings.append(value_node)
        elif isinstance(value_node, Sequence):
            mappings.extend(item for item in map(follow, value_node.items) if isinstance(item, Mapping))
    return mappings


def plain_value(node: Node | None, most: int = MOST_NODES) -> Json:
    """Return a node as JSON values: merges applied, aliases followed, of equal keys the last, other keys as their source text.

    Shared parts are shared in the answer: treat it as read-only. At most ``most`` nodes are expanded.
    """
    return _Expansion(most).value(node)


class _Expansion:
    """Counts what a call has expanded, and keeps the values of aliases' targets."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.known: dict[int, Json] = {}
        self.open: set[int] = set()

    def value(self, node: Node | None) -> Json:
        if node.__class__ is Scalar:
            return resolve(node)
        if node is None or self.left <= 0:
            return None
        self.left -= 1
        if isinstance(node, Alias):
            return self._target(node.target)
        if isinstance(node, Sequence):
            return [self.value(item) for item in node.items]
        if isinstance(node, Mapping):
            return {_key_text(key): self.value(value) for key, value, _ in entries(node)}
        return None

    def _target(self, target: Node | None) -> Json:
        if target is None or id(target) in self.open:
            return None
        if id(target) not in self.known:
            self.open.add(id(target))
            self.known[id(target)] = self.value(target)
            self.open.discard(id(target))
        return self.known[id(target)]


def _key_text(key: Scalar) -> str:
    return key.value


def find(node: Node | None, path: Path) -> Node | None:
    """Return the node at ``path``, through aliases and merge keys; None when there is none."""
    for part in path:
        node = follow(node)
        if isinstance(node, Mapping) and isinstance(part, str):
            node = next((value for key, value, _ in entries(node) if key.value == part), None)
        elif isinstance(node, Sequence) and isinstance(part, int) and -len(node.items) <= part < len(node.items):
            node = node.items[part]
        else:
            return None
    return node


def find_key(node: Node | None, path: Path) -> Scalar | None:
    """Return the key at the end of ``path``; None when there is none or the path ends in a list."""
    if not path or not isinstance(path[-1], str):
        return None
    holder = follow(find(node, path[:-1]))
    if not isinstance(holder, Mapping):
        return None
    return next((key for key, _, _ in entries(holder) if key.value == path[-1]), None)
