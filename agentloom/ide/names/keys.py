"""Names that stand as keys: state keys under `state` and a child's `input`, agents, what `state_schema` speaks of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agentloom.analysis.document import Step
from agentloom.ide.names.scope import Mention, Parts, Scope, Where, folded
from agentloom.language.arguments import parse_argument
from agentloom.language.paths import PathFault, parse_path
from agentloom.model.catalogue import Shape
from agentloom.syntax.duplicates import is_merge
from agentloom.syntax.nodes import Mapping, Node, Scalar, Sequence
from agentloom.syntax.resolve import resolve
from agentloom.syntax.values import entries, follow
from agentloom.text import Span

GLOB = frozenset("*?[")
"""Characters that make a key of `state_schema` a pattern."""

DEEPEST = 60
"""Levels of mappings that are gone into."""

MOST_KEYS = 100_000
"""Keys looked at in one state; aliases of aliases could make millions."""

ChildScope = Callable[[Step], Scope]


class Held(NamedTuple):
    """A key below some mapping, or (without a key) a text: the path to it, and the span of the entry."""

    path: Parts
    key: Scalar | None
    value: Node
    whole: Span


def key_mentions(where: Where, child_scope: ChildScope) -> Iterator[Mention]:
    """Yield the names that stand as keys in a step or a head."""
    facts = where.facts
    if facts.block is None:
        return
    for name, located in facts.fields.items():
        value = located.value
        if value.__class__ is Scalar:
            continue
        field = facts.block.fields.get(name)
        if field is None or not field.shape.marks:
            continue
        yield from _of_field(where, name, value, field.shape, child_scope)


def _of_field(where: Where, name: str, value: Node, shape: Shape, child_scope: ChildScope) -> Iterator[Mention]:
    for mark in shape.marks:
        if mark.kind == "defines" and mark.of == "state":
            yield from _state_keys(where, where.scope, name, value)
        elif mark.kind == "template_deep" and mark.of == "child_state" and where.step is not None:
            yield from _state_keys(where, child_scope(where.step), name, value)
        elif mark.kind == "defines" and mark.of == "agent":
            for held in _level(follow(value), (), Span(0, 0)):
                if held.key is not None and held.key.value:
                    inside = (Span(0, len(held.key.value)),)
                    parts = (held.key.value,)
                    yield Mention(
                        "agent", where.scope, parts, where, "define", held.key, inside, "key", name, None, held.whole
                    )
        elif mark.kind == "ref" and mark.of == "state":
            yield from _schema_keys(where, name, value)


def _state_keys(where: Where, scope: Scope, name: str, value: Node) -> Iterator[Mention]:
    for held in held_below(value):
        if held.key is not None and held.key.value:
            inside = (Span(0, len(held.key.value)),)
            yield Mention("state", scope, held.path, where, "define", held.key, inside, "key", name, None, held.whole)


def _schema_keys(where: Where, name: str, value: Node) -> Iterator[Mention]:
    for held in _level(follow(value), (), Span(0, 0)):
        if held.key is None or not GLOB.isdisjoint(held.key.value):
            continue
        path = parse_path(held.key.value)
        if not isinstance(path, PathFault):
            yield Mention(
                "state",
                where.scope,
                folded(path.parts),
                where,
                "refer",
                held.key,
                path.spans,
                "key",
                name,
                None,
                held.whole,
            )


def patterns(where: Where) -> list[str]:
    """Return the patterns and names under the keys that speak of state keys (`state_schema`)."""
    found: list[str] = []
    facts = where.facts
    for name, located in facts.fields.items():
        field = facts.block.fields.get(name) if facts.block is not None else None
        if field is not None and any(mark.kind == "ref" and mark.of == "state" for mark in field.shape.marks):
            found.extend(
                held.key.value for held in _level(follow(located.value), (), Span(0, 0)) if held.key is not None
            )
    return found


def handed(where: Where) -> tuple[tuple[Parts, Parts], ...]:
    """Return which values a step hands to its child whole: (path in the child, path here)."""
    found: list[tuple[Parts, Parts]] = []
    for located in _inputs(where):
        for held in held_below(located):
            value = follow(held.value)
            if isinstance(value, Scalar) and isinstance(resolve(value), str):
                pieces = parse_argument(value.value).pieces
                if len(pieces) == 1 and not isinstance(only := pieces[0], str) and only.plain and only.parts:
                    found.append((held.path, folded(only.parts)))
    return tuple(found)


def given(where: Where) -> frozenset[str]:
    """Return the top-level state keys that a step sets in its child."""
    return frozenset(
        key.value
        for located in _inputs(where)
        if isinstance(mapping := follow(located), Mapping)
        for key, _, _ in entries(mapping)
    )


def _inputs(where: Where) -> Iterator[Node]:
    for name, located in where.facts.fields.items():
        field = where.facts.block.fields.get(name) if where.facts.block is not None else None
        mark = field.shape.mark("template_deep") if field is not None else None
        if mark is not None and mark.of == "child_state":
            yield located.value


def held_below(node: Node) -> Iterator[Held]:
    """Yield every key at any depth below a mapping, aliases followed; and the items of lists, without a key.

    What stands at one path through several aliases comes once.
    """
    todo: list[tuple[Node, Parts]] = [(node, ())]
    seen: set[tuple[int, Parts]] = set()
    count = 0
    while todo and count < MOST_KEYS:
        at, path = todo.pop()
        target = follow(at)
        if target is None or (id(target), path) in seen or len(path) > DEEPEST:
            continue
        seen.add((id(target), path))
        if isinstance(target, Mapping):
            literal = _literal(target) if path else None
            if literal is not None:
                todo.append((literal, path))
                continue
            inner = list(_level(target, path, target.span))
        elif isinstance(target, Sequence):
            inner = [Held((*path, None), None, item, item.span) for item in target.items]
        else:
            continue
        count += len(inner)
        yield from inner
        todo.extend([(held.value, held.path) for held in inner if held.value.__class__ is not Scalar])


def _level(node: Node | None, path: Parts, whole: Span) -> Iterator[Held]:
    """Yield the keys of one mapping: its own, repeated ones included, then what merge keys bring in."""
    if not isinstance(node, Mapping):
        return
    for entry in node.entries:
        key = follow(entry.key)
        if isinstance(key, Scalar) and not is_merge(key):
            end = max(entry.key.span.end, entry.value.span.end)
            yield Held((*path, key.value), key, entry.value, Span(entry.key.span.start, end))
    for key, value, inherited in entries(node):
        if inherited:
            yield Held((*path, key.value), key, value, Span(key.span.start, max(key.span.end, value.span.end)))


def _literal(node: Mapping) -> Node | None:
    """Return what stands under `value` in ``{value: …, template: false}``, which stands for it; None for other mappings."""
    if len(node.entries) != 2:
        return None
    found = {key.value: value for key, value, _ in entries(node)}
    switch = follow(found.get("template"))
    if found.keys() != {"value", "template"} or not isinstance(switch, Scalar) or resolve(switch) is not False:
        return None
    return found["value"]
