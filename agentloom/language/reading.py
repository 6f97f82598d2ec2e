"""A router expression read in full: tree, faults, reads, and what holds whatever the state is."""

from __future__ import annotations

from agentloom.language.check import check_tree
from agentloom.language.faults import Fault
from agentloom.language.parser import parse_tree
from agentloom.language.paths import Part
from agentloom.language.reads import Expression, Read
from agentloom.language.tree import Attribute, MethodCall, Name, Node, Subscript, children
from agentloom.language.truth import canonical_text, constant_truth
from agentloom.text import Span


def read_expression(value: str, names: tuple[str, ...] = ()) -> Expression:
    """Return the expression that ``value`` is, with ``names`` besides `state` and `steps`. Never raises."""
    tree, faults, _ = parse_tree(value)
    nodes = check_tree(tree, faults, value, names)
    faults.sort(key=lambda fault: (fault.span, fault.kind))
    return Expression(
        value,
        tree,
        tuple(faults),
        tuple(read for read in _reads(tree) if not _spoken_of(read, faults)) if nodes else (),
        tuple(node for node in nodes if isinstance(node, Name)),
        None if faults else constant_truth(tree, value),
        "" if faults else canonical_text(tree),
    )


def _reads(tree: Node) -> list[Read]:
    """Return every read of the state, from left to right; of a chain, the longest that is all names and keys."""
    found: list[Read] = []
    todo: list[Node] = [tree]
    while todo:
        node = todo.pop()
        read, rest = _chain(node)
        if read is not None:
            found.append(read)
            todo.extend(reversed(rest))
        else:
            todo.extend(reversed(children(node)))
    return found


def path_of(node: Node) -> tuple[Part, ...]:
    """Return the path of the state that a node reads, if it is nothing but such a read; else nothing."""
    read, _ = _chain(node)
    return () if read is None else read.parts


def _spoken_of(read: Read, faults: list[Fault]) -> bool:
    """Tell whether a fault lies in a read, so that its key is not what it seems."""
    return any(fault.kind != "syntax" and read.span.start <= fault.start < read.span.end for fault in faults)


def _chain(node: Node) -> tuple[Read | None, list[Node]]:
    """Return the read that ``node`` is, and the nodes beside its path, such as the default of a ``get``."""
    parts: list[Part] = []
    spans: list[Span] = []
    beside: list[Node] = []
    at = node
    while not isinstance(at, Name):
        if isinstance(at, Attribute):
            if at.name:
                parts.append(at.name)
                spans.append(at.name_span)
        elif isinstance(at, Subscript):
            parts.append(at.key)
            spans.append(at.key_span)
        elif isinstance(at, MethodCall) and at.name == "get" and at.arguments:
            key = at.arguments[0]
            text = getattr(key, "value", None)
            if not isinstance(text, str):
                return None, []
            parts.append(text)
            spans.append(getattr(key, "inner", key.span))
            beside.extend(at.arguments[1:])
        else:
            return None, []
        at = at.target
    if at.name == "state":
        return Read(node.span, "state", tuple(reversed(parts)), tuple(reversed(spans))), beside
    if at.name == "steps":
        return Read(node.span, "steps", ("steps", *reversed(parts)), (at.span, *reversed(spans))), beside
    return None, []
