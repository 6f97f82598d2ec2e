"""What kind of value a node is, in JSON Schema's words and in plain ones."""

from __future__ import annotations

from typing import Any

from agentloom.model.catalogue import Shape
from agentloom.syntax.nodes import Alias, Mapping, Node, Scalar, Sequence
from agentloom.syntax.resolve import resolve

TYPE_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "object": "a mapping",
    "array": "a list",
}
"""What a value must be."""

FOUND_WORDS = {**TYPE_WORDS, "boolean": "a truth value", "number": "a decimal number"}
"""What a value is."""


def type_of(value: Any) -> str:
    """Return JSON Schema's word for a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def kind_of(node: Node | None) -> str:
    """Return JSON Schema's word for what a node stands for; an alias without a target counts as null."""
    if isinstance(node, Alias):
        node = node.target
    if isinstance(node, Scalar):
        return type_of(resolve(node))
    return "array" if isinstance(node, Sequence) else "object" if isinstance(node, Mapping) else "null"


def fits(kind: str, shape: Shape) -> bool:
    """Tell whether a shape takes values of a type; whole numbers are numbers too."""
    types = shape.types
    return not types or kind in types or (kind == "integer" and "number" in types)


def wanted_words(shape: Shape) -> str:
    """Return what a shape takes, in words: `a text or a list`; null is only named when there is nothing else."""
    wanted = [t for t in shape.types if t != "null"] or list(shape.types)
    return " or ".join(TYPE_WORDS[t] for t in wanted if not (t == "integer" and "number" in wanted))


def is_empty(node: Node) -> bool:
    """Tell whether nothing is written where a value could stand: `key:`."""
    return isinstance(node, Scalar) and not node.raw and node.tag is None


def looks_like_template(node: Node, text: str) -> bool:
    """Tell whether a flow mapping was surely meant as a template: ``{state.x}``, ``{name}``, ``{{name}}``: one key without a value."""
    if not isinstance(node, Mapping) or not node.flow or len(node.entries) != 1:
        return False
    key, value = node.entries[0].key, node.entries[0].value
    if isinstance(key, Mapping) and is_empty(value):
        return looks_like_template(key, text)
    if not isinstance(key, Scalar) or key.style != "plain" or not key.raw or not is_empty(value):
        return False
    inner = text[key.span.end : node.span.end - 1]
    return not inner.strip() and "\n" not in key.raw and "\r" not in key.raw
