"""YAML anchors and aliases: `&x`, `*x`, `<<: *x`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias, Node
from agentloom.text import Span


class Anchored(NamedTuple):
    """One `&x` or `*x`, without its sign. ``group`` is equal for an anchor and its aliases; it is -1 for aliases without one.

    ``whole`` is an anchor with the value that it marks.
    """

    word: str
    span: Span
    group: int
    defines: bool
    whole: Span | None = None


def anchors_of(document: WorkflowDocument) -> tuple[Anchored, ...]:
    """Return every anchor and alias of a file, in order, in document offsets."""
    text = document.source.text
    if "&" not in text and "*" not in text:
        return ()
    found: list[Anchored] = []
    groups: dict[tuple[int, int], int] = {}
    aliases: list[tuple[Alias, int]] = []
    for node, base in _nodes(document):
        if isinstance(node, Alias):
            aliases.append((node, base))
        elif node.anchor is not None:
            span = Span(node.anchor.start + 1, node.anchor.end).shift(base)
            groups[(base, id(node))] = span.start
            whole = Span(span.start - 1, max(span.end, node.span.end + base))
            found.append(Anchored(text[slice(*span)], span, span.start, True, whole))
    first: dict[str, int] = {}
    for anchored in found:
        first.setdefault(anchored.word, anchored.group)
    for alias, base in aliases:
        # An alias that stands before its anchor, inside its value, or expands to too much has no target, but still means it.
        known = groups.get((base, id(alias.target))) if alias.target is not None else None
        group = known if known is not None else first.get(alias.name, -1)
        span = Span(alias.span.start + 1, alias.span.start + 1 + len(alias.name)).shift(base)
        found.append(Anchored(alias.name, span, group, False))
    found.sort(key=lambda anchored: anchored.span)
    return tuple(found)


def _nodes(document: WorkflowDocument) -> Iterator[tuple[Node, int]]:
    tree = document.tree
    seen: set[int] = set()
    for node in walk(tree.top):
        seen.add(id(node))
        yield node, 0
    for placed in tree.steps:
        if id(placed.node) in seen:
            continue  # read whole: gone through with the rest
        if "&" in placed.unit.text or "*" in placed.unit.text:
            for node in walk(placed.node):
                yield node, placed.base
