"""Events and results as JSON, whole: what a worker writes down, a terminal elsewhere reads as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, cast

from agentloom.core.events import EVENTS, RunEvent
from agentloom.core.results import JSON, StepResult, WorkflowResult, result_of
from agentloom.language.paths import MISSING


def event_to_wire(event: RunEvent) -> dict[str, JSON]:
    """Return an event as JSON. ``value`` stays behind: it is for programs in the same process."""
    found: dict[str, JSON] = {"event": event.name}
    for field in fields(event):
        value = getattr(event, field.name)
        if value is MISSING or field.name in ("value", "run_id"):
            continue
        if isinstance(value, datetime):
            value = value.isoformat()
        found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def event_from_wire(data: Mapping[str, JSON], run_id: str) -> RunEvent | None:
    """Return the event that JSON describes; None for one that a newer version wrote."""
    kind = EVENTS.get(str(data.get("event")))
    if kind is None:
        return None
    known = {field.name for field in fields(kind)}
    given: dict[str, Any] = {name: value for name, value in data.items() if name in known}
    if isinstance(given.get("time"), str):
        given["time"] = datetime.fromisoformat(given["time"])
    if "warnings" in given:
        given["warnings"] = tuple(given["warnings"])
    return cast(RunEvent, kind(**{**given, "run_id": run_id}))


def result_to_wire(result: WorkflowResult) -> dict[str, JSON]:
    """Return a run's result as JSON, with what its own JSON leaves out."""
    steps = {
        name: {**step.to_dict(), "attempts": step.attempts, "warnings": list(step.warnings)}
        for name, step in result.step_results.items()
    }
    return {**result.to_dict(), "step_results": steps}


def result_from_wire(data: Mapping[str, Any]) -> WorkflowResult:
    """Return the result that JSON describes. Raises ``ValueError`` or ``KeyError`` for what is none."""
    return WorkflowResult(
        workflow_name=data["workflow_name"],
        status=data["status"],
        step_results={name: _step(step) for name, step in data["step_results"].items()},
        final_state=data["final_state"],
        total_duration_ms=data["total_duration_ms"],
        total_tokens=data["total_tokens"],
        total_cost_usd=data["total_cost_usd"],
        error=data["error"],
        run_id=data["run_id"],
        annotations=list(data.get("annotations") or ()),
    )


def _step(data: Mapping[str, Any]) -> StepResult:
    from dataclasses import replace

    return replace(result_of(data), attempts=int(data["attempts"]), warnings=tuple(data["warnings"]))
