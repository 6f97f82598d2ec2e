"""The stream of events: its shape as JSON, its subscriber, its limits (§18)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from agentloom.core.events import (
    EVENTS,
    OUTPUT_LIMIT,
    EventStream,
    RunEvent,
    RunFinished,
    RunStarted,
    StepDelta,
    StepFinished,
    StepRetrying,
    StepSkipped,
    StepStarted,
    cut,
)
from tests.engine.world import FAIL, ask, flow, run

NOON = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)

SHAPES: list[tuple[RunEvent, dict[str, Any]]] = [
    (RunStarted(workflow="w", steps=2, layers=1), {"workflow": "w", "steps": 2, "layers": 1}),
    (StepStarted(step="s", type="tool", layer=1), {"step": "s", "type": "tool", "layer": 1}),
    (StepDelta(step="s", text="hi", attempt=1, seq=0), {"step": "s", "text": "hi", "attempt": 1, "seq": 0}),
    (
        StepRetrying(step="s", attempt=1, attempts=4, wait_s=2.0, error="busy"),
        {"step": "s", "attempt": 1, "attempts": 4, "wait_s": 2.0, "error": "busy"},
    ),
    (
        StepFinished(
            step="s",
            status="success",
            output={"a": 1},
            duration_ms=1.5,
            cost_usd=0.1,
            tokens=3,
            model="m",
            provider="p",
        ),
        {
            "step": "s",
            "status": "success",
            "output": {"a": 1},
            "error": None,
            "duration_ms": 1.5,
            "cost_usd": 0.1,
            "tokens": 3,
            "model": "m",
            "provider": "p",
            "warnings": [],
        },
    ),
    (StepSkipped(step="s", error=None), {"step": "s", "error": None}),
    (
        RunFinished(status="failed", total_cost_usd=0.1, total_tokens=3, duration_ms=2.0, error="no"),
        {
            "status": "failed",
            "total_cost_usd": 0.1,
            "total_tokens": 3,
            "duration_ms": 2.0,
            "error": "no",
            "checkpoint": None,
        },
    ),
]


@pytest.mark.parametrize(("event", "body"), SHAPES, ids=lambda value: getattr(value, "name", ""))
def test_the_shape_of_each_event(event: RunEvent, body: dict[str, Any]) -> None:
    """Version, name, run, time, and the event's own keys, in that order."""

    async def main() -> list[RunEvent]:
        kept: list[RunEvent] = []

        async def keep(event: RunEvent) -> None:
            kept.append(event)

        await EventStream("r1", keep, now=lambda: NOON).emit(event)
        return kept

    (stamped,) = anyio.run(main)
    data = stamped.to_json()
    head = {"version": 1, "event": event.name, "run_id": "r1", "time": "2026-11-30T12:00:00.250000+00:00"}
    assert data == {**head, **body}
    assert list(data)[:4] == list(head)
    assert json.loads(json.dumps(data)) == data


def test_every_event_has_a_shape_here() -> None:
    """The table above is complete."""
    assert [event.name for event, _ in SHAPES] == list(EVENTS)


def test_a_run_as_a_stream() -> None:
    """Start, layer by layer, end; a skipped step is told once and never starts."""
    world = run(flow(ask("a"), ask("b"), ask("c", "a"), ask("d", "b")), {"a": FAIL})
    assert [(event.name, getattr(event, "step", "")) for event in world.events if event.name != "step_started"] == [
        ("run_started", ""),
        ("step_finished", "a"),
        ("step_finished", "b"),
        ("step_skipped", "c"),
        ("step_finished", "d"),
        ("run_finished", ""),
    ]
    assert world.started == ["a", "b", "d"]
    last = world.events[-1].to_json()
    assert (last["status"], last["error"]) == ("failed", f"step `a` failed: {FAIL}")
    times = [event.time for event in world.events if event.time is not None]
    assert len(times) == len(world.events)
    assert times == sorted(times)


def test_long_outputs_are_cut() -> None:
    """An event carries the beginning; the result has it all."""
    text = "x" * (OUTPUT_LIMIT + 1)
    assert cut(text) == "x" * OUTPUT_LIMIT + "…"
    assert cut("x" * OUTPUT_LIMIT) == "x" * OUTPUT_LIMIT
    assert cut({"k": [1, None]}) == {"k": [1, None]}
    shown = cut({"k": text})
    assert shown.startswith('{"k":"xxx')
    assert len(shown) == OUTPUT_LIMIT + 1
    world = run(flow(ask("a", prompt=text)))
    finished = next(event for event in world.events if isinstance(event, StepFinished))
    assert finished.output == text
    assert len(finished.to_json()["output"]) == OUTPUT_LIMIT + 1


def test_a_subscriber_gets_one_event_at_a_time() -> None:
    """Also a slow one, while several steps end at once."""
    inside = 0

    async def main() -> None:
        async def slow(event: RunEvent) -> None:
            nonlocal inside
            inside += 1
            assert inside == 1
            await anyio.lowlevel.checkpoint()
            inside -= 1
            seen.append(event)

        from agentloom.core.engine import WorkflowEngine
        from agentloom.model.workflow import build_workflow

        seen: list[RunEvent] = []
        workflow = build_workflow(flow(*(ask(f"s{i}") for i in range(20)), config={"max_concurrent_steps": 7}))
        await WorkflowEngine(workflow, on_event=slow).run()
        assert len(seen) == 42

    anyio.run(main)


def test_a_subscriber_that_fails_does_not_fail_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """It is told no more, and the log says so."""

    async def main() -> None:
        from agentloom.core.engine import WorkflowEngine
        from agentloom.model.workflow import build_workflow

        seen: list[str] = []

        async def keep(event: RunEvent) -> None:
            seen.append(event.name)
            if event.name == "step_started":
                raise BrokenPipeError

        result = await WorkflowEngine(build_workflow(flow(ask("a"), ask("b"))), on_event=keep).run()
        assert list(result.step_results) == ["a", "b"]
        assert seen == ["run_started", "step_started"]

    anyio.run(main)
    assert sum("subscriber" in record.getMessage() for record in caplog.records) == 1
