"""Recording and replay inside the engine: agents, attempts, concurrency, secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.recorded_tools import RecordingTools, ReplayedTools
from agentloom.core.results import WorkflowResult
from agentloom.errors import ProviderError
from agentloom.model.workflow import build_workflow
from agentloom.providers.base import Request
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.mock import MockProvider
from agentloom.providers.recorder import Recorder, RecordingProvider
from agentloom.providers.recording import load_recording
from agentloom.providers.recording_file import RecordingFile
from tests.engine.replies import calls, says, turns
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, Shelf, ask, flow, sub, use


def recorded(data: Mapping[str, Any], path: Path, answers: Mapping[str, Any], tools: Any = None) -> WorkflowResult:
    """Run a workflow on a script, and record it, tools included."""
    file = RecordingFile(path)
    file.open(tools=True)
    recorder = Recorder(file, tools=True)
    gateway = ProviderGateway()
    gateway.register(RecordingProvider(Script(answers), recorder), max_rpm=None, max_tpm=None)
    shelf: Any = RecordingTools(Shelf(tools or {}), recorder)
    return run_virtual(lambda: WorkflowEngine(build_workflow(data), gateway, shelf).run())


def replayed(data: Mapping[str, Any], path: Path, state: Mapping[str, Any] | None = None) -> WorkflowResult:
    """Run it again with nothing but the recording."""
    recording = load_recording(path)
    gateway = ProviderGateway(offline=True)
    gateway.register(MockProvider(recording, strict=True), max_rpm=None, max_tpm=None)
    shelf: Any = ReplayedTools(Shelf({}), recording)
    return run_virtual(lambda: WorkflowEngine(build_workflow(data), gateway, shelf).run(state))


def same(one: WorkflowResult, two: WorkflowResult) -> None:
    assert two.status == one.status, two.error
    assert json.dumps(two.final_state) == json.dumps(one.final_state)
    assert (two.total_cost_usd, two.total_tokens) == (one.total_cost_usd, one.total_tokens)


def test_agents_that_call_agents_side_by_side(tmp_path: Path) -> None:
    """Their turns stand under the step's path and the agent's name; whose reply came first doesn't matter."""

    async def helper(request: Request, on_delta: Any) -> str:
        return f"helped with {request.messages[-1].content}"

    ask_both = says("", calls("helper", "1", input="tea"), calls("helper", "2", input="milk"), finish="tool_calls")
    data = flow(
        {"id": "s", "type": "agent", "agent": "boss", "input": "go", "output": "o", "conversation": "chat"},
        {"id": "t", "type": "agent", "agent": "boss", "input": "again", "output": "p", "conversation": "chat", "depends_on": ["s"]},
        agents={
            "boss": {"system_prompt": "Lead.", "tools": [{"agent": "helper"}], "memory": {"type": "conversation"}},
            "helper": {"system_prompt": "Help.", "description": "helps"},
        },
        state={"chat": []},
    )  # fmt: skip
    answers = {"s": turns(ask_both, "done"), "s::helper": helper, "t": turns(ask_both, "done too"), "t::helper": helper}
    first = recorded(data, tmp_path / "r.json", answers)
    assert first.status == "success", first.error
    held = json.loads((tmp_path / "r.json").read_text())
    assert {key: len(turn) for key, turn in held.items() if not key.startswith("_")} == {
        "s": 2,
        "s::helper": 2,
        "t": 2,
        "t::helper": 2,
    }
    same(first, replayed(data, tmp_path / "r.json"))
    held["s::helper"].reverse()
    (tmp_path / "r.json").write_text(json.dumps(held))
    same(first, replayed(data, tmp_path / "r.json"))


def test_attempts_that_failed_are_not_replayed(tmp_path: Path) -> None:
    """A replay goes the way that led to the result: of steps, and of children that ran twice."""
    bad = ProviderError("Provider 'mock': no", provider="mock")
    data = flow(
        ask("a", retry={"max_retries": 2, "backoff_base": 0}),
        sub("kid", "a", steps=[ask("x"), use("t", "flaky", "x", retry={"max_retries": 0})], retry={"max_retries": 1}),
        ask("b", "kid"),
    )
    times = iter([RuntimeError("not yet"), None])

    def flaky() -> str:
        error = next(times)
        if error is not None:
            raise error
        return "ok"

    first = recorded(
        data, tmp_path / "r.json", {"a": turns(bad, bad, "third"), "kid.x": turns("one", "two")}, {"flaky": flaky}
    )
    assert first.status == "success", first.error
    held = json.loads((tmp_path / "r.json").read_text())
    assert [entry["content"] for key in ("a", "kid.x") for entry in held[key]] == ["third", "two"]
    assert held["_tools"] == {"kid.t": [{"name": "flaky", "arguments": {}, "result": "ok"}]}
    again = replayed(data, tmp_path / "r.json")
    assert again.final_state == first.final_state
    assert [result.attempts for result in again.step_results.values()] == [1, 1, 1]


def test_many_at_once(tmp_path: Path) -> None:
    """Two hundred steps at the same time into one file, each found again."""
    data = flow(*(ask(f"s{at}") for at in range(200)), config={"max_concurrent_steps": 200})
    first = recorded(data, tmp_path / "r.json", {})
    assert len(json.loads((tmp_path / "r.json").read_text())) == 202
    same(first, replayed(data, tmp_path / "r.json"))


@pytest.mark.parametrize("given", ["as it was", "not at all"])
def test_a_secret_conversation(tmp_path: Path, given: str) -> None:
    """A conversation under a secret key: what the model says in it is recorded as a hash, and the next turn still fits."""
    data = flow(
        {"id": "a", "type": "llm_call", "prompt": "Hello {state.code}", "conversation": "chat"},
        {"id": "b", "type": "llm_call", "prompt": "And?", "conversation": "chat", "depends_on": ["a"]},
        ask("c", "b"),
        state={"chat": [], "code": "4711-0815"},
        state_schema={"chat": {"redact": True}, "code": {"redact": True}},
    )
    first = recorded(data, tmp_path / "r.json", {"a": "a private reply", "b": "another one", "c": "4711-0815 it is"})
    assert first.status == "success", first.error
    text = (tmp_path / "r.json").read_text()
    for secret in ("private", "another", "4711"):
        assert secret not in text
    if given == "not at all":
        data["state"] = {"chat": [], "code": first.final_state["code"]}
    again = replayed(data, tmp_path / "r.json")
    assert again.status == "success", again.error
    assert again.total_cost_usd == first.total_cost_usd


def test_what_a_secret_tool_gives(tmp_path: Path) -> None:
    """Its result goes to a secret key: recorded as hashes, in every place; what reads it goes on with those."""
    data = flow(
        use("t", "login", output="session"),
        use("u", "echo", "t", tool_args={"text": "state.session.token", "n": 1}),
        ask("c", "u", prompt="Use {state.session.token}", output="o"),
        state_schema={"session": {"redact": True}},
    )
    tools = {"login": lambda: {"token": "tok-123456", "n": 7}, "echo": lambda **arguments: arguments["text"]}
    first = recorded(data, tmp_path / "r.json", {"c": "I used tok-123456"}, tools)
    assert first.status == "success", first.error
    assert "tok-123456" not in (tmp_path / "r.json").read_text()
    again = replayed(data, tmp_path / "r.json")
    assert again.status == "success", again.error
    assert again.final_state["session"] == first.final_state["session"]


def test_secret_vectors_are_not_recorded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing can stand for them: the replay says that they aren't there."""
    data = flow(
        {"id": "e", "type": "embed", "inputs": "words", "output": "private"},
        state={"words": ["a", "b"]},
        state_schema={"private": {"redact": True}},
    )
    file = RecordingFile(tmp_path / "r.json")
    file.open()
    gateway = ProviderGateway()
    gateway.register(RecordingProvider(MockProvider(), Recorder(file)))
    first = run_virtual(lambda: WorkflowEngine(build_workflow(data), gateway).run())
    assert first.status == "success", first.error
    assert list(json.loads((tmp_path / "r.json").read_text())) == ["_version"]
    assert "Step 'e' writes its vectors to a secret key: they are not recorded" in caplog.messages
    assert "doesn't answer step `e`: it holds no reply to it" in str(replayed(data, tmp_path / "r.json").error)
