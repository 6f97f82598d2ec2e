"""Copies of nodes at other offsets."""

from __future__ import annotations

from agentloom.syntax.nodes import Alias, Entry, Mapping, Node, Scalar, Sequence
from agentloom.text import Span


def moved(node: Node, by: int, memo: dict[int, Node]) -> Node:
    """Return a copy of ``node``, ``by`` code points further on. ``memo`` maps what was copied (by identity) to its copy.

    An alias's target is its copy when the target was copied before; an alias without target keeps none.
    """
    found = memo.get(id(node))
    if found is not None:
        return found
    start, end = node.span
    span = Span(start + by, end + by)
    copy: Node
    if isinstance(node, Alias):
        target = node.target
        copy = Alias(span, node.name, None if target is None else memo.get(id(target), target))
        memo[id(node)] = copy
        return copy
    anchor = node.anchor.shift(by) if node.anchor is not None else None
    if isinstance(node, Scalar):
        copy = Scalar(span, node.value, node.style, node.raw, node.tag, anchor, node.indent)
        if anchor is not None:
            memo[id(node)] = copy
        return copy
    if isinstance(node, Mapping):
        entries = tuple([Entry(moved(e.key, by, memo), moved(e.value, by, memo)) for e in node.entries])
        copy = Mapping(span, entries, node.flow, node.tag, anchor)
    else:
        copy = Sequence(span, tuple([moved(item, by, memo) for item in node.items]), node.flow, node.tag, anchor)
    if anchor is not None:
        memo[id(node)] = copy
    return copy
