"""What a step can give back, as far as the file says: the JSON Schema of its reply, and the texts that it can only be.

Rules and editors ask here alike. Nothing is said where it isn't certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from agentloom.analysis.agents import find_agent
from agentloom.analysis.dataflow import dataflow
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.language.paths import MISSING, Part, get
from agentloom.model.catalogue import catalogue

STEPS = "steps"
"""The state key under which the engine keeps results."""
STATUSES = ("success",)
"""What `steps.<id>.status` can be: of a step that failed or didn't run there is nothing."""
DECISIONS = ("approved", "rejected")
"""What an approval gate gives back."""


def texts_at(document: WorkflowDocument, parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    """Yield the texts that a path can be, each with where it comes from."""
    head = tuple(parts)
    if head[:1] == (STEPS,):
        step = document.by_id.get(str(head[1])) if len(head) > 1 else None
        if step is None or len(head) < 3:
            return
        if head[2] == "status" and len(head) == 3:
            yield from ((status, f"status of `{step.id}`") for status in STATUSES)
        elif head[2] == "output":
            yield from ((text, f"from `{step.id}`") for text in texts_of(step, head[3:], document) or ())
        return
    state = document.head.data.get("state")
    if not head or (isinstance(state, dict) and get(state, head) not in (MISSING, None)):
        return
    flow = dataflow(document)
    if flow.declared.origin(head) not in (None, "state"):
        return  # given from outside
    found: dict[str, str] = {}
    for writer in flow.writers(head):
        if writer.parts != head[: len(writer.parts)]:
            return
        if keeps_conversation(writer.step, writer.parts):
            return
        texts = texts_of(writer.step, head[len(writer.parts) :], document)
        if texts is None:
            return
        for text in texts:
            found.setdefault(text, f"from `{writer.step.id}`")
    yield from found.items()


def texts_of(step: Step, parts: Sequence[Part], document: WorkflowDocument | None = None) -> tuple[str, ...] | None:
    """Return the texts that a step's result, or what lies in it, can only be; None when it may be anything.

    ``document`` is asked for the step's agent.
    """
    if step.type == "approval_gate" and not parts:
        return DECISIONS
    if step.type == "router" and not parts:
        chosen = dict.fromkeys(o.name for o in step.facts.occurrences if o.kind == "step" and not _waits(o.key))
        chosen.pop(step.id or "", None)
        return tuple(chosen)
    schema: Any = schema_of(step, document)
    for part in parts:
        if not isinstance(schema, Mapping):
            return None
        inner = schema.get("items") if isinstance(part, int) else schema.get("properties")
        schema = inner if isinstance(part, int) or not isinstance(inner, Mapping) else inner.get(part)
    if not isinstance(schema, Mapping):
        return None
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not isinstance(choices, list) or not choices:
        return None
    return tuple(choice for choice in choices if isinstance(choice, str)) or None


def keeps_conversation(step: Step, parts: Sequence[Part]) -> bool:
    """Tell whether what a step writes at a path is its conversation, and not its output."""
    keys = [write.key for write in step.facts.writes if tuple(write.parts) == tuple(parts)]
    return keys == ["conversation"]


def gives_text(step: Step) -> bool:
    """Tell whether a step's output is surely a text."""
    if step.type == "llm_call":
        return not step.facts.data.get("response_schema")
    return step.type in ("router", "approval_gate")


def schema_of(step: Step, document: WorkflowDocument | None = None) -> Mapping[str, Any] | None:
    """Return the JSON Schema that a step's reply must fit; with ``document``, also one that its agent gives."""
    block, data = step.facts.block, step.facts.data
    if block is None:
        return None
    found = _schema_in(block.name, data)
    name = data.get("agent")
    if found is not None or document is None or step.type != "agent" or not isinstance(name, str):
        return found
    agent = find_agent(document, name, document)
    return _schema_in("agent", agent.data) if agent is not None else None


def _schema_in(block: str, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for name, key in _schema_places(block):
        value = data.get(name)
        found = value.get(key) if isinstance(value, dict) else None
        if isinstance(found, dict):
            return found
    return None


@cache
def _schema_places(block: str) -> tuple[tuple[str, str], ...]:
    """Return where a step of a block may say what its reply must fit: a field, and the key in it that holds the JSON Schema."""
    known = catalogue().blocks
    found: list[tuple[str, str]] = []
    for name, field in known[block].fields.items():
        inner = known.get(field.shape.block) if field.shape.block is not None else None
        for key, described in inner.fields.items() if inner is not None else ():
            if described.shape.mark("json_schema"):
                found.append((name, key))
    return tuple(found)


def _waits(key: str) -> bool:
    return key.split(".", 1)[0] == "depends_on"
