"""Model calls: what is asked, what comes back, how templates and failures show (LC-1, TP-*, GW-*)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from agentloom.core.events import StepFinished
from agentloom.errors import ProviderError
from agentloom.providers.base import Request, Response, Usage
from tests.engine.world import FAIL, ask, flow, run, sub


def test_what_a_step_asks() -> None:
    """Prompts are rendered; model, provider and stream come from `config` unless the step says otherwise; the rest only if set."""
    world = run(
        flow(
            ask("a", prompt="Hello {state.name}", system_prompt="Be {tone}."),
            ask("b", model="other", temperature=0, max_tokens=5, stream=False),
            state={"name": "Ann", "tone": "brief"},
            config={"stream": True},
        )
    )
    first, second = world.provider.requests
    assert [(m.role, m.content) for m in first.messages] == [("system", "Be brief."), ("user", "Hello Ann")]
    assert (first.model, first.prefer, first.stream) == ("m", "mock", True)
    assert (first.temperature, first.max_tokens) == (None, None)
    assert [m.role for m in second.messages] == ["user"]
    assert (second.model, second.temperature, second.max_tokens, second.stream) == ("other", 0, 5, False)


def test_the_result_of_a_call() -> None:
    """LC-1: reply, tokens, cost, model, provider, time to the first token, and what is kept of the prompt."""
    reply = Response("the reply", "m-2", "other", Usage(10, 20, 35, 5), 0.25, "length", 12.0, 3.5)
    prompt = "{state.b} {a} {state.b} {state.x}"
    world = run(flow(ask("s", prompt=prompt, output="out"), state={"a": "ä", "b": 2}), {"s": reply})
    result = world.result.step_results["s"].to_dict()
    assert result.pop("duration_ms") >= 0
    assert result == {
        "step_id": "s",
        "status": "success",
        "output": "the reply",
        "error": None,
        "token_usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 35, "reasoning_tokens": 5},
        "cost_usd": 0.25,
        "model": "m-2",
        "provider": "other",
        "attachment_count": 0,
        "time_to_first_token_ms": 3.5,
        "prompt_metadata": {
            "hash": sha256("2 ä 2 ".encode()).hexdigest()[:16],
            "length_chars": 6,
            "template_id": "t:s",
            "template_vars": ["a", "state.b", "state.x"],
            "finish_reason": "length",
        },
        "error_classification": None,
    }
    assert world.result.total_tokens == 35
    assert world.result.total_cost_usd == 0.25


def test_a_streamed_reply_is_told_piece_by_piece() -> None:
    """The pieces are numbered, name their step and attempt, and come before the step's end."""
    world = run(flow(ask("a", stream=True), ask("b", "a")), {"a": "one two three"})
    assert world.text_of("a") == ["one", "two", "three"]
    assert world.text_of("b") == []
    kinds = [event.name for event in world.events if getattr(event, "step", "") == "a"]
    assert kinds == ["step_started", "step_delta", "step_delta", "step_delta", "step_finished"]
    deltas = [event.to_json() for event in world.events if event.name == "step_delta"]
    assert [(delta["step"], delta["attempt"], delta["seq"]) for delta in deltas] == [
        ("a", 1, 0),
        ("a", 1, 1),
        ("a", 1, 2),
    ]


def test_a_missing_variable_renders_empty_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """TP-1: in the log, in the step's result and in its event; `{missing}` and `{missing[0]}` alike."""
    world = run(flow(ask("a", prompt="<{state.k}{state.k}{missing}{missing[0]}>")))
    assert world.provider.prompts()["a"] == "<>"
    expected = [
        f"Template variable '{name}' not found, rendering as empty" for name in ("state.k", "missing", "missing[0]")
    ]
    assert [record.getMessage() for record in caplog.records] == expected
    assert world.result.step_results["a"].warnings == tuple(expected)
    finished = next(event for event in world.events if isinstance(event, StepFinished))
    assert finished.to_json()["warnings"] == expected


@pytest.mark.parametrize("prompt", ['{"a": 1}', "{", "}", "{}", "{state.n:d}"])
def test_a_broken_template_fails_the_step_for_good(prompt: str) -> None:
    """TP-5, TP-3: permanent, and no call is made."""
    world = run(flow(ask("a", prompt=prompt), state={"n": 3.5}))
    result = world.result.step_results["a"]
    assert (result.status, result.error_classification) == ("failed", "permanent")
    assert result.error is not None
    assert result.error.startswith("broken template: ")
    assert world.provider.requests == []


@pytest.mark.parametrize(
    ("error", "classification"),
    [
        (ProviderError("429", status_code=429), "transient"),
        (ProviderError("500", status_code=500), "transient"),
        (ProviderError("401", status_code=401), "permanent"),
        (ProviderError("dropped"), "transient"),
        (ProviderError("nobody serves it", permanent=True), "permanent"),
    ],
)
def test_a_failed_call_says_whether_another_may_help(error: ProviderError, classification: str) -> None:
    """GW-1, RT-3: by the status; what no attempt can cure is asked once."""
    world = run(flow(ask("a")), {"a": error})
    result = world.result.step_results["a"]
    assert (result.status, result.error, result.error_classification) == ("failed", str(error), classification)
    assert len(world.provider.requests) == (4 if classification == "transient" else 1)


def test_a_model_that_nobody_serves() -> None:
    """PR-1: permanent."""
    import anyio

    from agentloom.core.engine import WorkflowEngine
    from agentloom.model.workflow import build_workflow

    result = anyio.run(WorkflowEngine(build_workflow(flow(ask("a")))).run)
    assert result.step_results["a"].error == "No provider registered for model 'm'"
    assert result.step_results["a"].error_classification == "permanent"


def test_a_bug_in_a_provider_is_a_failed_step_without_a_traceback() -> None:
    """An error that nobody foresaw fails the step, and goes to the log in full."""
    world = run(flow(ask("a"), ask("b")), {"a": KeyError("boom")})
    assert world.statuses == {"a": "failed", "b": "success"}
    assert "KeyError" in world.errors["a"]
    assert "Traceback" not in world.errors["a"]


def test_steps_of_a_subworkflow_are_asked_by_their_path() -> None:
    """RP-3: recordings find `sub.x`; the template's name is the child's."""
    world = run(flow(sub("sub", steps=[ask("x")])))
    assert world.provider.requests[0].step_id == "sub.x"


def test_tokens_and_cost_add_up() -> None:
    """Totals over all steps, failed ones included."""
    world = run(flow(ask("a"), ask("b"), ask("c")), {"c": FAIL})
    assert world.result.total_tokens == 14
    assert world.result.total_cost_usd == 1.0
    assert world.events[-1].to_json()["total_tokens"] == 14


def test_thirty_calls_ten_at_a_time() -> None:
    """Ten calls are in flight at once, so that thirty of them take the time of three."""
    import anyio

    rounds = 0
    waiting = 0
    gate = anyio.Event()

    async def together(request: Request, on_delta: Any) -> str:
        nonlocal rounds, waiting, gate
        waiting += 1
        mine = gate
        if waiting == 10:
            rounds, waiting, gate = rounds + 1, 0, anyio.Event()
            mine.set()
        await mine.wait()
        return "x"

    steps = [ask(f"s{i}") for i in range(30)]
    run(flow(*steps), {step["id"]: together for step in steps})
    assert rounds == 3
