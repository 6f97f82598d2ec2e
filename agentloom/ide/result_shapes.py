"""What is known of a step's result before it ran: the names in it, by a reply's JSON Schema or by the workflow that it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.outcomes import keeps_conversation, schema_of
from agentloom.ide.owners import text_of
from agentloom.language.paths import Part

MOST_DEPTH = 20


class Shape(NamedTuple):
    """The names in a mapping, each with its own shape; ``words`` say what the value is, where that is known.

    ``items`` is the shape of a list's items.
    """

    names: Mapping[str, Shape] = {}
    words: str = ""
    items: Shape | None = None


NOTHING = Shape()
MESSAGE = Shape({"role": Shape(words="string"), "content": Shape(words="string"), "name": Shape(words="string")})
CONVERSATION = Shape(
    {
        "messages": Shape(words="array", items=MESSAGE),
        "summary": Shape(words="string"),
        "token_budget": Shape(words="integer"),
        "trim_policy": Shape(words="string"),
        "metadata": Shape(words="object"),
    }
)
"""What a step keeps of a conversation."""


def shape_of_write(document: WorkflowDocument, step: Step, parts: Sequence[Part]) -> Shape:
    """Return what is known of what a step writes at a path of the state: its result, or its conversation."""
    return CONVERSATION if keeps_conversation(step, parts) else shape_of_result(document, step)


def shape_of_result(document: WorkflowDocument, step: Step) -> Shape:
    """Return what is known of what a step gives back."""
    child = document.children.get(step.id) if step.id is not None else None
    if child is not None:
        return shape_of_child(child.document, step.facts.data.get("return_keys"))
    schema = schema_of(step, document)
    if schema is not None:
        return shape_of_schema(schema)
    name = text_of(step.facts.block, step.facts.data, "tool")
    returns = getattr(document.context.tools.get(name or ""), "returns", None)
    return shape_of_schema(returns) if isinstance(returns, Mapping) else NOTHING


def shape_of_child(child: WorkflowDocument | None, return_keys: Any) -> Shape:
    """Return the state that a child workflow ends with, or those of its keys that are asked for."""
    if child is None:
        return NOTHING
    keys = written_keys(child)
    if isinstance(return_keys, list):
        keys = [key for key in keys if key in return_keys]
    return Shape(dict.fromkeys(keys, NOTHING))


def written_keys(child: WorkflowDocument) -> list[str]:
    """Return the names at the top of a child's final state: what its steps write, then what its `state` sets."""
    state = child.head.data.get("state")
    written = [write.parts[0] for step in child.steps for write in step.facts.writes]
    names = dict.fromkeys((*written, *(state if isinstance(state, dict) else ())))
    return [name for name in names if isinstance(name, str)]


def read_keys(child: WorkflowDocument) -> list[str]:
    """Return the state keys that a child takes from outside: those that it reads and doesn't write, and those that it sets itself."""
    written = {write.parts[0] for step in child.steps for write in step.facts.writes}
    state = child.head.data.get("state")
    read = [
        place.parts[0]
        for step in child.steps
        for place in step.facts.occurrences
        if place.kind == "state" and place.role == "read" and place.parts and place.parts[0] not in written
    ]
    names = dict.fromkeys((*read, *(state if isinstance(state, dict) else ())))
    return [name for name in names if isinstance(name, str) and name != "steps"]


def shape_of_schema(schema: Mapping[str, Any], depth: int = 0) -> Shape:
    """Return the names that a JSON Schema speaks of."""
    if depth > MOST_DEPTH:
        return NOTHING
    properties = schema.get("properties")
    names = {
        key: shape_of_schema(value, depth + 1) if isinstance(value, Mapping) else NOTHING
        for key, value in (properties if isinstance(properties, Mapping) else {}).items()
        if isinstance(key, str)
    }
    items = schema.get("items")
    kind = schema.get("type")
    return Shape(
        names,
        kind if isinstance(kind, str) else "",
        shape_of_schema(items, depth + 1) if isinstance(items, Mapping) else None,
    )


def below(shape: Shape, parts: Sequence[Part]) -> Mapping[str, Shape]:
    """Return the names that may follow a path inside a result."""
    for part in parts:
        if isinstance(part, int):
            if shape.items is None:
                return {}
            shape = shape.items
        elif part in shape.names:
            shape = shape.names[part]
        else:
            return {}
    return shape.names
