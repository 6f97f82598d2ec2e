"""Layers, their order, and what a step sees of the state (SC-*)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunFinished, RunStarted, StepFinished, StepStarted
from agentloom.providers.base import Request, Response
from agentloom.providers.gateway import ProviderGateway
from tests.engine.world import Script, ask, flow, run


def test_a_step_joins_the_first_layer_after_all_its_dependencies() -> None:
    """SC-1: fetch; then classify and summarize together; then publish."""
    world = run(
        flow(
            ask("publish", "summarize", "classify"),
            ask("summarize", "fetch"),
            ask("classify", "fetch"),
            ask("fetch"),
        )
    )
    layers = {event.step: event.layer for event in world.events if isinstance(event, StepStarted)}
    assert layers == {"fetch": 1, "classify": 2, "summarize": 2, "publish": 3}
    assert list(world.result.step_results) == ["publish", "summarize", "classify", "fetch"], "results as in the file"
    assert isinstance(world.events[0], RunStarted)
    assert (world.events[0].workflow, world.events[0].steps, world.events[0].layers) == ("t", 4, 3)
    assert isinstance(world.events[-1], RunFinished)


def test_steps_of_a_layer_run_at_the_same_time() -> None:
    """SC-1: two steps that each wait for the other to have started both end."""
    begun = {"a": anyio.Event(), "b": anyio.Event()}

    def wait_for(me: str, other: str) -> Any:
        async def answer(request: Request, on_delta: Any) -> str:
            begun[me].set()
            await begun[other].wait()
            return me

        return answer

    world = run(flow(ask("a"), ask("b")), {"a": wait_for("a", "b"), "b": wait_for("b", "a")})
    assert world.statuses == {"a": "success", "b": "success"}


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_at_most_max_concurrent_steps_run_at_once(limit: int) -> None:
    """SC-1: as many as allowed, and never more; ten unless the file says otherwise."""

    async def slow(request: Request, on_delta: Any) -> str:
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        return "x"

    steps = [ask(f"s{i:02d}") for i in range(12)]
    config = {} if limit == 10 else {"max_concurrent_steps": limit}
    world = run(flow(*steps, config=config), {step["id"]: slow for step in steps})
    assert world.provider.most == limit


def test_the_next_layer_waits_for_the_whole_layer() -> None:
    """SC-1: `after_quick` needs only `quick`, and still starts when `slow` has ended."""
    trace: list[str] = []

    async def slow(request: Request, on_delta: Any) -> str:
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        trace.append("slow ended")
        return "x"

    async def after(request: Request, on_delta: Any) -> str:
        trace.append("after_quick started")
        return "x"

    run(flow(ask("quick"), ask("slow"), ask("after_quick", "quick")), {"slow": slow, "after_quick": after})
    assert trace == ["slow ended", "after_quick started"]


def test_only_depends_on_makes_an_order() -> None:
    """SC-2: a template that reads a sibling's key makes no dependency; the key isn't there yet."""
    world = run(flow(ask("writer", output="key"), ask("reader", prompt="<{state.key}>")))
    assert world.provider.prompts()["reader"] == "<>"
    assert world.result.step_results["reader"].warnings == (
        "Template variable 'state.key' not found, rendering as empty",
    )


@pytest.mark.parametrize("limit", [1, 2])
def test_a_layer_reads_the_state_as_it_stood_when_it_began(limit: int) -> None:
    """SC-3: however many run at once, siblings don't see each other's writes, and the next layer sees all of them."""
    look = "{state.n} {state.deep.n} {state.steps.a.output}"
    world = run(
        flow(
            ask("a", prompt="A", output="n"),
            ask("b", prompt=look, output="deep.n"),
            ask("c", prompt=look),
            ask("z", "a", "b", "c", prompt=look),
            state={"n": 0, "deep": {"n": 0}},
            config={"max_concurrent_steps": limit},
        )
    )
    assert world.provider.prompts() == {"a": "A", "b": "0 0 ", "c": "0 0 ", "z": "A 0 0  A"}


def test_steps_of_a_layer_start_in_alphabetical_order() -> None:
    """SC-4: whatever the order of the file."""
    steps = [ask(name) for name in ("m", "B", "z", "a", "k1", "k10", "k2")]
    world = run(flow(*steps, config={"max_concurrent_steps": 1}))
    assert world.started == ["B", "a", "k1", "k10", "k2", "m", "z"]


def test_of_two_writers_of_one_key_the_later_in_the_file_wins() -> None:
    """SC-5: the order of the file decides, not who finishes last."""

    async def late(request: Request, on_delta: Any) -> str:
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        return "first in the file, last to end"

    world = run(flow(ask("b", output="key"), ask("a", output="key")), {"b": late, "a": "second in the file"})
    assert world.finished == ["a", "b"]
    assert world.result.final_state["key"] == "second in the file"


def test_every_run_has_an_id_of_twelve_hexadecimal_digits() -> None:
    """SC-8: another one for each run, unless the caller names it."""
    first, second = run(flow(ask("a"))), run(flow(ask("a")))
    for world in (first, second):
        assert len(world.result.run_id) == 12
        assert set(world.result.run_id) <= set("0123456789abcdef")
        assert {event.run_id for event in world.events} == {world.result.run_id}
    assert first.result.run_id != second.result.run_id
    assert run(flow(ask("a")), run_id="nightly-report").result.run_id == "nightly-report"


def test_an_engine_may_run_twice() -> None:
    """The second run knows nothing of the first: not its state, not its id."""
    from agentloom.model.workflow import build_workflow

    async def main() -> None:
        gateway = ProviderGateway()
        gateway.register(Script())
        data = flow(ask("a", prompt="{state.d.n}{state.d.new}", output="d.new"), state={"d": {"n": 1}, "e": {"n": 1}})
        engine = WorkflowEngine(build_workflow(data), provider_gateway=gateway)
        first, second = await engine.run(), await engine.run({"extra": True})
        assert first.final_state["d"] == second.final_state["d"] == {"n": 1, "new": "1"}
        assert first.run_id != second.run_id
        assert "extra" not in first.final_state
        second.final_state["e"]["n"] = "changed"
        assert (await engine.run()).final_state["e"] == {"n": 1}, "results don't share with the workflow"

    anyio.run(main)


def test_a_cancelled_run_leaves_nothing_running() -> None:
    """Whoever cancels `run()` gets control back when every step has ended."""
    from agentloom.model.workflow import build_workflow

    async def main() -> None:
        provider = Script()
        begun = anyio.Event()
        ended: list[str] = []

        async def forever(request: Request, on_delta: Any) -> Response:
            if provider.running == 3:
                begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(request.step_id)
            raise AssertionError

        kid = {"name": "kid", "steps": [ask("x")]}
        steps = [ask("a"), ask("b"), {"id": "sub", "type": "subworkflow", "workflow_inline": kid}]
        provider.answers = {"a": forever, "b": forever, "sub.x": forever}
        gateway = ProviderGateway()
        gateway.register(provider)
        engine = WorkflowEngine(build_workflow(flow(*steps)), provider_gateway=gateway)
        async with anyio.create_task_group() as group:
            group.start_soon(engine.run)
            await begun.wait()
            group.cancel_scope.cancel()
        assert sorted(ended) == ["a", "b", "sub.x"]
        assert provider.running == 0

    anyio.run(main)


@pytest.mark.parametrize("count", [3_000])
def test_long_chains_need_no_stack(count: int) -> None:
    """A chain of 3,000 steps runs, in order."""
    steps = [ask(f"s{i}", *([f"s{i - 1}"] if i else []), output=f"out.k{i}") for i in range(count)]
    world = run(flow(*steps))
    assert world.result.status == "success"
    assert world.finished == [f"s{i}" for i in range(count)]
    assert len(world.result.final_state["out"]) == count
    assert all(isinstance(event, StepFinished | StepStarted | RunStarted | RunFinished) for event in world.events)
