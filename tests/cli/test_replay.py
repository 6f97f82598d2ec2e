"""`run --record` and `replay`: what was recorded is repeated, and nothing else is taken for it."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agentloom.providers.hashes import digest
from tests.cli.conftest import ROOT, Done, break_off, environment, served_by
from tests.cli.conftest import Call as Call_
from tests.wire.files import FileServer, file
from tests.wire.formats import Call, Say
from tests.wire.server import KEY, Exchange, WireServer, ok

EXAMPLES = sorted((ROOT / "examples").glob("*.loom.yaml"))

FLOW = """\
name: tea
config: {provider: openai, model: gpt-4o-mini}
state: {topic: tea}
steps:
  - {id: draft, type: llm_call, prompt: "Write about {state.topic}.", output: draft}
  - {id: check, type: llm_call, depends_on: [draft], prompt: "Good? {state.draft}", temperature: 0.5, output: verdict}
"""

TOOLS = """\
name: tools
config: {provider: openai, model: gpt-4o-mini}
steps:
  - {id: note, type: tool, tool_name: file_write, tool_args: {path: "note.txt", content: "x"}}
  - {id: read, type: tool, depends_on: [note], tool_name: file_read, tool_args: {path: "note.txt"}, output: text}
  - {id: ask, type: llm_call, depends_on: [read], prompt: "{state.text}", output: answer}
"""


@pytest.fixture
def no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection and every look-up of a name."""

    def refuse(*arguments: Any, **more: Any) -> NoReturn:
        raise AssertionError("a replay wants to reach out")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def recorded(server: WireServer, tmp_path: Path, call: Call_) -> Any:
    """Return a function that writes a workflow and records a run of it into `r.json`."""

    def record(text: str, *arguments: str) -> Done:
        """Record, and return what became of it."""
        (tmp_path / "flow.loom.yaml").write_text(text, encoding="utf-8")
        return call(
            "run", str(tmp_path / "flow.loom.yaml"), "--json", "--record", str(tmp_path / "r.json"), *arguments,
            **served_by(server),
        )  # fmt: skip

    return record


def replay(call: Call_, folder: Path, *arguments: str, **env: str) -> Done:
    return call("replay", str(folder / "flow.loom.yaml"), "-r", str(folder / "r.json"), "--json", *arguments, **env)


def outcome(text: str) -> tuple[str, bytes, float, int, dict[str, Any]]:
    """Return what a replay has to repeat: status, state as bytes, cost, tokens, and each step's status, output and cost."""
    result = json.loads(text)
    steps = {
        name: (step["status"], step["output"], step["cost_usd"], step["token_usage"], step["model"], step["error"])
        for name, step in result["step_results"].items()
    }
    state = json.dumps(result["final_state"], ensure_ascii=True).encode()
    return result["status"], state, result["total_cost_usd"], result["total_tokens"], steps


def answering_as(recording: Mapping[str, Any]) -> Any:
    """Return a mode of the server that gives a recording's replies to the requests that they were recorded for."""
    replies = {
        tuple(entry["asked"]["messages"]): Say(
            entry["content"],
            tuple(
                Call(call["id"], call["name"], json.dumps(call["arguments"])) for call in entry.get("tool_calls", ())
            ),
        )
        for key, turns in recording.items()
        if not key.startswith("_")
        for entry in turns
    }

    async def mode(exchange: Exchange) -> None:
        said = [(message["role"], message.get("content") or "") for message in exchange.request["messages"]]
        exchange.server.says = [replies[tuple(f"{role} {digest(text, 16)}" for role, text in said)]]
        await ok(exchange)

    return mode


@pytest.mark.parametrize(
    ("path", "stream"),
    [*((path, False) for path in EXAMPLES), *((path, True) for path in EXAMPLES[::4])],
    ids=lambda value: value.name if isinstance(value, Path) else "streamed" if value else "whole",
)
def test_every_example_replays_byte_for_byte(
    path: Path, stream: bool, tmp_path: Path, call: Call_, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    """Case 2: recorded from a server, replayed without a network: the same state, the same cost."""
    assert call("run", str(path), "--record", str(tmp_path / "mock.json")).code == 0
    mode = answering_as(json.loads((tmp_path / "mock.json").read_text()))
    how = ("--json", "--record", str(tmp_path / "r.json"), "--record-tools", *(["--stream"] if stream else []))
    with WireServer(mode) as server:
        first = call("run", str(path), "-p", "openai", *how, **served_by(server))
    assert first.code == 0, first.err
    assert server.requests
    request.getfixturevalue("no_way_out")
    monkeypatch.chdir(tmp_path)
    again = call("replay", str(path), "-r", "r.json", "--json", *(["--stream"] if stream else []))
    assert again.code == 0, again.err
    assert outcome(again.out) == outcome(first.out)
    assert KEY not in (tmp_path / "r.json").read_text()


def test_a_replay_is_offline_and_free_of_keys(recorded: Any, tmp_path: Path) -> None:
    """RP-1: a real process that may open no connection; costs come from the recording."""
    import subprocess

    first = recorded(FLOW)
    hook = "import sys\ndef hook(event, args):\n    if event.startswith(('socket.connect', 'socket.getaddrinfo')):\n"
    (tmp_path / "sitecustomize.py").write_text(hook + "        raise SystemExit('network')\nsys.addaudithook(hook)\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT), str(ROOT / "lsp")])
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "replay", "flow.loom.yaml", "--recording", "r.json", "--json"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": path},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert outcome(done.stdout.decode()) == outcome(first.out)
    assert outcome(first.out)[2] > 0


def test_pieces_of_a_reply_are_replayed_as_they_came(recorded: Any, call: Call_, tmp_path: Path) -> None:
    """RP-5: streamed replies are recorded and replayed as chunks."""

    def pieces(name: str) -> list[str]:
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        return [event["text"] for line in lines if (event := json.loads(line))["event"] == "step_delta"]

    recorded(FLOW, "--stream", "--events", str(tmp_path / "one.jsonl"))
    replay(call, tmp_path, "--stream", "--events", str(tmp_path / "two.jsonl"))
    assert pieces("one.jsonl") == pieces("two.jsonl")
    assert len(pieces("one.jsonl")) > 4


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("Write about", "Sing of"), "its prompt has changed"),
        (("model: gpt-4o-mini", "model: gpt-4o"), "its `model` is `gpt-4o`, it was `gpt-4o-mini`"),
        (("draft, type", "outline, type"), "it holds no reply to it"),
    ],
)
def test_what_was_not_recorded_fails_the_step_and_says_why(
    recorded: Any, call: Call_, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    """RP-4: strict; the step is named, and it isn't tried again."""
    recorded(FLOW)
    text = FLOW.replace(*change)
    text = text.replace("depends_on: [draft]", "depends_on: [outline]") if "outline" in text else text
    (tmp_path / "flow.loom.yaml").write_text(text, encoding="utf-8")
    done = replay(call, tmp_path)
    step = "outline" if "outline" in text else "draft"
    failed = json.loads(done.out)["step_results"][step]
    assert done.code == 1
    assert f"doesn't answer step `{step}`: {why}" in failed["error"]
    assert failed["error_classification"] == "permanent"
    fallback = replay(call, tmp_path, "--allow-default-fallback")
    assert fallback.code == 0
    assert ("Mock response" in fallback.out) == ("outline" in text)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        ("", "is not valid JSON"),
        ("{}", "is of version 1, which doesn't say what was asked; record a run with `agentloom run FILE --record"),
        ('{"_version": 2}', "is empty; record a run with `agentloom run FILE --record"),
        ('{"_version": 2, "draft": "x"}', "`draft` must be an object with `content`"),
    ],
)
def test_case_an_empty_or_missing_recording_is_never_green(
    call: Call_, tmp_path: Path, content: str | None, says: str
) -> None:
    """Refused before the run, with a hint."""
    (tmp_path / "flow.loom.yaml").write_text(FLOW, encoding="utf-8")
    if content is not None:
        (tmp_path / "r.json").write_text(content)
    done = replay(call, tmp_path)
    assert (done.code, done.out) == (1, "")
    assert says in done.err


def test_the_recording_of_a_workflow_is_found(recorded: Any, call: Call_, tmp_path: Path) -> None:
    """Without `-r`: `recordings/<name>.json` beside the file; what `responses_file` names goes first."""
    first = recorded(FLOW)
    file = str(tmp_path / "flow.loom.yaml")
    missing = call("replay", file)
    assert missing.code == 1
    assert "there is no recording: looked for" in missing.err
    assert "recordings/flow.json" in missing.err
    (tmp_path / "recordings").mkdir()
    (tmp_path / "r.json").rename(tmp_path / "recordings" / "flow.json")
    assert outcome(call("replay", file, "--json").out) == outcome(first.out)
    (tmp_path / "named.json").write_text('{"_version": 2, "draft": {"content": "named"}, "check": {"content": "yes"}}')
    named = FLOW.replace("{provider: openai", "{responses_file: named.json, provider: openai")
    (tmp_path / "flow.loom.yaml").write_text(named, encoding="utf-8")
    assert json.loads(call("replay", file, "--json").out)["final_state"]["draft"] == "named"


def test_recorded_tools_are_not_run(recorded: Any, call: Call_, tmp_path: Path) -> None:
    """RP-6: name, arguments and result under `_tools`; a replay runs none, and takes no other call for them."""
    first = recorded(TOOLS, "--record-tools")
    assert json.loads((tmp_path / "r.json").read_text())["_tools"]["read"] == [
        {"name": "file_read", "arguments": {"path": "note.txt"}, "result": "x"}
    ]
    (tmp_path / "note.txt").unlink()
    again = replay(call, tmp_path)
    assert outcome(again.out) == outcome(first.out)
    assert not (tmp_path / "note.txt").exists()
    (tmp_path / "flow.loom.yaml").write_text(TOOLS.replace('content: "x"', 'content: "y"'), encoding="utf-8")
    changed = json.loads(replay(call, tmp_path).out)["step_results"]["note"]
    assert "doesn't answer step `note`: the tool `file_write` is called with other arguments" in changed["error"]
    assert changed["error_classification"] == "permanent"


def test_tools_that_were_not_recorded_run_but_reach_nowhere(
    recorded: Any, call: Call_, tmp_path: Path, server: WireServer
) -> None:
    """Without `--record-tools` a replay runs tools, but for those that use the network."""
    fetch = f'  - {{id: fetch, type: tool, tool_name: http_request, tool_args: {{url: "{server.host}/v1/models"}}}}\n'
    first = recorded(TOOLS + fetch)
    assert first.code == 0, first.err
    (tmp_path / "note.txt").unlink()
    before = len(server.requests)
    again = json.loads(replay(call, tmp_path).out)
    assert again["final_state"]["text"] == "x"
    assert (tmp_path / "note.txt").exists()
    assert (
        "it calls `http_request`, and tools were recorded without `--record-tools`"
        in (again["step_results"]["fetch"]["error"])
    )
    assert len(server.requests) == before


def test_a_tool_that_failed_fails_again(recorded: Any, call: Call_, tmp_path: Path) -> None:
    """Its error is recorded as well."""
    text = TOOLS.replace("note.txt", "no/such.txt").replace("file_write", "file_read").replace(', content: "x"', "")
    first = recorded(text.replace("type: tool,", "type: tool, retry: {max_retries: 0},"), "--record-tools")
    again = replay(call, tmp_path)
    assert (first.code, again.code) == (1, 1)
    assert outcome(again.out) == outcome(first.out)


SECRET = """\
name: secrets
config: {provider: openai, model: gpt-4o-mini}
state: {user: {name: Ann, password: hunter2-secret}}
state_schema: {password: {redact: true}, token: {redact: true}}
steps:
  - {id: make, type: llm_call, prompt: "A token for {state.user.name}", output: token}
  - {id: use, type: llm_call, depends_on: [make], prompt: "{state.token} {state.user.password}", output: answer}
  - {id: write, type: tool, depends_on: [use], tool_name: file_write,
     tool_args: {path: "note.txt", content: "pw {state.user.password}"}}
  - {id: read, type: tool, depends_on: [write], tool_name: file_read, tool_args: {path: "note.txt"}, output: note}
"""


@pytest.mark.parametrize("given", [True, False], ids=["given again", "without the secret"])
def test_secrets_are_in_no_recording_and_it_still_replays(
    tmp_path: Path, call: Call_, given: bool, server: WireServer, recorded: Any
) -> None:
    """RD-3: neither a secret key's value nor a reply that goes to one, nor a text that repeats it, is written."""
    server.reply = "the-token-42, and your password hunter2-secret"
    first = recorded(SECRET, "--record-tools", "--stream")
    assert first.code == 0, first.err
    text = (tmp_path / "r.json").read_text()
    assert "hunter2-secret" not in text
    assert "the-token-42" not in text.replace(json.loads(text)["use"][0]["content"], "")
    held = json.loads(text)
    assert held["make"][0]["content"].startswith("<REDACTED:sha256=")
    assert "password <REDACTED:sha256=" in held["use"][0]["content"] or "REDACTED" in held["use"][0]["content"]
    if not given:
        password = json.loads(first.out)["final_state"]["user"]["password"]
        (tmp_path / "flow.loom.yaml").write_text(SECRET.replace("hunter2-secret", f'"{password}"'), encoding="utf-8")
    again = replay(call, tmp_path)
    assert again.code == 0, again.out
    assert json.loads(again.out)["final_state"]["token"] == json.loads(first.out)["final_state"]["token"]


def test_options_that_contradict_each_other(call: Call_, tmp_path: Path) -> None:
    """EX-1: exit 2, and nothing is written."""
    (tmp_path / "flow.loom.yaml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "old.json").write_text('{"_version": 2}')
    file, new = str(tmp_path / "flow.loom.yaml"), str(tmp_path / "new.json")
    for arguments, says in (
        (("--record-tools",), "`--record-tools` goes with `--record`"),
        (("--record", new, "--mock-responses", str(tmp_path / "old.json")), "contradict each other"),
        (("--record", ""), "`--record` is empty"),
        (("--record", str(tmp_path / "old.json" / "x")), "can't be written"),
    ):
        done = call("run", file, *arguments)
        assert (done.code, done.out) == (2, ""), done.out
        assert says in done.err
    assert not Path(new).exists()


def test_a_file_that_is_refused_leaves_no_recording(call: Call_, tmp_path: Path) -> None:
    """The recording is opened when the run begins, not before the check."""
    (tmp_path / "flow.loom.yaml").write_text("name: x\nsteps: []\n")
    assert call("run", str(tmp_path / "flow.loom.yaml"), "--record", str(tmp_path / "r.json")).code == 1
    assert not (tmp_path / "r.json").exists()


def test_a_run_that_is_killed_has_recorded_what_it_had(tmp_path: Path, start: Any, server: WireServer) -> None:
    """RP-5: written after each call; the first reply is there although the second never came."""
    server.modes = [ok, lambda exchange: exchange.held()]
    (tmp_path / "flow.loom.yaml").write_text(FLOW, encoding="utf-8")
    break_off(start, tmp_path, server, 2, signal.SIGKILL, "run", "flow.loom.yaml", "--record", "r.json")
    held = json.loads((tmp_path / "r.json").read_text())
    assert list(held) == ["_version", "draft"]


LOOP = """\
name: loop
config: {provider: openai, model: gpt-4o-mini}
state: {chat: {messages: [], token_budget: 60, trim_policy: summarize_oldest}, words: [tea, milk]}
steps:
  - id: look
    type: llm_call
    prompt: "Read both."
    tools: [{name: file_read}]
    output: found
  - id: form
    type: llm_call
    depends_on: [look]
    prompt: "As JSON."
    response_schema: {type: json_schema, schema: {type: object, properties: {n: {type: integer}}, required: [n]}}
    output: form
  - {id: talk, type: llm_call, depends_on: [form], prompt: "Hello, this is a message of some length to be kept.", conversation: chat}
  - {id: more, type: llm_call, depends_on: [talk], prompt: "And another one, which is long as well, so it has to be cut.", conversation: chat}
  - {id: last, type: llm_call, depends_on: [more], prompt: "And another one, which is long as well, so it has to be cut.", conversation: chat}
  - {id: vectors, type: embed, depends_on: [last], inputs: words, model: text-embedding-3-small, output: vectors}
  - id: sub
    type: subworkflow
    depends_on: [vectors]
    workflow_inline:
      name: child
      config: {provider: generic_openai, model: llama-3}
      steps: [{id: look, type: llm_call, prompt: "Child"}]
"""

CALLS = (Call("a", "file_read", '{"path": "one.txt"}'), Call("b", "file_read", '{"path": "two.txt"}'))
LONG = "A reply that is long enough that a conversation of it soon is over its budget of tokens."
SAYS = (
    Say("Let me look.", CALLS),
    Say("One and two."),
    Say('{"n": "x"}'),
    Say('{"n": 3}'),
    Say(LONG),
    Say(LONG),
    Say(LONG),
    Say(LONG),
    Say(LONG),
)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_case_a_tool_loop_takes_the_same_turns(
    tmp_path: Path, call: Call_, stream: bool, request: pytest.FixtureRequest
) -> None:
    """Rounds of tools with calls side by side, replies asked for again, summaries, vectors, a child with another provider."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(name)
    text = (
        LOOP
        if not stream
        else LOOP.replace('"n": "x"', "").replace('    prompt: "As', '    stream: false\n    prompt: "As')
    )
    (tmp_path / "flow.loom.yaml").write_text(text, encoding="utf-8")
    how = ["--stream"] if stream else []
    with WireServer(says=SAYS) as server:
        first = call(
            "run", str(tmp_path / "flow.loom.yaml"), "--json", "--record", str(tmp_path / "r.json"), "--record-tools", *how,
            **served_by(server), GENERIC_OPENAI_BASE_URL=server.url, GENERIC_OPENAI_API_KEY=KEY,
        )  # fmt: skip
    assert first.code == 0, first.err
    held = json.loads((tmp_path / "r.json").read_text())
    assert [len(held[key]) for key in ("look", "form", "vectors", "sub.look")] == [2, 2, 1, 1]
    assert [call["name"] for call in held["look"][0]["tool_calls"]] == ["file_read", "file_read"]
    assert sorted(call["result"] for call in held["_tools"]["look"]) == ["one", "two"]
    assert any(key.endswith("::summarize") for key in held), list(held)
    assert held["sub.look"][0]["provider"] == "generic_openai"
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").unlink()
    request.getfixturevalue("no_way_out")
    again = replay(call, tmp_path, *how)
    assert again.code == 0, again.err
    assert outcome(again.out) == outcome(first.out)


def test_secret_parts_of_structured_replies_and_tool_calls(tmp_path: Path, call: Call_) -> None:
    """The secret key inside of JSON, in the arguments of a call, and in a name that no tool has; the rest stays, and the replay goes the same way."""
    (tmp_path / "flow.loom.yaml").write_text(
        """\
name: secrets
config: {provider: openai, model: gpt-4o-mini}
state_schema: {"*.pin": {redact: true}, content: {redact: true}}
steps:
  - id: form
    type: llm_call
    prompt: "As JSON."
    response_schema: {type: json_schema, schema: {type: object, properties: {pin: {type: string}, n: {type: integer}}, required: [pin, n]}}
    output: user
  - {id: use, type: llm_call, depends_on: [form], prompt: "{state.user.pin}", tools: [{name: file_write}], output: done}
""",
        encoding="utf-8",
    )
    write = Call("a", "file_write", json.dumps({"path": "x.txt", "content": "private words"}))
    says = (
        Say('{"pin": "0123-4567", "n": 3}'),
        Say("", (write, Call("b", "no-0123-4567", "{}"))),
        Say("Your pin is 0123-4567."),
    )
    with WireServer(says=says) as server:
        first = call(
            "run", str(tmp_path / "flow.loom.yaml"), "--json", "--record", str(tmp_path / "r.json"), "--record-tools",
            **served_by(server),
        )  # fmt: skip
    assert first.code == 0, first.err
    text = (tmp_path / "r.json").read_text()
    for secret in ("0123-4567", "private words"):
        assert secret not in text
    held = json.loads(text)
    assert json.loads(held["form"][0]["content"])["n"] == 3
    assert held["use"][1]["content"].startswith("Your pin is <REDACTED:sha256=")
    again = replay(call, tmp_path)
    assert again.code == 0, again.out
    one, two = json.loads(first.out)["final_state"], json.loads(again.out)["final_state"]
    assert one["user"] == two["user"]


def test_downloads_are_not_made_again(tmp_path: Path, call: Call_, request: pytest.FixtureRequest) -> None:
    """An attachment is known by its hash: the same request without the network; another address is a miss."""
    png = b"\x89PNG\r\n\x1a\n" + bytes(16)
    with FileServer({"/a.png?token=t0psecret": file(png, content_type="image/png")}) as files, WireServer() as server:
        url = f"{files.url}/a.png?token=t0psecret"
        text = (
            "name: see\nconfig: {provider: openai, model: gpt-4o, sandbox: {allowed_domains: [127.0.0.1]}}\nsteps:\n"
            f'  - {{id: see, type: llm_call, prompt: "What is it?", attachments: [{{type: image, source: "{url}"}}], output: it}}\n'
        )
        (tmp_path / "flow.loom.yaml").write_text(text, encoding="utf-8")
        first = call(
            "run", str(tmp_path / "flow.loom.yaml"), "--json", "--record", str(tmp_path / "r.json"),
            **served_by(server),
        )  # fmt: skip
    assert first.code == 0, first.err
    assert "t0psecret" not in (tmp_path / "r.json").read_text()
    request.getfixturevalue("no_way_out")
    assert outcome(replay(call, tmp_path).out) == outcome(first.out)
    (tmp_path / "flow.loom.yaml").write_text(text.replace("a.png", "b.png"), encoding="utf-8")
    missed = json.loads(replay(call, tmp_path).out)["step_results"]["see"]["error"]
    assert "doesn't answer step `see`: it holds no download of attachment" in missed


def test_no_webhook_is_sent(tmp_path: Path, call: Call_, server: WireServer) -> None:
    """A gate waits in a replay as well, but tells nobody."""
    text = FLOW + (
        '  - {id: gate, type: approval_gate, depends_on: [check], notify: {url: "' + server.host + '/hook"}}\n'
    )
    text = text.replace("config: {", "config: {sandbox: {allow_internal_webhook_targets: true}, ")
    (tmp_path / "flow.loom.yaml").write_text(text, encoding="utf-8")
    first = call(
        "run", str(tmp_path / "flow.loom.yaml"), "--json", "--record", str(tmp_path / "r.json"),
        **served_by(server),
    )  # fmt: skip
    assert json.loads(first.out)["status"] == "paused"
    before = len(server.requests)
    again = json.loads(replay(call, tmp_path).out)
    assert (again["status"], again["step_results"]["gate"]["webhook"]["status"]) == ("paused", "not_sent")
    assert len(server.requests) == before


def test_a_run_that_paused_is_recorded_to_its_end(
    tmp_path: Path, call: Call_, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`resume --record` goes on in the same file; the replay of both pauses, and is resumed from the recording."""
    monkeypatch.chdir(tmp_path)
    text = FLOW + "  - {id: gate, type: approval_gate, depends_on: [check]}\n"
    text += "  - {id: end, type: llm_call, depends_on: [gate], prompt: 'Bye {state.verdict}', output: bye}\n"
    (tmp_path / "flow.loom.yaml").write_text(text, encoding="utf-8")
    env = served_by(server)
    call("run", "flow.loom.yaml", "--checkpoint", "--run-id", "one", "--record", "r.json", **env)
    server.reply = "the end"
    first = call("resume", "one", "--approve", "--json", "--record", "r.json", **env)
    assert json.loads(first.out)["final_state"]["bye"] == "the end"
    assert sorted(json.loads((tmp_path / "r.json").read_text())) == ["_version", "check", "draft", "end"]
    before = len(server.requests)
    replay(call, tmp_path, "--checkpoint", "--checkpoint-dir", "again")
    again = call("resume", "latest", "--checkpoint-dir", "again", "--approve", "--json")
    assert outcome(again.out)[1:4] == outcome(first.out)[1:4]
    assert len(server.requests) == before
    assert call("resume", "one", "--record-tools").code == 2
