"""Router expressions: parsed to the tree that routers allow, with what they read and every fault in its place.

``parse_expression`` never raises. Offsets are code points of the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from agentloom.errors import ExpressionError
from agentloom.language.check import check_tree
from agentloom.language.evaluation import evaluate_tree
from agentloom.language.faults import Fault
from agentloom.language.parser import parse_tree
from agentloom.language.paths import Part
from agentloom.language.tree import Attribute, MethodCall, Name, Node, Subscript, children
from agentloom.language.truth import canonical_text, constant_truth
from agentloom.text import Span

_CACHED_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class Read:
    """A place that reads the state: ``state.user["name"][0]``, ``state.get("k")``, ``steps.x.output``.

    Reads with a fault in them are left out. ``parts`` leads from the top of the state, so it begins with ``steps`` for the latter; ``spans`` holds the place of each
    part, inside the quotes of a text. ``span`` is the whole of it.
    """

    span: Span
    root: Literal["state", "steps"]
    parts: tuple[Part, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression.

    ``constant`` is True or False when it is so whatever the state holds, unless it fails. ``canonical`` is equal for
    expressions that say the same in other spelling; empty when there are faults.
    """

    value: str
    tree: Node
    faults: tuple[Fault, ...]
    reads: tuple[Read, ...]
    names: tuple[Name, ...]
    constant: bool | None
    canonical: str

    @property
    def steps(self) -> tuple[tuple[str, Span], ...]:
        """The step ids whose results are read, each with its place."""
        return tuple(
            (read.parts[1], read.spans[1])
            for read in self.reads
            if len(read.parts) > 1 and read.parts[0] == "steps" and isinstance(read.parts[1], str)
        )


def parse_expression(value: str) -> Expression:
    """Return the expression that ``value`` is. Never raises; short texts are cached."""
    return _parse_cached(value) if len(value) <= _CACHED_LENGTH else _parse(value)


@lru_cache(maxsize=2048)
def _parse_cached(value: str) -> Expression:
    return _parse(value)


def _parse(value: str) -> Expression:
    tree, faults, _ = parse_tree(value)
    nodes = check_tree(tree, faults, value)
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


def evaluate(expression: Expression | str, state: Mapping[str, Any]) -> Any:
    """Return the value of an expression on ``state``; its truth decides a condition.

    Raises ``ExpressionError`` for an expression with faults and for one that fails on this state, with the place.
    """
    if isinstance(expression, str):
        expression = parse_expression(expression)
    if expression.faults:
        first = expression.faults[0]
        raise ExpressionError(first.message, start=first.start, end=first.end)
    return evaluate_tree(expression.tree, expression.value, state)


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
