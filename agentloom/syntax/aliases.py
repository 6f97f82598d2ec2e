"""Anchors and aliases: what is wrong with them (AL003 to AL005), and linking those that reach from one piece into another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Mapping_

from agentloom.diagnostics import Edit, Finding, Fix
from agentloom.similar import closest
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence

DEEPEST = 100
"""Levels of nesting that are read, aliases followed; deeper ones are refused, since readers further up walk nodes recursively."""

MOST_COMPARED = 50_000
"""Comparisons made for the suggestions in one document; past that, messages come without a did-you-mean."""


def most_nodes(own: int) -> int:
    """Return how many nodes a text with ``own`` nodes of its own may have when its aliases are followed."""
    return 100_000 + 10 * own


def undefined_aliases(aliases: Iterable[Alias], names: Iterable[str]) -> Iterator[Finding]:
    """Yield the findings for aliases that no anchor before them defines; ``names`` are all anchors of the document."""
    known = dict.fromkeys(names)
    left = MOST_COMPARED
    for alias in aliases:
        if alias.name in known:
            message = (
                f"`&{alias.name}` stands behind `*{alias.name}`; move it up, since an alias needs its anchor before it"
            )
            yield Finding("AL003", alias.span, message)
            continue
        left -= len(known)
        near = closest(alias.name, known) if left >= 0 else None
        cure = f"did you mean `*{near}`?" if near else "define it further up, or quote the text if it is no alias"
        message = f"no `&{alias.name}` stands before `*{alias.name}`; {cure}"
        fixes = (Fix(f"change to `*{near}`", (Edit(alias.span, f"*{near}"),), safe=False),) if near else ()
        yield Finding("AL003", alias.span, message, fixes=fixes)


def recursive_alias(alias: Alias) -> Finding:
    """Return the finding for an alias that stands inside the value it names."""
    return Finding(
        "AL004", alias.span, f"`*{alias.name}` stands inside the value that `&{alias.name}` names; write that part out"
    )


def oversized_alias(alias: Alias, deep: bool) -> Finding:
    """Return the finding for an alias that makes the document grow, or nest, out of proportion."""
    if deep:
        message = f"with `*{alias.name}` the values nest more than {DEEPEST} levels deep; flatten them"
    else:
        message = f"with `*{alias.name}` the aliases expand to more than {most_nodes(0):,} values; write fewer of them"
    return Finding("AL005", alias.span, message)


def walk(node: Node | None) -> Iterator[Node]:
    """Yield a node and all nodes below it in written order; aliases are not followed."""
    todo: list[Node] = [] if node is None else [node]
    while todo:
        found = todo.pop()
        yield found
        if isinstance(found, Mapping):
            for entry in reversed(found.entries):
                todo.append(entry.value)
                todo.append(entry.key)
        elif isinstance(found, Sequence):
            todo.extend(reversed(found.items))


class Linker:
    """Gives aliases their targets across the pieces of a text, and counts what they expand to.

    Feed it the pieces' nodes in order, in offsets of ``text``.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.anchors: dict[str, Node] = {}
        self.findings: list[Finding] = []
        self.undefined: list[Alias] = []
        self._known: set[int] = set()
        self._measures: dict[int, tuple[int, int]] = {}
        self.size = 0
        self.own = 0
        self._refused = False

    def add(self, nodes: Iterable[Node], loose: Iterable[Alias], copies: Mapping_[int, Node]) -> None:
        """Link the aliases in a piece's nodes and take up its anchors.

        ``loose`` are the piece's own aliases without anchor, ``copies`` maps them (by identity) to the nodes at hand.
        """
        for node in nodes:
            self.size += self._measure(node, 2)[0]
        for alias in loose:
            copy = copies.get(id(alias))
            if isinstance(copy, Alias) and id(copy) not in self._known:
                self.undefined.append(copy)

    def _measure(self, node: Node, depth: int) -> tuple[int, int]:
        """Return how many nodes and levels a node has with aliases followed; the reader bounds the depth."""
        self.own += 1
        if isinstance(node, Alias):
            return self._link(node, depth)
        size, height = 1, 1
        if not isinstance(node, Scalar):
            children = (
                node.items
                if isinstance(node, Sequence)
                else [part for entry in node.entries for part in (entry.key, entry.value)]
            )
            for child in children:
                more, levels = self._measure(child, depth + 1)
                size += more
                if levels >= height:
                    height = levels + 1
        if node.anchor is not None:
            self.anchors[self.text[node.anchor.start + 1 : node.anchor.end]] = node
            self._measures[id(node)] = (size, height)
        return size, height

    def _link(self, alias: Alias, depth: int) -> tuple[int, int]:
        target = alias.target if alias.target is not None else self.anchors.get(alias.name)
        alias.target = None
        if target is None or (measured := self._measures.get(id(target))) is None:
            return 1, 1
        self._known.add(id(alias))
        size, height = measured
        too_deep = depth + height > DEEPEST
        if too_deep or self.size + size > most_nodes(self.own):
            if not self._refused:
                self._refused = True
                self.findings.append(oversized_alias(alias, too_deep))
            return 1, 1
        alias.target = target
        return size, height + 1
