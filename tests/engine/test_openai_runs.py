"""Whole workflows against servers that speak like OpenAI and Ollama: the step, the gateway and the client together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.test_vendor_runs import CALLS, environ_of, run, step_of
from tests.engine.world import ask, flow
from tests.wire.formats import Call, Say, vector
from tests.wire.server import KEY, OLLAMA, WireServer

SCHEMA = {"type": "object", "properties": {"kind": {"type": "string", "enum": ["refund", "bug"]}}, "required": ["kind"]}


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_on_openai(stream: bool) -> None:
    """Parallel calls, one that fails and one of a tool that nobody knows; reasoning tokens and costs add up over the rounds."""
    config = {"provider": "openai", "model": "o4-mini", "stream": stream}
    with WireServer(says=[Say("let me see", CALLS), Say("warm enough")]) as server:
        result = run(flow(step_of(), config=config), environ_of("OPENAI", server))
    step = result.step_results["s"]
    assert (step.status, step.output, step.provider) == ("success", "warm enough", "openai")
    first, second = (request.json for request in server.requests)
    assert first["reasoning_effort"] == "low"
    turns = second["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "tool", "tool", "tool"]
    assert turns[2] == {"role": "tool", "tool_call_id": "1", "content": "22 °C in Köln"}
    assert "no such place" in turns[3]["content"]
    assert "unknown" in turns[4]["content"]
    assert step.token_usage.reasoning_tokens == 2
    assert step.cost_usd > 0


def test_arguments_that_are_no_json_are_told_to_the_model() -> None:
    """It corrects itself; the tool isn't called with what can't be read."""
    broken, good = Call("1", "weather", '{"place": "Kö'), Call("2", "weather", '{"place": "Köln"}')
    with WireServer(says=[Say("", (broken,)), Say("", (good,)), Say("warm")]) as server:
        result = run(flow(step_of(), config={"provider": "openai", "model": "o4-mini"}), environ_of("OPENAI", server))
    assert result.step_results["s"].output == "warm"
    told = server.requests[1].json["messages"][-1]["content"]
    assert "arguments are not JSON" in told


def test_a_reply_that_must_fit_a_schema_is_asked_for_again() -> None:
    """LC-5, LC-6: the parsed value in the state, the text in the result; the router reads a label."""
    step = ask("c", response_schema={"type": "json_schema", "schema": SCHEMA}, output="label")
    says = [Say('{"kind": "praise"}'), Say('{"kind": "refund"}')]
    with WireServer(says=says) as server:
        result = run(flow(step, config={"provider": "openai", "model": "gpt-4o-mini"}), environ_of("OPENAI", server))
    assert result.final_state["label"] == {"kind": "refund"}
    assert result.step_results["c"].output == '{"kind": "refund"}'
    assert server.requests[0].json["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    assert len(server.requests[1].json["messages"]) == 3


def test_a_run_with_embeddings_and_a_fallback() -> None:
    """A provider without the model's embeddings isn't asked; the vectors are of the one that answered."""
    steps = [
        {"id": "e", "type": "embed", "inputs": "docs", "output": "vectors", "model": "text-embedding-3-small"},
        ask("s", "e", prompt="{state.steps.e.output}", output="said"),
    ]
    data = flow(*steps, state={"docs": ["a", "bcd"]}, config={"provider": "openai", "model": "gpt-4o-mini"})
    with WireServer() as server:
        result = run(data, environ_of("OPENAI", server))
    assert result.final_state["vectors"] == [vector("a", 8), vector("bcd", 8)]
    assert server.requests[1].json["messages"][0]["content"] == "2 vectors × 8"
    assert result.step_results["e"].cost_usd > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_on_ollama(stream: bool) -> None:
    """Tools and thinking; for free, and found without any key."""
    config = {"provider": "ollama", "model": "qwen3", "stream": stream}
    says = [Say("", CALLS, reasoning="hm"), Say("<think>ok</think>warm enough")]
    with WireServer(key=None, format=OLLAMA, says=says) as server:
        result = run(flow(step_of(), config=config), {"OLLAMA_BASE_URL": server.url})
    step = result.step_results["s"]
    assert (step.status, step.output, step.provider, step.cost_usd) == ("success", "warm enough", "ollama", 0.0)
    turns = server.requests[1].json["messages"]
    assert turns[1]["thinking"] == "hm"
    assert turns[2] == {"role": "tool", "content": "22 °C in Köln", "tool_name": "weather"}
    assert json.dumps(step.prompt_metadata).count("hm") == 1


def test_ollama_is_the_last_resort_if_it_may() -> None:
    """PR-2: only when the environment says so; it gets the model's name as it is written."""
    config: dict[str, Any] = {"provider": "openai", "model": "gpt-4o-mini"}
    step = ask("s", retry={"max_retries": 0})
    with WireServer("500") as server, WireServer(key=None, format=OLLAMA) as last:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "OLLAMA_BASE_URL": last.url}
        assert run(flow(step, config=config), environ).status == "failed"
        assert last.requests == []
        result = run(flow(step, config=config), {**environ, "AGENTLOOM_OLLAMA_FALLBACK": "yes"})
    assert result.step_results["s"].provider == "ollama"
    assert last.requests[0].json["model"] == "gpt-4o-mini"


def test_a_model_that_ollama_does_not_have_fails_for_good() -> None:
    """One request, and the cure in the error."""
    config = {"provider": "ollama", "model": "missing:7b"}
    with WireServer(key=None, format=OLLAMA) as server:
        result = run(flow(ask("s"), config=config), {"OLLAMA_BASE_URL": server.url})
    step = result.step_results["s"]
    assert (step.status, step.error_classification, len(server.requests)) == ("failed", "permanent", 1)
    assert "run `ollama pull missing:7b`" in (step.error or "")
