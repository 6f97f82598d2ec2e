"""Texts that a state path can only be: what a status, a router, a gate or a reply's schema allows. Nothing where that isn't certain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.result_shapes import schema_of
from agentloom.ide.state_paths import RESULTS, initial_value, writers_of
from agentloom.language.paths import MISSING, Part

STATUSES = ("success",)
"""What `steps.<id>.status` can be: of a step that failed or didn't run there is nothing."""
DECISIONS = ("approved", "rejected")
"""What an approval gate gives back."""


def texts_at(document: WorkflowDocument, parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    """Yield the texts that a path can be, each with where it comes from."""
    head = tuple(parts)
    if head[:1] == (RESULTS,):
        step = document.by_id.get(str(head[1])) if len(head) > 1 else None
        if step is None or len(head) < 3:
            return
        if head[2] == "status" and len(head) == 3:
            yield from ((status, f"status of `{step.id}`") for status in STATUSES)
        elif head[2] == "output":
            yield from ((text, f"from `{step.id}`") for text in texts_of(step, head[3:]) or ())
        return
    if initial_value(document, head) not in (MISSING, None):
        return
    found: dict[str, str] = {}
    for writer in writers_of(document, head, None):
        if writer.parts != head[: len(writer.parts)]:
            return
        texts = texts_of(writer.step, head[len(writer.parts) :])
        if texts is None:
            return
        for text in texts:
            found.setdefault(text, f"from `{writer.step.id}`")
    yield from found.items()


def texts_of(step: Step, parts: Sequence[Part]) -> tuple[str, ...] | None:
    """Return the texts that a step's result, or what lies in it, can only be; None when it may be anything."""
    if step.type == "approval_gate" and not parts:
        return DECISIONS
    if step.type == "router" and not parts:
        chosen = dict.fromkeys(o.name for o in step.facts.occurrences if o.kind == "step" and not _waits(o.key))
        chosen.pop(step.id or "", None)
        return tuple(chosen)
    schema: Any = schema_of(step)
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


def _waits(key: str) -> bool:
    return key.split(".", 1)[0] == "depends_on"
