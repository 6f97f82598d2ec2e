"""`agentloom runs show`: all that is known of one run, whatever is left of it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, break_off
from tests.wire.server import WireServer, ok

FLOW = """\
name: tea
config: {provider: mock, model: gpt-4o-mini, capture_prompts: true}
state: {topic: green tea, code: hunter2-secret}
state_schema: {code: {redact: true}}
steps:
  - {id: draft, type: llm_call, prompt: "On {state.topic} with {state.code}", system_prompt: "Be brief", output: draft}
  - id: sub
    type: subworkflow
    depends_on: [draft]
    workflow_inline:
      name: inner
      steps: [{id: check, type: llm_call, prompt: "Good?"}]
  - {id: read, type: tool, depends_on: [sub], tool_name: file_read, tool_args: {path: no.txt}, retry: {max_retries: 1, backoff_base: 0}}
  - {id: end, type: llm_call, depends_on: [read], prompt: "x"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a workflow, and a history of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTLOOM_RUNS_DIR", raising=False)
    (tmp_path / "flow.loom.yaml").write_text(FLOW, encoding="utf-8")
    return tmp_path


def shown(call: Call, *arguments: str) -> dict[str, Any]:
    done = call("runs", "show", *arguments, "--json")
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


def steps(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["step"]: step for step in run["steps"]}


def test_a_kept_run(folder: Path, call: Call) -> None:
    """Steps in the order of the file, those of children below theirs; attempts, costs, prompts without secrets."""
    call("run", "flow.loom.yaml", "--checkpoint")
    run = shown(call, "latest")
    assert (run["version"], run["workflow_name"], run["status"]) == (1, "tea", "failed")
    assert run["error"].startswith("step `read` failed")
    assert Path(run["checkpoint"]).is_file()
    assert Path(run["history"]).is_file()
    found = steps(run)
    assert list(found) == ["draft", "sub", "sub.check", "read", "end"]
    assert [step["status"] for step in found.values()] == ["success", "success", "success", "failed", "skipped"]
    assert [step["attempts"] for step in found.values()] == [1, 1, 1, 2, 0]
    assert [step["type"] for step in found.values()] == ["llm_call", "subworkflow", "llm_call", "tool", "llm_call"]
    assert found["draft"]["prompts"]["system_prompt"] == "Be brief"
    assert found["draft"]["prompts"]["prompt"].startswith("On green tea with <REDACTED:sha256=")
    assert (found["draft"]["model"], found["draft"]["provider"]) == ("gpt-4o-mini", "mock")
    text = call("runs", "show", run["run_id"][:6])
    assert text.code == 0
    assert "hunter2" not in text.out + json.dumps(run)
    for says in ("[FAIL] tea", "[OK]     sub.check", "2 attempts", "On green tea with <REDACTED", "mock/gpt-4o-mini"):
        assert says in text.out, says


def test_a_run_that_was_not_kept(folder: Path, call: Call) -> None:
    """Its record is enough, but for the prompts."""
    call("run", "flow.loom.yaml")
    run = shown(call, "latest")
    assert run["checkpoint"] is None
    found = steps(run)
    assert list(found) == ["draft", "sub", "sub.check", "read", "end"]
    assert found["read"]["attempts"] == 2
    assert found["read"]["status"] == "failed"
    assert found["draft"]["prompts"] == {}
    assert "[SKIP]   end" in call("runs", "show", "latest").out


def test_a_checkpoint_alone(folder: Path, call: Call) -> None:
    """Without its record: a run of an older version, or one with `--no-history`."""
    call("run", "flow.loom.yaml", "--checkpoint", "--no-history")
    run = shown(call, "latest")
    assert run["history"] is None
    assert run["duration_ms"] is None
    assert steps(run)["read"]["attempts"] == 2
    assert list(steps(run)) == ["draft", "sub", "sub.check", "read", "end"]


def test_a_run_that_was_killed(folder: Path, call: Call, start: Any) -> None:
    """The journal tells what had finished and what was cut off."""
    flow = FLOW.replace("provider: mock", "provider: openai")
    (folder / "flow.loom.yaml").write_text(flow, encoding="utf-8")
    with WireServer(ok, lambda exchange: exchange.held()) as server:
        break_off(start, folder, server, 2, signal.SIGKILL, "run", "flow.loom.yaml", "--checkpoint")
    run = shown(call, "latest")
    assert run["status"] == "interrupted"
    assert {name: step["status"] for name, step in steps(run).items()} == {
        "draft": "success",
        "sub": "interrupted",
        "sub.check": "interrupted",
    }
    assert run["total_cost_usd"] > 0
    assert "[CUT]    sub.check" in call("runs", "show", "latest").out


def test_which_run_is_meant(folder: Path, call: Call) -> None:
    """Ids, prefixes and `latest`, over checkpoints and history together; what there is is told."""
    none = call("runs", "show", "latest")
    assert (none.code, none.err) == (1, "error: there is no run in `.agentloom/checkpoints` or `agentloom_runs`\n")
    for name in ("abc-one", "abc-two"):
        call("run", "flow.loom.yaml", "--checkpoint", "--run-id", name)
    call("run", "flow.loom.yaml")
    assert shown(call, "latest")["checkpoint"] is None
    assert shown(call, "abc-o")["run_id"] == "abc-one"
    for word, says in (
        ("abc", "`abc` begins the ids of 2 runs: `abc-one`, `abc-two`; write more of it"),
        ("abc-onw", "did you mean `abc-one`?"),
        ("../../x", "there is no run `../../x`"),
        ("", "the run's id is empty"),
        ("zzzzzz", "`agentloom runs` and `agentloom history` list them"),
    ):
        done = call("runs", "show", word)
        assert (done.code, done.out) == (1, "")
        assert says in done.err


def test_a_checkpoint_that_cannot_be_read(folder: Path, call: Call) -> None:
    """Told, and no traceback."""
    call("run", "flow.loom.yaml", "--checkpoint", "--run-id", "broken")
    (folder / ".agentloom" / "checkpoints" / "broken.json").write_text("{")
    done = call("runs", "show", "broken")
    assert (done.code, done.out) == (1, "")
    assert "can't be read: it is no JSON" in done.err


def test_json_before_or_behind(folder: Path, call: Call) -> None:
    """`runs --json` alone still lists the checkpoints."""
    call("run", "flow.loom.yaml", "--checkpoint", "--run-id", "one")
    assert [run["run_id"] for run in json.loads(call("runs", "--json").out)] == ["one"]
    assert json.loads(call("runs", "--json", "show", "one").out) == shown(call, "one")
