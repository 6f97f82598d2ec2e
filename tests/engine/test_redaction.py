"""Redaction: what is secret, what stands for it, and everywhere it must not appear."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.definition import redacted_in_steps, without_secrets
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import StepDelta, StepFinished
from agentloom.core.loader import load_data
from agentloom.core.redaction import CYCLE, Redaction, is_sentinel, sentinel
from agentloom.providers.gateway import ProviderGateway
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow, run, sub, use

SECRET = "hunter2-very-secret"


def mark(text: str) -> str:
    return f"<REDACTED:sha256={sha256(text.encode()).hexdigest()[:16]}>"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x", mark("x")),
        (None, mark("")),
        (5, mark("5")),
        (True, mark("True")),
        (["a", None], [mark("a"), mark("")]),
        ({"k": "a", 1: ["b"]}, {"k": mark("a"), "1": [mark("b")]}),
        (mark("x"), mark("x")),
    ],
)
def test_what_stands_for_a_value(value: Any, shown: Any) -> None:
    """RD-2: the hash of its text, entry by entry, and nothing twice."""
    assert sentinel(value) == shown
    assert sentinel(shown) == shown


def test_circles_end() -> None:
    """RD-2."""
    ring: dict[str, Any] = {"a": 1}
    ring["self"] = ring
    assert sentinel(ring) == {"a": mark("1"), "self": CYCLE}
    assert Redaction(("b",)).value(ring, ("x",)) == {"a": 1, "self": CYCLE}


@pytest.mark.parametrize(
    ("pattern", "path", "secret"),
    [
        ("password", ("password",), True),
        ("password", ("user", "password"), True),
        ("user.password", ("user", "password"), True),
        ("user.*", ("user", "name"), True),
        ("*_key", ("api_key",), True),
        ("Password", ("password",), False),
        ("user", ("user", "name"), True),
        ("name", ("names",), False),
    ],
)
def test_which_keys_are_secret(pattern: str, path: tuple[str, ...], secret: bool) -> None:
    """RD-1: a pattern is held against the key and its dotted path; what lies below a secret is one."""
    assert Redaction((pattern,)).names(path) is secret


@pytest.mark.parametrize("by_environment", [False, True])
def test_a_secret_appears_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_environment: bool) -> None:
    """RD-3: not in the checkpoint, the definition, outputs, results; children inherit it. Steps get the real value."""
    schema = {} if by_environment else {"token": {"redact": True}, "login.*": {"redact": True}}
    if by_environment:
        monkeypatch.setenv("AGENTLOOM_REDACT_STATE_KEYS", "token, login.*")
    data = flow(
        ask("plain", prompt="ask {state.token}", output="answer"),
        use("login", "login", tool_args={"token": "{state.token}", "headers": {"token": SECRET}}, output="login"),
        sub(
            "s",
            steps=[ask("k", prompt="{state.token}", output="token")],
            isolated_state=True,
            input={"token": "{state.token}"},
            output="kid",
        ),
        state={"token": SECRET},
        state_schema=schema,
    )
    heard: list[str] = []

    class Tools:
        async def call(self, name: str, arguments: Any) -> Any:
            heard.append(arguments["token"])
            return {"session": SECRET, "user": SECRET}

    async def quiet(request: Any, on_delta: object) -> str:
        heard.append(request.messages[-1].content)
        return "fine"

    async def main() -> None:
        provider = Script({"plain": quiet, "s.k": quiet})
        gateway = ProviderGateway()
        gateway.register(provider)
        store = FileCheckpointer(tmp_path)
        engine = WorkflowEngine(load_data(data), gateway, Tools(), checkpointer=store, run_id="r")
        result = await engine.run()
        assert result.status == "success"
        assert SECRET not in json.dumps(result.to_dict())
        assert SECRET not in (tmp_path / "r.json").read_text(encoding="utf-8")
        assert result.final_state["token"] == mark(SECRET)
        assert result.final_state["login"]["session"] == mark(SECRET)

    run_virtual(main)
    assert heard == [f"ask {SECRET}", SECRET, SECRET] or sorted(heard) == sorted([f"ask {SECRET}", SECRET, SECRET])


def test_a_secret_that_a_child_got_under_another_key_is_not_in_its_checkpoint(tmp_path: Path) -> None:
    """RD-3: no pattern names the key there, but the value is known; the steps get the real one."""
    heard: list[str] = []

    async def echo(request: Any, on_delta: object) -> str:
        heard.append(request.messages[-1].content)
        return f"you said {SECRET}"

    async def main() -> None:
        gateway = ProviderGateway()
        gateway.register(Script({"s.k": echo}))
        child = {"isolated_state": True, "input": {"p": "{state.token}", "q": "Bearer {state.token}", "n": 3}}
        data = flow(
            sub("s", steps=[ask("k", prompt="{state.p}", output="said")], return_keys=["n"], output="kid", **child),
            config={"capture_prompts": True},
            state={"token": SECRET},
            state_schema={"token": {"redact": True}},
        )
        engine = WorkflowEngine(load_data(data), gateway, checkpointer=FileCheckpointer(tmp_path), run_id="r")
        assert (await engine.run()).status == "success"

    run_virtual(main)
    assert heard == [SECRET]
    part = (tmp_path / "r.s.json").read_text(encoding="utf-8")
    assert SECRET not in part
    kept = json.loads(part)
    assert {key: kept["state"][key] for key in ("p", "q", "n", "said")} == {
        "p": mark(SECRET),
        "q": f"Bearer {mark(SECRET)}",
        "n": 3,
        "said": f"you said {mark(SECRET)}",
    }
    assert kept["step_results"]["k"]["output"] == f"you said {mark(SECRET)}"


def test_schemas_and_agents_are_no_secrets() -> None:
    """RD-3, RS-1: a property called `token` says how a token is written, and `agent` is a key of the format; without them nothing could be resumed."""
    form = {"type": "object", "properties": {"token": {"type": "string"}}, "additionalProperties": False}
    tool = {"name": "http_request", "description": "Ask.", "parameters": form}
    shape = {"type": "json_schema", "schema": form}
    agents = {
        "low": {"name": "low", "description": "d", "system_prompt": "s", "output_schema": shape},
        "top": {"name": "top", "system_prompt": "s", "tools": [{"agent": "low"}, tool]},
    }
    steps = [ask("a", response_schema=shape), ask("b", tools=[tool]), {"id": "c", "type": "agent", "agent": "top"}]
    data = {**flow(*steps, state={"token": SECRET, "agent": SECRET}), "agents": agents}
    data["steps"][2]["input"] = "hi"
    for definition in (data, flow(sub("s", steps=steps, child={"agents": agents}))):
        clean = without_secrets(definition, Redaction(("token", "agent", "type")))
        assert SECRET not in json.dumps(clean)
        assert {**clean, "state": {}} == {**definition, "state": {}}
        load_data(clean)


@pytest.mark.parametrize(
    ("written", "stays"),
    [
        ("{state.token}", True),
        ("Bearer {state.token}", True),
        ("state.login.token", True),
        ({"old": ["{state.token}"]}, True),
        (SECRET, False),
        (f"{SECRET} {{state.who}}", False),
        ("state of the art", False),
        (5, False),
    ],
)
def test_what_only_refers_to_a_secret_is_none(written: Any, stays: bool) -> None:
    """RD-4: in arguments and inputs under a secret key; `--state` could not put it back otherwise. What is written out there is named."""
    data = flow(
        use("s", "login", tool_args={"token": written}),
        sub("k", steps=[ask("q")], isolated_state=True, input={"token": written}),
        state={"token": "{state.x}"},
    )
    clean = without_secrets(data, Redaction(("token",)))
    assert (clean["steps"][0] == data["steps"][0]) is stays
    assert (clean["steps"][1] == data["steps"][1]) is stays
    assert is_sentinel(clean["state"]["token"])
    assert redacted_in_steps(clean, []) == ([] if stays else ["s.tool_args.token", "k.input.token"])
    assert redacted_in_steps(clean, ["s", "k"]) == []


@pytest.mark.parametrize(("isolated", "named"), [(False, []), (True, ["k.workflow_inline.state.token"])])
def test_a_secret_in_the_state_of_a_child_is_named_where_nothing_else_gives_it(isolated: bool, named: Any) -> None:
    """RD-4: a child that sees its parent's state has the key from there."""
    child = sub("k", steps=[ask("q")], child={"state": {"token": SECRET}}, isolated_state=isolated)
    clean = without_secrets(flow(child, state={"token": SECRET}), Redaction(("token",)))
    assert SECRET not in json.dumps(clean)
    assert redacted_in_steps(clean, []) == named


FORM = {
    "type": "object",
    "properties": {"code": {"type": "integer"}},
    "required": ["code"],
    "additionalProperties": False,
}
QUOTED: dict[str, dict[str, Any]] = {
    "a tool's own error": use("s", "boom", tool_args={"x": "{state.token}"}),
    "a router": {"id": "s", "type": "router", "conditions": [{"expression": "int(state.token) > 1", "target": "z"}]},
    "an attachment": ask("s", attachments=[{"type": "image", "source": "/nowhere/{state.token}.png"}]),
    "a reply without its form": ask("s", output="login", response_schema={"type": "json_schema", "schema": FORM}),
    "a step of a child": sub("s", steps=[use("k", "boom", tool_args={"x": "{state.token}"})]),
}


@pytest.mark.parametrize("why", QUOTED)
def test_errors_quote_no_secrets(tmp_path: Path, why: str, caplog: pytest.LogCaptureFixture) -> None:
    """RD-3: what went wrong is kept, told and logged, each time that it is tried again, too."""
    step = {**QUOTED[why], "retry": {"max_retries": 1}}
    schema = {"token": {"redact": True}, "login.*": {"redact": True}}
    data = flow(step, ask("z", "s"), state={"token": SECRET}, state_schema=schema)
    told: list[str] = []
    journal: list[str] = []

    class Tools:
        async def call(self, name: str, arguments: Any) -> Any:
            raise ValueError(f"no luck with {arguments['x']}")

    async def hear(event: Any) -> None:
        told.append(json.dumps(event.to_json()))
        path = tmp_path / "r.journal"
        journal.append(path.read_text(encoding="utf-8") if path.exists() else "")

    async def main() -> None:
        gateway = ProviderGateway()
        gateway.register(Script({"s": json.dumps({"code": SECRET})}))
        store = FileCheckpointer(tmp_path)
        engine = WorkflowEngine(load_data(data), gateway, Tools(), checkpointer=store, run_id="r", on_event=hear)
        result = await engine.run()
        assert result.status == "failed"
        assert mark(SECRET) in str(result.error)
        whole = json.dumps(result.to_dict())
        for text in (whole, (tmp_path / "r.json").read_text(encoding="utf-8"), *told, *journal, caplog.text):
            assert SECRET not in text
        assert any(mark(SECRET) in text for text in journal)

    run_virtual(main)


def test_the_journal_has_no_secrets_either(tmp_path: Path) -> None:
    """RD-3, R7: what is written while the run goes on is redacted before."""
    data = flow(
        ask("a", prompt="x", output="token"),
        ask("b", "a"),
        state={"token": "old"},
        state_schema={"token": {"redact": True}},
    )
    seen: list[str] = []

    async def main() -> None:
        async def secret(request: Any, on_delta: object) -> str:
            return SECRET

        async def look(request: Any, on_delta: object) -> str:
            seen.append((tmp_path / "r.journal").read_text(encoding="utf-8"))
            return "b"

        gateway = ProviderGateway()
        gateway.register(Script({"a": secret, "b": look}))
        await WorkflowEngine(load_data(data), gateway, checkpointer=FileCheckpointer(tmp_path), run_id="r").run()

    run_virtual(main)
    assert SECRET not in seen[0]
    assert mark(SECRET) in seen[0]


def test_keys_that_came_back_redacted_are_found() -> None:
    """RD-4: by their paths."""
    state = {"a": mark("x"), "b": {"c": [1, mark("y")]}, "steps": {"s": {"output": mark("z")}}, "d": "<REDACTED"}
    assert Redaction().secret_keys(state) == ["a", "b.c[1]"]
    assert not is_sentinel("<REDACTED")


def test_what_is_redacted_as_a_whole_has_one_name() -> None:
    """RD-4: a thousand vectors, or a conversation, are one key to give again; beside other values each secret has its own name."""
    state = {
        "vectors": [[mark("1"), mark("2")]] * 1000,
        "talk": {"messages": [{"role": mark("user"), "content": mark("x")}], "metadata": {}, "summary": mark("")},
        "user": {"token": mark("x")},
        "people": [{"name": "Ann", "pin": mark("1")}, {"name": "Ben", "pin": mark("2")}],
        "empty": [{}],
    }
    names = ["vectors", "talk", "user.token", "people[0].pin", "people[1].pin"]
    assert Redaction().secret_keys(state) == names


@pytest.mark.parametrize("inside", [False, True])
def test_events_tell_no_secrets(inside: bool) -> None:
    """RD-3: a file of events is kept longer than a run lasts. A reply that is a secret isn't told piece by piece either."""
    steps = [
        {**ask("a", output="pw"), "stream": True},
        {**ask("b", "a", output="open"), "stream": True},
        use("c", "give", "b", output="user"),
    ]
    schema = {"pw": {"redact": True}, "user.pin": {"redact": True}}
    if inside:
        data = flow(sub("s", steps=steps, child={"state_schema": schema}))
    else:
        data = flow(*steps, state_schema=schema)
    path = "s." if inside else ""
    world = run(data, {f"{path}a": SECRET, f"{path}b": "no secret"}, {"give": lambda: {"pin": SECRET, "name": "x"}})
    assert world.result.status == "success"
    told = json.dumps([event.to_json() for event in world.events])
    assert SECRET not in told
    assert world.text_of(f"{path}a") == []
    assert world.text_of(f"{path}b") == ["no", "secret"]
    outputs = {event.step: event.output for event in world.events if isinstance(event, StepFinished)}
    assert outputs[f"{path}a"] == mark(SECRET)
    assert outputs[f"{path}c"] == {"pin": mark(SECRET), "name": "x"}


# ── keys of providers ──

KEY = "sk-test-0123456789abcdef"


def test_keys_of_providers_are_kept_and_told_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The case of keys that travel: a tool prints its environment, another fails with it, a model repeats it. Steps get the real value."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    data = flow(
        use("env", "env", output="seen.environment"),
        use("more", "env", "env", tool_args={"x": "{state.seen.environment[0]}"}, output="again"),
        ask("say", "more", prompt="{state.again}", output="said"),
        use("boom", "boom", "say", retry={"max_retries": 1}),
    )
    told: list[str] = []
    heard: list[Any] = []

    class Tools:
        async def call(self, name: str, arguments: Any) -> Any:
            heard.append(arguments.get("x"))
            if name == "boom":
                raise ValueError(f"refused with {KEY}")
            return [f"OPENAI_API_KEY={KEY}"]

    async def hear(event: Any) -> None:
        told.append(json.dumps(event.to_json()))
        path = tmp_path / "r.journal"
        told.append(path.read_text(encoding="utf-8") if path.exists() else "")

    async def main() -> None:
        gateway = ProviderGateway()
        gateway.register(Script())
        store = FileCheckpointer(tmp_path)
        engine = WorkflowEngine(load_data(data), gateway, Tools(), checkpointer=store, run_id="r", on_event=hear)
        result = await engine.run()
        assert result.status == "failed"
        assert result.final_state["again"] == ["OPENAI_API_KEY=<REDACTED:key>"]
        whole = json.dumps(result.to_dict())
        for text in (whole, (tmp_path / "r.json").read_text(encoding="utf-8"), *told, caplog.text):
            assert KEY not in text

    run_virtual(main)
    assert heard[1] == f"OPENAI_API_KEY={KEY}"


def test_a_key_hides_no_streamed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a key is set makes no reply a secret: replies with a form are told while they are written, as without one."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    world = run(flow(ask("a", prompt='{{"x":1}}', response_schema={"type": "json_object"}, output="x", stream=True)))
    assert "".join(event.text for event in world.events if isinstance(event, StepDelta)) == '{"x":1}'
