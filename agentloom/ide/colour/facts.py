"""Tokens of one mapping, a step or a document's head, from the marks on its fields."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from agentloom.analysis.document import Facts
from agentloom.analysis.lower.kinds import fits, kind_of
from agentloom.analysis.lower.lowering import At, Lowering
from agentloom.analysis.symbols import Leaf, Occurrence, occurrences
from agentloom.ide.colour.expressions import put_expression
from agentloom.ide.colour.templates import put_path, put_template
from agentloom.ide.colour.tokens import Pen, Token, TokenKind, in_order
from agentloom.language.arguments import parse_argument
from agentloom.language.template import parse_template
from agentloom.model.catalogue import Field, catalogue
from agentloom.similar import closest
from agentloom.syntax.duplicates import is_merge
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar

REFERENCES: dict[str, TokenKind] = {
    "step": "step",
    "agent": "agent",
    "tool": "tool",
    "provider": "provider",
    "state": "state",
    "child_state": "state",
}
DEFINITIONS: dict[str, TokenKind] = {
    "step": "step_definition",
    "agent": "agent_definition",
    "state": "state_definition",
}
KEYS: dict[str, TokenKind] = {"tool_argument": "parameter", "child_state": "state"}
"""What the keys of a field whose texts are templates name."""


def facts_tokens(facts: Facts) -> tuple[Token, ...]:
    """Return the tokens of a mapping, in offsets of its unit, in order."""
    pen = Pen(facts.unit.text)
    _leaves(pen, facts.leaves, facts.occurrences)
    overlooked = _overlooked(facts)
    if overlooked:
        _leaves(pen, overlooked, occurrences(overlooked))
    _type(pen, facts)
    for name, located in facts.fields.items():
        if isinstance(located.value, Mapping) and located.via is None:
            field = _field(facts, name, located.value)
            if field is not None:
                _keys(pen, field, located.value)
    return in_order(pen.tokens)


def _leaves(pen: Pen, leaves: Iterable[Leaf], found: Iterable[Occurrence]) -> None:
    paths = {id(occurrence.node): occurrence for occurrence in found if occurrence.form == "value" and occurrence.parts}
    for leaf in leaves:
        if isinstance(leaf.value, str):
            _leaf(pen, leaf, paths)


def _overlooked(facts: Facts) -> list[Leaf]:
    """Return the scalars that a check passes over, but a reader sees: values of repeated keys, fields of a step without a known type.

    Both are what a step looks like while a line of it is being typed, and its other lines keep their colours.
    """
    if not isinstance(facts.node, Mapping):
        return []
    low = Lowering(facts.unit)
    for entry in facts.node.entries:
        if not isinstance(entry.key, Scalar) or is_merge(entry.key):
            continue
        name = entry.key.value
        field, located = _field(facts, name, entry.value), facts.fields.get(name)
        if field is None or (located is not None and located.key is entry.key and facts.block is not None):
            continue
        low.value(entry.value, field.shape, At(name, name, entry.key))
    return low.leaves


def _field(facts: Facts, name: str, value: Node) -> Field | None:
    """Return what describes a field, or that which is meant by half its name or a misspelled one.

    Where the step's type isn't known, it is the first of all types that takes such a value.
    """
    if facts.block is not None:
        fields = facts.block.fields
        meant = name if name in fields else _meant(name, fields)
        return fields[meant] if meant is not None else None
    kind = kind_of(value)
    candidates = _any_fields().get(name, ())
    return next((field for field in candidates if field.shape.any_of or fits(kind, field.shape)), None)


def _meant(name: str, fields: Iterable[str]) -> str | None:
    return next((field for field in fields if name and field.startswith(name)), None) or closest(name, fields)


@lru_cache(maxsize=1)
def _any_fields() -> dict[str, list[Field]]:
    """Return the fields of all step types by name."""
    found: dict[str, list[Field]] = {}
    for block in catalogue().steps.values():
        for name, field in catalogue().blocks[block].fields.items():
            found.setdefault(name, []).append(field)
    return found


def _type(pen: Pen, facts: Facts) -> None:
    """Put down the type that decides what kind of step it is."""
    located = facts.fields.get("type")
    if located is None or facts.block is None or facts.block.tag is None:
        return
    value: Node | None = located.value
    if isinstance(value, Alias):
        value = value.target
    if isinstance(value, Scalar):
        pen.whole(value, "step_type")


def _leaf(pen: Pen, leaf: Leaf, paths: dict[int, Occurrence]) -> None:
    node = leaf.node
    for mark in leaf.shape.marks:
        kind = mark.kind
        if kind == "template":
            put_template(pen, node, parse_template(node.value))
        elif kind == "template_deep":
            put_template(pen, node, parse_argument(node.value))
        elif kind == "expression":
            put_expression(pen, node)
        elif kind == "ref" and mark.of in REFERENCES:
            pen.whole(node, REFERENCES[mark.of])
        elif kind == "defines" and mark.of in DEFINITIONS:
            pen.whole(node, DEFINITIONS[mark.of])
        elif kind == "model":
            pen.whole(node, "model")
        elif kind == "regex":
            pen.whole(node, "regex")
        elif kind in ("state_read", "state_write") and id(node) in paths:
            found = paths[id(node)]
            put_path(pen, node, found.parts, found.parts_inside, "state" if kind == "state_read" else "state_write")


def _keys(pen: Pen, field: Field, node: Mapping) -> None:
    """Put down keys that are names: of state keys, agents, arguments. Those below a state key are properties."""
    defines, refers, deep = (field.shape.mark(kind) for kind in ("defines", "ref", "template_deep"))
    kind: TokenKind | None = None
    if defines is not None:
        kind = DEFINITIONS.get(defines.of)
    elif refers is not None:
        kind = REFERENCES.get(refers.of)
    elif deep is not None:
        kind = KEYS.get(deep.of)
    if kind is None:
        return
    todo = [(node, kind)]
    while todo:
        mapping, said = todo.pop()
        for entry in mapping.entries:
            if not isinstance(entry.key, Scalar) or is_merge(entry.key):
                continue
            pen.whole(entry.key, said)
            if kind == "state_definition" and isinstance(entry.value, Mapping):
                todo.append((entry.value, "property"))
