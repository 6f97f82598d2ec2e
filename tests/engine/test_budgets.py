"""Budgets: when they are checked, what they stop, what counts, and how children share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentloom.errors import ProviderError
from agentloom.providers.base import Request, Response, Usage
from tests.engine.world import ask, flow, route, run, sub


def costs(price: float, takes: float = 0.0) -> Callable[..., Any]:
    """Return a scripted answer of that price, in US dollars, after so many seconds."""

    async def reply(request: Request, on_delta: object) -> Response:
        await anyio.sleep(takes)
        return Response("ok", "m", "mock", Usage(1, 1, 2), price)

    return reply


def test_the_step_that_crosses_the_limit_keeps_its_result() -> None:
    """BU-1: the others running are stopped without one, later steps don't start, the message has both sums."""
    steps = [ask("a"), ask("b"), ask("c"), ask("d", "a")]
    answers = {"a": costs(0.3, 1), "b": costs(0.212, 2), "c": costs(1, 60)}
    world = run(flow(*steps, config={"budget_usd": 0.5}), answers)
    assert world.statuses == {"a": "success", "b": "success"}
    assert (world.result.status, world.result.error) == (
        "budget_exceeded",
        "Budget exceeded: spent $0.5120 of $0.5000 limit",
    )
    assert world.result.total_duration_ms == pytest.approx(2000)
    assert world.result.total_cost_usd == pytest.approx(0.512)
    assert world.finished == ["a", "b"]


def test_case_five_parallel_calls_of_which_the_second_reaches_the_limit() -> None:
    """Case: every call that was made counts, those whose replies come at the same moment too; only two of them have a result."""
    steps = [ask(name) for name in "abcde"]
    world = run(flow(*steps, ask("z", "a"), config={"budget_usd": 0.15}), {name: costs(0.1, 1) for name in "abcde"})
    assert list(world.statuses.values()) == ["success", "success"]
    assert len(world.provider.requests) == 5
    assert world.result.total_cost_usd == pytest.approx(0.5)
    assert world.result.total_tokens == 10
    assert world.result.error == "Budget exceeded: spent $0.5000 of $0.1500 limit"
    assert sorted(world.finished) == list(world.statuses)


def test_nothing_to_spend_refuses_the_first_step() -> None:
    """BU-2."""
    world = run(flow(ask("a"), config={"budget_usd": 0}))
    assert world.statuses == {}
    assert world.provider.requests == []
    assert world.result.error == "Budget exceeded: spent $0.0000 of $0.0000 limit"


def test_a_limit_that_is_just_reached_stops_the_next_step() -> None:
    """BU-2: what runs beside it goes on to its end."""
    answers = {"a": costs(0.5, 1), "b": costs(0, 5)}
    world = run(flow(ask("a"), ask("b"), ask("c", "a", "b"), config={"budget_usd": 0.5}), answers)
    assert world.statuses == {"a": "success", "b": "success"}
    assert world.result.status == "budget_exceeded"
    assert world.started == ["a", "b"]


def test_a_limit_that_is_just_reached_by_the_last_step_is_kept() -> None:
    """No step was refused; nor is one that a router didn't choose."""
    world = run(flow(ask("a"), config={"budget_usd": 0.5}), {"a": costs(0.5)})
    assert world.result.status == "success"
    steps = [route("r", default="a"), ask("a", "r"), ask("b", "r"), ask("c", "b")]
    world = run(flow(*steps, config={"budget_usd": 0.5}), {"a": costs(0.5)})
    assert world.statuses == {"r": "success", "a": "success", "b": "skipped", "c": "skipped"}
    assert world.result.status == "success"


def test_free_models_never_stop() -> None:
    """BU-2: a model without a price costs nothing."""
    steps = [ask(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(20)]
    world = run(flow(*steps, config={"budget_usd": 0.01}), {step["id"]: costs(0) for step in steps})
    assert world.result.status == "success"


def test_a_step_in_the_queue_is_refused() -> None:
    """One at a time: the second isn't started after the first has reached the limit."""
    config = {"budget_usd": 0.5, "max_concurrent_steps": 1}
    world = run(flow(ask("a"), ask("b"), config=config), {"a": costs(0.5)})
    assert world.statuses == {"a": "success"}
    assert world.result.status == "budget_exceeded"


def test_an_attempt_that_crosses_the_limit_is_the_last() -> None:
    """Going over the budget is for good: a failed step isn't tried again with money that is gone."""
    child = [ask("dear"), ask("broken", "dear", retry={"max_retries": 0})]
    error = ProviderError("busy", status_code=503)
    world = run(flow(sub("s", steps=child), config={"budget_usd": 0.7}), {"s.dear": costs(0.5), "s.broken": error})
    assert world.result.status == "budget_exceeded"
    assert [request.step_id for request in world.provider.requests] == ["s.dear", "s.broken", "s.dear"]
    assert world.result.total_cost_usd == 1.0
    assert world.errors == {"s": "workflow `kid`: Budget exceeded: spent $1.0000 of $0.7000 limit"}


def test_children_share_the_parents_budget() -> None:
    """What two of them spend at the same time counts together; the run stops when it is over."""
    steps = [sub(name, steps=[ask("one"), ask("two", "one")]) for name in ("x", "y")]
    answers = {f"{name}.{step}": costs(0.2, 1 if name == "x" else 1.1) for name in "xy" for step in ("one", "two")}
    world = run(flow(*steps, config={"budget_usd": 0.5}), answers)
    assert world.result.status == "budget_exceeded"
    assert world.result.total_cost_usd == pytest.approx(0.6)


def test_a_childs_own_budget_fails_its_step_without_a_retry() -> None:
    """Its cost still counts for the parent, which goes on."""
    step = sub("s", child={"config": {"budget_usd": 0.3}}, steps=[ask("one"), ask("two", "one")])
    world = run(flow(step, ask("other"), config={"budget_usd": 5}), {"s.one": costs(0.4), "other": costs(0.1)})
    assert world.statuses == {"s": "failed", "other": "success"}
    assert world.errors["s"] == "workflow `kid`: Budget exceeded: spent $0.4000 of $0.3000 limit"
    assert world.result.step_results["s"].error_classification == "permanent"
    assert world.result.step_results["s"].cost_usd == 0.4
    assert world.result.total_cost_usd == 0.5
    assert world.result.status == "failed"


def test_budget_outranks_the_clock_and_both_outrank_failure() -> None:
    """SS-1: when several apply."""
    config = {"budget_usd": 0.1, "timeout": 5, "on_step_failure": "continue"}
    error = ProviderError("no", status_code=400)
    steps = [ask("bad"), ask("slow"), ask("dear")]
    world = run(flow(*steps, config=config), {"bad": error, "slow": costs(0, 60), "dear": costs(1, 4)})
    assert world.result.status == "budget_exceeded"
    world = run(flow(*steps[:2], config=config), {"bad": error, "slow": costs(0, 60)})
    assert world.statuses == {"bad": "failed", "slow": "timeout"}
    assert world.result.status == "timeout"
