"""Retries and timeouts: attempts, waits, what is tried again and what isn't, and time that runs out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentloom.core.events import StepRetrying
from agentloom.errors import ProviderError, StepError
from agentloom.providers.base import Request, Response, Usage
from tests.engine.world import World, ask, flow, route, run, sub, use

CALM = {"jitter": False}
BUSY = ProviderError("busy", provider="mock", status_code=503)


def fails(*times: int | Exception, answer: Any = "done", takes: float = 0.0) -> Callable[..., Any]:
    """Return a scripted answer that fails so often, or with these errors, before it comes; each call takes so many seconds."""
    errors: list[Exception] = []
    for item in times:
        errors.extend([BUSY] * item if isinstance(item, int) else [item])

    async def reply(request: Request, on_delta: object) -> Any:
        if takes:
            await anyio.sleep(takes)
        if errors:
            raise errors.pop(0)
        return answer

    return reply


def waits(world: World) -> list[float]:
    """Return the waits that were told, in seconds."""
    return [event.wait_s for event in world.events if isinstance(event, StepRetrying)]


def test_the_waits_grow_up_to_a_limit() -> None:
    """RT-1: the base, its square, its cube, at most `backoff_max`; five retries are six attempts."""
    step = ask("a", retry={"max_retries": 5, "backoff_base": 2, "backoff_max": 30, **CALM})
    world = run(flow(step), {"a": fails(5)})
    assert waits(world) == [2, 4, 8, 16, 30]
    assert world.statuses == {"a": "success"}
    assert len(world.provider.requests) == 6
    assert world.result.total_duration_ms == pytest.approx(60_000)
    assert world.result.step_results["a"].duration_ms == pytest.approx(60_000)


def test_the_defaults() -> None:
    """Three retries with waits of about 2, 4 and 8 seconds, each within a quarter either way."""
    world = run(flow(ask("a")), {"a": fails(9)})
    assert world.statuses == {"a": "failed"}
    assert len(world.provider.requests) == 4
    for told, plain in zip(waits(world), (2, 4, 8), strict=True):
        assert 0.75 * plain <= told <= 1.25 * plain


@pytest.mark.parametrize(
    ("config", "retry", "attempts"),
    [
        ({"max_retries": 0}, None, 1),
        ({"max_retries": 1}, None, 2),
        ({"max_retries": 1}, {"max_retries": 0}, 1),
        ({"max_retries": 0}, {"max_retries": 2}, 3),
        ({"max_retries": 2}, {"max_retries": None}, 3),
        ({}, {"backoff_base": 1}, 4),
    ],
)
def test_how_many_attempts(config: dict[str, Any], retry: dict[str, Any] | None, attempts: int) -> None:
    """The step's number first, then the workflow's, then three retries."""
    step = ask("a") if retry is None else ask("a", retry=retry)
    assert len(run(flow(step, config=config), {"a": fails(9)}).provider.requests) == attempts


def test_a_child_takes_its_own_number() -> None:
    """SW: a subworkflow's steps take their child's `config.max_retries`; retries multiply."""
    child = {"config": {"max_retries": 2}}
    step = sub("s", child=child, steps=[ask("k")], retry={"max_retries": 1, **CALM})
    world = run(flow(step, config={"max_retries": 0}), {"s.k": fails(99)})
    assert len(world.provider.requests) == 6
    assert world.statuses == {"s": "failed"}


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (ProviderError("x", status_code=429), 4),
        (ProviderError("x", status_code=504), 4),
        (ProviderError("x"), 4),
        (ProviderError("x", status_code=400), 1),
        (ProviderError("x", status_code=401), 1),
        (ProviderError("x", status_code=529), 1),
        (ProviderError("x", permanent=True), 1),
    ],
)
def test_the_status_decides(error: ProviderError, attempts: int) -> None:
    """GW-1: listed statuses and none at all are tried again, others not."""
    assert len(run(flow(ask("a")), {"a": error}).provider.requests) == attempts


def test_the_list_of_statuses_is_the_steps_own() -> None:
    """`retryable_status_codes` takes the place of the usual ones."""
    step = ask("a", retry={"retryable_status_codes": [529]})
    assert len(run(flow(step), {"a": ProviderError("x", status_code=529)}).provider.requests) == 4
    assert len(run(flow(step), {"a": ProviderError("x", status_code=503)}).provider.requests) == 1


def test_a_broken_template_fails_at_once_and_costs_nothing() -> None:
    """TP-5."""
    world = run(flow({"id": "a", "type": "llm_call", "prompt": "{state.n:d}"}, state={"n": "x"}))
    assert world.result.step_results["a"].error_classification == "permanent"
    assert world.provider.requests == []
    assert waits(world) == []


def test_tools_are_tried_again_unless_they_are_not_there() -> None:
    """RT-2: any error that a tool raises; not a tool that nobody registered."""
    calls: list[int] = []

    def flaky() -> str:
        """Fail twice."""
        calls.append(1)
        if len(calls) < 3:
            raise OSError("down")
        return "up"

    world = run(flow(use("a", "flaky"), use("b", "nobody")), tools={"flaky": flaky})
    assert world.statuses == {"a": "success", "b": "failed"}
    assert len(calls) == 3
    assert [event.step for event in world.events if isinstance(event, StepRetrying)] == ["a", "a"]


def test_routers_fail_at_once() -> None:
    """RT-2: every failure of a router is for good."""
    world = run(flow(route("r", a="state.x.y.z == 1"), ask("a", "r")))
    assert world.result.step_results["r"].error_classification == "permanent"
    assert waits(world) == []


def test_an_attempt_begins_from_the_start() -> None:
    """RT: prompts are rendered and tools run again; a child runs from its first step."""
    step = sub("s", steps=[ask("one"), ask("two", "one", retry={"max_retries": 0})], retry={"max_retries": 1, **CALM})
    world = run(flow(step), {"s.two": fails(1)})
    assert world.statuses == {"s": "success"}
    assert [request.step_id for request in world.provider.requests] == ["s.one", "s.two", "s.one", "s.two"]


@pytest.mark.parametrize(("asked", "most", "wait"), [(5, 60, 5), (1, 60, 2), (90, 60, 60), (90, 1, 1), (None, 60, 2)])
def test_what_the_server_asks_for(asked: float | None, most: float, wait: float) -> None:
    """GW-5: the longer of Retry-After and the wait, the server's up to `backoff_max`."""
    error = ProviderError("busy", status_code=429, retry_after=asked)
    step = ask("a", retry={"backoff_max": most, "max_retries": 1, **CALM})
    assert waits(run(flow(step), {"a": fails(error)})) == [wait]


def test_the_log_has_a_line_for_each_retry(caplog: pytest.LogCaptureFixture) -> None:
    """RT-1: the step, the attempt out of how many, and the wait."""
    with caplog.at_level(logging.WARNING):
        run(flow(ask("a", retry={"max_retries": 2, **CALM})), {"a": fails(9)})
    assert [record.getMessage() for record in caplog.records] == [
        "Step 'a' failed (attempt 1/3), retrying in 2.0s: busy",
        "Step 'a' failed (attempt 2/3), retrying in 4.0s: busy",
    ]


# --- timeouts -----------------------------------------------------------------------------------------------------------


def test_each_attempt_has_the_whole_time() -> None:
    """TM-1: an attempt that runs out ends `timeout` and is tried again, whatever the listed statuses; waits don't count."""
    step = ask("a", timeout=5, retry={"max_retries": 2, "retryable_status_codes": [], **CALM})
    world = run(flow(step, ask("b", "a")), {"a": fails(takes=6)})
    assert world.statuses == {"a": "timeout", "b": "skipped"}
    assert world.errors["a"] == "Step timed out after 5.0s"
    assert world.result.status == "failed"
    assert world.result.total_duration_ms == pytest.approx(1000 * (5 + 2 + 5 + 4 + 5))
    assert len(world.provider.requests) == 3


def test_a_later_attempt_may_be_quick_enough() -> None:
    """Its result counts."""
    slow = [True]

    async def once_slow(request: Request, on_delta: object) -> str:
        if slow:
            slow.pop()
            await anyio.sleep(60)
        return "ok"

    world = run(flow(ask("a", timeout=5)), {"a": once_slow})
    assert world.statuses == {"a": "success"}
    assert world.output("a") == "ok"


@pytest.mark.parametrize("timeout", [0, None])
def test_no_limit(timeout: float | None) -> None:
    """Zero and nothing mean none."""
    assert run(flow(ask("a", timeout=timeout)), {"a": fails(takes=10_000)}).statuses == {"a": "success"}


def test_a_childs_time_is_that_of_its_step() -> None:
    """A subworkflow step's `timeout` ends the child; what the child spent counts."""
    step = sub("s", steps=[ask("one"), ask("two", "one")], timeout=5, retry={"max_retries": 0})
    world = run(flow(step), {"s.two": fails(takes=60)})
    assert world.statuses == {"s": "timeout"}
    assert world.result.total_cost_usd == 0.5


def test_the_time_of_the_whole_run() -> None:
    """TM-2: what runs ends `timeout`, later steps have no result, other branches of the layer keep theirs; the run ends `timeout`."""
    steps = [ask("quick"), ask("slow"), ask("slower"), ask("later", "slow"), ask("free", "quick")]
    answers = {"slow": fails(takes=400), "slower": fails(takes=500)}
    world = run(flow(*steps, config={"timeout": 300}), answers)
    assert world.statuses == {"quick": "success", "slow": "timeout", "slower": "timeout"}
    assert world.errors == {"slow": "Workflow timed out after 300.0s", "slower": "Workflow timed out after 300.0s"}
    assert (world.result.status, world.result.error) == ("timeout", "Workflow timed out after 300.0s")
    assert world.result.total_duration_ms == pytest.approx(300_000)


def test_the_runs_time_cuts_a_wait_short() -> None:
    """The step that waited for its next attempt ends `timeout`."""
    world = run(flow(ask("a", retry=CALM), config={"timeout": 5}), {"a": fails(9)})
    assert world.statuses == {"a": "timeout"}
    assert world.result.status == "timeout"
    assert world.result.total_duration_ms == pytest.approx(5000)
    assert len(world.provider.requests) == 2


def test_a_run_that_ends_in_time_is_no_timeout() -> None:
    """Also when the last step takes all of it."""
    world = run(flow(ask("a"), ask("b", "a"), config={"timeout": 10}), {"a": fails(takes=9), "b": fails(takes=0.5)})
    assert world.result.status == "success"


def test_a_child_ends_with_its_parent_or_before() -> None:
    """A child's own time fails its step, which may be tried again; the parent's time ends the run."""
    child = {"config": {"timeout": 5}}
    step = sub("s", child=child, steps=[ask("k")], retry={"max_retries": 1, **CALM})
    world = run(flow(step), {"s.k": fails(takes=60)})
    assert world.statuses == {"s": "failed"}
    assert world.errors["s"] == "workflow `kid`: Workflow timed out after 5.0s"
    assert len(world.provider.requests) == 2
    world = run(flow(step, config={"timeout": 3}), {"s.k": fails(takes=60)})
    assert world.statuses == {"s": "timeout"}
    assert (world.result.status, world.result.error) == ("timeout", "Workflow timed out after 3.0s")


def test_a_step_in_the_queue_does_not_start_late() -> None:
    """One at a time: what hasn't begun when the time is over has no result."""
    world = run(
        flow(ask("a"), ask("b"), ask("c"), config={"timeout": 5, "max_concurrent_steps": 1}),
        {"a": fails(takes=4), "b": fails(takes=4)},
    )
    assert world.statuses == {"a": "success", "b": "timeout"}
    assert world.started == ["a", "b"]


# --- what a failure does to the rest -------------------------------------------------------------------------------------


def test_a_timeout_counts_as_a_failure_for_the_steps_after_it() -> None:
    """OF-1: under `continue` they run, and the state has nothing of the step."""
    steps = [ask("a", timeout=1, retry={"max_retries": 0}), ask("b", "a", prompt="got {state.steps.a.output}")]
    world = run(flow(*steps, config={"on_step_failure": "continue"}), {"a": fails(takes=5)})
    assert world.statuses == {"a": "timeout", "b": "success"}
    assert world.provider.prompts()["b"] == "got "
    assert "a" not in world.result.final_state["steps"]
    assert world.result.status == "failed"


def test_costs_and_tokens_of_all_attempts_count() -> None:
    """BU: failed attempts too, as far as they got an answer."""

    async def dear_then_broken(request: Request, on_delta: object) -> Response:
        return Response("ok", "m", "mock", Usage(1, 1, 2), 0.25)

    tried: list[int] = []

    def broken(text: str) -> str:
        """Fail once."""
        tried.append(1)
        if len(tried) == 1:
            raise StepError("not yet", transient=True)
        return text

    child = [ask("ask"), use("check", "broken", "ask", tool_args={"text": "x"}, retry={"max_retries": 0})]
    world = run(flow(sub("s", steps=child)), {"s.ask": dear_then_broken}, tools={"broken": broken})
    result = world.result.step_results["s"]
    assert (result.status, result.cost_usd, result.token_usage.total_tokens) == ("success", 0.5, 4)
    assert (world.result.total_cost_usd, world.result.total_tokens) == (0.5, 4)
    assert result.attempts == 2
