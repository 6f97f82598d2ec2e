"""Whole workflows against servers that speak like the vendors: the step, the gateway and the client together."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data
from agentloom.core.results import WorkflowResult
from agentloom.providers.setup import gateway_for
from agentloom.tools.base import tool
from agentloom.tools.registry import ToolRegistry
from tests.engine.world import ask, flow
from tests.wire.anthropic_format import signed
from tests.wire.formats import KEY, Call, Format, Say
from tests.wire.google_format import signed as signed_call
from tests.wire.server import ANTHROPIC, GOOGLE, OLLAMA, OPENAI, WireServer, body_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
CALLS = (
    Call("1", "weather", '{"place": "Köln"}'),
    Call("2", "weather", '{"place": "nowhere"}'),
    Call("3", "unknown", "{}"),
)
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@tool("weather", "The weather of a place.")
def weather(place: str) -> str:
    if place == "nowhere":
        raise ValueError("no such place")
    return f"22 °C in {place}"


def run(data: Mapping[str, Any], environ: Mapping[str, str]) -> WorkflowResult:
    tools = ToolRegistry()
    tools.register(weather)

    async def main() -> WorkflowResult:
        document = load_data(data)
        gateway = gateway_for(str(document.view.config.provider), environ)
        try:
            return await WorkflowEngine(document, gateway, tools).run()
        finally:
            await gateway.close()

    return anyio.run(main)


def environ_of(name: str, server: WireServer) -> dict[str, str]:
    return {f"{name}_API_KEY": KEY, f"{name}_BASE_URL": server.url}


def step_of(**more: Any) -> dict[str, Any]:
    definition = {"name": "weather", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}
    thinking = {"enabled": True, "budget_tokens": 2048}
    return ask("s", prompt="How warm is it?", tools=[definition], thinking=thinking, output="out", **more)


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_on_anthropic(stream: bool) -> None:
    """Tools, thinking and an attachment: the signed thinking goes back with the results, cost and tokens add up."""
    config = {"provider": "anthropic", "model": "claude-haiku-4-5-20251001", "stream": stream}
    image = {"source": base64.b64encode(PNG).decode()}
    says = [Say("let me see", CALLS, reasoning="think hard"), Say("warm enough", reasoning="done")]
    with WireServer(format=ANTHROPIC, says=says) as server:
        result = run(flow(step_of(attachments=[image]), config=config), environ_of("ANTHROPIC", server))
    step = result.step_results["s"]
    assert (step.status, step.output, step.provider, step.attachment_count) == (
        "success",
        "warm enough",
        "anthropic",
        1,
    )
    first, second = (request.json["messages"] for request in server.requests)
    assert [block["type"] for block in first[0]["content"]] == ["image", "text"]
    assert second[1]["content"][0] == {"type": "thinking", "thinking": "think hard", "signature": signed("think hard")}
    assert [(block["tool_use_id"], block.get("is_error", False)) for block in second[2]["content"]] == [
        ("1", False),
        ("2", True),
        ("3", True),
    ]
    assert second[2]["content"][0]["content"] == "22 °C in Köln"
    assert step.prompt_metadata
    assert step.prompt_metadata["reasoning"] == "think hard\n\ndone"
    assert step.prompt_metadata["finish_reason"] == "stop"
    assert step.token_usage.reasoning_tokens == 3
    assert result.total_cost_usd == pytest.approx(
        (step.token_usage.prompt_tokens * 0.001 + step.token_usage.completion_tokens * 0.005) / 1000
    )


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3-flash"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_run_on_google(model: str, stream: bool) -> None:
    """The same, with the signature of the call."""
    config = {"provider": "google", "model": model, "stream": stream}
    says = [Say("let me see", CALLS, reasoning="think hard"), Say("warm enough")]
    with WireServer(format=GOOGLE, says=says) as server:
        result = run(flow(step_of(), config=config), environ_of("GOOGLE", server))
    step = result.step_results["s"]
    assert (step.status, step.output, step.provider) == ("success", "warm enough", "google")
    contents = server.requests[1].json["contents"]
    assert contents[1]["parts"][1]["thoughtSignature"] == signed_call("weather")
    answers = [part["functionResponse"]["response"] for part in contents[2]["parts"]]
    assert answers[0] == {"result": "22 °C in Köln"}
    assert all("error" in answer for answer in answers[1:])


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("ANTHROPIC", {"provider": "anthropic", "model": "claude-3-5-haiku-20241022"}),
        ("ANTHROPIC", {"provider": "anthropic", "model": "claude-opus-5"}),
        ("GOOGLE", {"provider": "google", "model": "gemini-2.5-flash"}),
    ],
)
def test_a_reply_that_does_not_fit_is_asked_for_again(name: str, config: Mapping[str, str]) -> None:
    """LC-5: also where the reply's first sign was written by the request."""
    says = [Say('"n": "seven"}' if "3-5" in config["model"] else '{"n": "seven"}'), Say('{"n": 7}')]
    step = ask("s", response_schema={"type": "json_schema", "schema": SCHEMA}, output="out")
    with WireServer(format=ANTHROPIC if name == "ANTHROPIC" else GOOGLE, says=says) as server:
        result = run(flow(step, config={**config, "max_retries": 1}), environ_of(name, server))
    assert result.final_state["out"] == {"n": 7}
    assert len(server.requests) == 2
    assert '{\\"n\\": \\"seven\\"}' in server.requests[1].body.decode()


def test_case_a_500_is_answered_by_the_fallback_and_a_401_by_nobody() -> None:
    """A 500 of the chosen provider tries the one that stands in for it; a 401 and a 400 are permanent, one request each, and no key shows."""
    config = {"provider": "anthropic", "model": "claude-haiku-4-5-20251001", "max_retries": 3}
    stands_in = {
        "google": {"model_aliases": {"claude-haiku-4-5-20251001": "gemini-2.5-flash"}, "fallback": True},
        "anthropic": {},
    }

    def main(environ: Mapping[str, str], settings: Mapping[str, Any]) -> WorkflowResult:
        async def inside() -> WorkflowResult:
            gateway = gateway_for("anthropic", environ, settings)
            try:
                return await WorkflowEngine(load_data(flow(ask("s"), config=config)), gateway).run()
            finally:
                await gateway.close()

        return anyio.run(inside)

    with WireServer("500", format=ANTHROPIC) as first, WireServer(format=GOOGLE) as second:
        environ = environ_of("ANTHROPIC", first) | environ_of("GOOGLE", second)
        settings = {
            name: {**table, "base_url": environ[f"{name.upper()}_BASE_URL"]} for name, table in stands_in.items()
        }
        result = main(environ, settings)
    assert (result.step_results["s"].provider, len(first.requests), len(second.requests)) == ("google", 1, 1)
    for status in (400, 401):
        refusal = body_of(json.dumps({"error": {"message": f"the key {KEY} is wrong"}}), status)
        with WireServer(refusal, format=ANTHROPIC) as server:
            step = main(environ_of("ANTHROPIC", server), {}).step_results["s"]
        assert (step.status, step.error_classification, len(server.requests)) == ("failed", "permanent", 1)
        assert step.error == f"Provider 'anthropic': API error {status}: the key <secret> is wrong"


def test_an_attachment_that_nobody_takes_fails_for_good() -> None:
    """[doc] No provider can take it: permanent, and nothing is asked."""
    sound = {"source": "data:audio/wav;base64," + base64.b64encode(b"RIFF0000WAVEfmt ").decode(), "type": "audio"}
    config = {"provider": "anthropic", "model": "claude-haiku-4-5-20251001", "max_retries": 3}
    with WireServer(format=ANTHROPIC) as server:
        result = run(flow(ask("s", attachments=[sound]), config=config), environ_of("ANTHROPIC", server))
    step = result.step_results["s"]
    assert (step.status, step.error_classification) == ("failed", "permanent")
    assert step.error == "Provider 'anthropic': takes no audio attachments"
    assert server.requests == []


EVERY = pytest.mark.parametrize(
    ("name", "form", "model"),
    [
        ("OPENAI", OPENAI, "gpt-4o-mini"),
        ("ANTHROPIC", ANTHROPIC, "claude-sonnet-4-5"),
        ("GOOGLE", GOOGLE, "gemini-2.5-flash"),
        ("OLLAMA", OLLAMA, "llama3.2"),
    ],
)


@EVERY
def test_a_conversation_that_ends_with_results_of_tools(name: str, form: Format, model: str) -> None:
    """LC-8: a program put the calls there; the step offers no tools, and results need no name. Every vendor takes it."""
    calls = [{"id": "1", "name": "weather", "arguments": {"place": "Oslo"}}, {"id": "2", "name": "weather"}]
    chat = [
        {"role": "user", "content": "How warm is it?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "5"},
        {"role": "tool", "tool_call_id": "2", "content": "no place"},
    ]
    step = {"id": "s", "type": "llm_call", "conversation": "chat", "output": "out"}
    with WireServer(format=form, says=[Say("Five degrees.")]) as server:
        data = flow(step, state={"chat": chat}, config={"provider": name.lower(), "model": model, "max_retries": 0})
        result = run(data, environ_of(name, server))
    assert (result.error, result.final_state["out"]) == (None, "Five degrees.")


FORMS = pytest.mark.parametrize("schema", [{"type": "json_schema", "schema": SCHEMA}, {"type": "json_object"}])


@EVERY
@FORMS
@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_with_tools_and_a_form(
    name: str, form: Format, model: str, schema: Mapping[str, Any], stream: bool
) -> None:
    """AN-1: where the form can't be enforced beside tools, or would keep the model from calling them, it is told in words."""
    says = [Say("", calls=(Call("1", "weather", '{"place": "Oslo"}'),)), Say('{"n": 5}')]
    agent = {"system_prompt": "Measure.", "tools": ["weather"], "output_schema": schema}
    step = {"id": "s", "type": "agent", "agent": "meter", "input": "How warm is it?", "output": "out"}
    with WireServer(format=form, says=says) as server:
        config = {"provider": name.lower(), "model": model, "max_retries": 0, "stream": stream}
        result = run(flow(step, agents={"meter": agent}, config=config), environ_of(name, server))
    assert (result.error, result.final_state.get("out")) == (None, {"n": 5})
    assert len(server.requests) == 2
    assert "JSON" in server.requests[0].body.decode() or "json_schema" in server.requests[0].body.decode()


@EVERY
def test_an_agent_with_tools_is_asked_again_for_its_form(name: str, form: Format, model: str) -> None:
    """AN-3, LC-5: the calls of its turn go along when its reply is asked for once more."""
    says = [Say("", calls=(Call("1", "weather", '{"place": "Oslo"}'),)), Say('{"n": "five"}'), Say('{"n": 5}')]
    agent = {
        "system_prompt": "Measure.",
        "tools": ["weather"],
        "output_schema": {"type": "json_schema", "schema": SCHEMA},
    }
    step = {"id": "s", "type": "agent", "agent": "meter", "input": "How warm is it?", "output": "out"}
    with WireServer(format=form, says=says) as server:
        config = {"provider": name.lower(), "model": model, "max_retries": 1}
        result = run(flow(step, agents={"meter": agent}, config=config), environ_of(name, server))
    assert (result.error, result.final_state.get("out")) == (None, {"n": 5})
    assert len(server.requests) == 3
