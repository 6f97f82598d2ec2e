"""`agentloom run --checkpoint`, `runs` and `resume`, with real processes and real signals."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call

FLOW = """\
name: triage
config: {provider: mock, model: m, responses_file: rec.json}
state: {ticket: wrong, token: hunter2}
state_schema: {token: {redact: true}}
steps:
  - {id: a, type: llm_call, prompt: "a {state.ticket}", output: x}
  - {id: b, type: tool, tool_name: shell_command, depends_on: [a], output: y, tool_args: {command: "COMMAND"}}
  - {id: c, type: llm_call, prompt: "c {state.x} {state.token}", depends_on: [b], output: z}
"""
WAITS = "echo begun >> begun; sleep 60"
QUICK = "echo done >> done"
RECORDING = {"a": {"content": "A", "cost_usd": 0.1}, "c": {"content": "C", "cost_usd": 0.3}}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a recording."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rec.json").write_text(json.dumps(RECORDING), encoding="utf-8")
    return tmp_path


def begin(here: Path, start: Any) -> subprocess.Popen[bytes]:
    """Start a run that waits in its second step, and return its process when it does."""
    (here / "flow.yaml").write_text(FLOW.replace("COMMAND", WAITS), encoding="utf-8")
    child = start("run", "flow.yaml", "--checkpoint", cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in child.stdout:
        if b"b: started" in line:
            break
    return child  # type: ignore[no-any-return]


def quicken(here: Path) -> None:
    """Let the command of the kept run be quick; whoever can write there decides what a resume runs."""
    for path in (here / ".agentloom" / "checkpoints").iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace(WAITS, QUICK), encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_was_stopped_goes_on(here: Path, call: Call, start: Any, number: int) -> None:
    """Case: the paid result of step 1 is kept; SIGTERM and Ctrl-C leave a checkpoint and exit with 130, SIGKILL a journal."""
    child = begin(here, start)
    child.send_signal(number)
    assert child.wait(20) == (130 if number != signal.SIGKILL else -signal.SIGKILL)
    listed = call("runs").out.splitlines()
    status = "interrupted" if number == signal.SIGKILL else "cancelled"
    assert listed[0].split() == ["RUN", "ID", "WORKFLOW", "STATUS", "UPDATED"]
    assert listed[1].split()[1:3] == ["triage", status]
    quicken(here)
    done = call("resume", "latest", "--json", "--state", "token=again")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["status"] == "success"
    assert result["total_cost_usd"] == pytest.approx(0.4)
    assert "a: started" not in done.err
    assert (here / "done").read_text() == "done\n"
    assert call("runs").out.splitlines()[1].split()[2] == "success"
    again = call("resume", result["run_id"][:5])
    assert again.code == 0
    assert "started" not in again.out


def test_a_run_under_way_is_not_run_twice(here: Path, call: Call, start: Any) -> None:
    """It is listed as running, and a resume is refused."""
    child = begin(here, start)
    run_id = call("runs").out.splitlines()[1].split()[0]
    assert call("runs").out.splitlines()[1].split()[2] == "running"
    done = call("resume", run_id)
    assert done.code == 1
    assert done.err.endswith(f"error: run `{run_id}` is running in another process\n")
    child.kill()
    child.wait()


def test_what_is_printed_where(here: Path, call: Call) -> None:
    """CLI-3, RD-4: with `--json` standard output holds the JSON alone; redacted keys are warned about."""
    (here / "flow.yaml").write_text(FLOW.replace("COMMAND", QUICK), encoding="utf-8")
    done = call("run", "flow.yaml", "--checkpoint", "--checkpoint-dir", "kept", "--json")
    result = json.loads(done.out)
    assert f"Run ID: {result['run_id']}\n" in done.err
    assert "hunter2" not in done.out + done.err + (here / "kept" / f"{result['run_id']}.json").read_text()
    assert call("run", "flow.yaml", "--checkpoint", "--checkpoint-dir", "kept").out.startswith("Run ID: ")
    again = call("resume", result["run_id"], "--checkpoint-dir", "kept", "--json")
    assert "warning: `token` came back redacted; give the value again with `--state`\n" in again.err
    assert json.loads(again.out)["final_state"]["z"] == "C"
    whole = json.loads(call("runs", "--checkpoint-dir", "kept", "--json").out)
    assert [run["status"] for run in whole] == ["success", "success"]


def test_the_budget_is_raised(here: Path, call: Call) -> None:
    """RS-1, EX-1: over it again at once, unless the limit is."""
    (here / "flow.yaml").write_text(FLOW.replace("COMMAND", QUICK), encoding="utf-8")
    assert call("run", "flow.yaml", "--checkpoint", "--budget", "0.05").code == 1
    assert call("resume", "latest").code == 1
    done = call("resume", "latest", "--budget", "1", "--json")
    assert (done.code, json.loads(done.out)["status"]) == (0, "success")


def test_values_of_the_journal_that_are_redacted_are_named(here: Path, call: Call, start: Any) -> None:
    """RD-4: of a run that was killed, also what a finished step gave; --state gives it again."""
    secret = FLOW.replace("{token: {redact: true}}", "{token: {redact: true}, x: {redact: true}}")
    (here / "flow.yaml").write_text(secret.replace("COMMAND", WAITS), encoding="utf-8")
    child = start("run", "flow.yaml", "--checkpoint", cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert any(b"b: started" in line for line in child.stdout)
    child.kill()
    child.wait()
    quicken(here)
    done = call("resume", "latest", "--lite", "--state", "token=again")
    assert "warning: `x` came back redacted; give the value again with `--state`" in done.err
    assert done.code == 0
    (here / "flow.yaml").unlink()


def test_the_summary_of_a_resume_marks_a_step_that_ran_out_of_time(here: Path, call: Call) -> None:
    """EX-2: `[TIMEOUT]`; that of `run` has `[FAIL]`, as for every step that counts as failed."""
    flow = FLOW.replace("COMMAND", "sleep 60").replace(
        "output: y,", "output: y, timeout: 0.05, retry: {max_retries: 0},"
    )
    (here / "flow.yaml").write_text(flow, encoding="utf-8")
    ran = call("run", "flow.yaml", "--checkpoint")
    again = call("resume", "latest")
    for done, mark in ((ran, "[FAIL]"), (again, "[TIMEOUT]")):
        assert done.code == 1
        line = next(line for line in done.out.splitlines() if line.strip().startswith(mark) and " b " in line)
        assert "Step timed out after 0.05s" in line


def test_a_checkpoint_that_is_a_folder(here: Path, call: Call) -> None:
    """Case: a clear message, exit 1, nothing touched."""
    folder = here / ".agentloom" / "checkpoints" / "abc.json"
    folder.mkdir(parents=True)
    done = call("resume", "abc")
    assert (done.code, done.out) == (1, "")
    assert "can't be read: it is a folder" in done.err
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "it is no JSON, or not all of it"),
        ('{"schema_version": 99}', "written by a newer agentloom"),
        ('{"schema_version": 1, "workflow_name"', "it is no JSON"),
    ],
)
def test_checkpoints_that_cannot_be_read(here: Path, call: Call, content: str, words: str) -> None:
    """Case: a clear message, exit 1, nothing overwritten; the listing warns and goes on."""
    folder = here / ".agentloom" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "abc.json").write_text(content, encoding="utf-8")
    done = call("resume", "abc")
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert (folder / "abc.json").read_text(encoding="utf-8") == content
    listed = call("runs")
    assert (listed.code, listed.out) == (0, "No checkpoint runs found.\n")
    assert words in listed.err


@pytest.mark.parametrize("word", ["nope", "latest", "../../x", "a/b"])
def test_runs_that_are_not_there(here: Path, call: Call, word: str) -> None:
    """EX-1: exit 1, with what to do."""
    done = call("resume", word)
    assert done.code == 1
    assert "there is no run" in done.err


@pytest.mark.parametrize("word", ["", " "])
def test_no_run_is_meant_by_nothing(here: Path, call: Call, word: str) -> None:
    """`resume "$RUN" --approve` with a variable that isn't set takes no decision, though there is just one run."""
    (here / "flow.yaml").write_text(FLOW.replace("COMMAND", QUICK), encoding="utf-8")
    call("run", "flow.yaml", "--checkpoint")
    done = call("resume", word)
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: the run's id is empty; give an id, the beginning of one, or `latest`\n"


def test_one_beginning_for_two_runs(here: Path, call: Call) -> None:
    """They are named."""
    (here / "flow.yaml").write_text(FLOW.replace("COMMAND", QUICK), encoding="utf-8")
    call("run", "flow.yaml", "--checkpoint")
    folder = here / ".agentloom" / "checkpoints"
    (first,) = folder.iterdir()
    data = json.loads(first.read_text(encoding="utf-8"))
    for name in ("aaa1", "aaa2"):
        (folder / f"{name}.json").write_text(json.dumps({**data, "run_id": name}), encoding="utf-8")
    done = call("resume", "aaa")
    assert done.code == 1
    assert "`aaa` begins the ids of 2 runs: `aaa" in done.err


GATE = """\
name: publish
config: {provider: mock, model: m, responses_file: rec.json}
steps:
  - {id: ok, type: approval_gate, output: verdict}
  - {id: c, type: llm_call, prompt: "{state.verdict}", depends_on: [ok], output: said}
"""


@pytest.mark.parametrize(("option", "verdict"), [("--approve", "approved"), ("--reject", "rejected")])
def test_a_gate_is_decided(here: Path, call: Call, option: str, verdict: str) -> None:
    """CLI-1, RS-1, RS-2: a paused run exits with 0 and says how to go on; only a run that waits takes a decision. The mock reads its recording again."""
    (here / "flow.yaml").write_text(GATE, encoding="utf-8")
    done = call("run", "flow.yaml", "--checkpoint", "--checkpoint-dir", "kept")
    assert done.code == 0
    run_id = done.out.splitlines()[0].removeprefix("Run ID: ")
    assert done.out.splitlines()[-3:] == [
        "It waits at `ok`. Decide with one of:",
        f"  agentloom resume {run_id} --approve --checkpoint-dir kept",
        f"  agentloom resume {run_id} --reject --checkpoint-dir kept",
    ]
    decided = call("resume", run_id, option, "--checkpoint-dir", "kept", "--json")
    state = json.loads(decided.out)["final_state"]
    assert (decided.code, state["verdict"], state["said"]) == (0, verdict, "C")
    again = call("resume", run_id, option, "--checkpoint-dir", "kept")
    assert (again.code, again.out) == (1, "")
    assert f"doesn't wait at a gate, it is success; leave `{option}` out" in again.err


def test_two_decisions_at_once_contradict_each_other(here: Path, call: Call) -> None:
    """EX-1: exit code 2, and the gate is decided by neither."""
    (here / "flow.yaml").write_text(GATE, encoding="utf-8")
    assert call("run", "flow.yaml", "--checkpoint").code == 0
    for options in (("--approve", "--reject"), ("--reject", "--approve")):
        done = call("resume", "latest", *options)
        assert (done.code, done.out) == (2, "")
        assert "`--approve` and `--reject` contradict each other; give one of them" in done.err
    assert call("runs").out.splitlines()[1].split()[2] == "paused"


def test_no_run_is_called_latest(here: Path, call: Call) -> None:
    """`resume latest` would go on with that one for ever."""
    (here / "flow.yaml").write_text(GATE, encoding="utf-8")
    done = call("run", "flow.yaml", "--checkpoint", "--run-id", "latest")
    assert (done.code, done.out) == (2, "")
    assert "`latest` is the latest run, whatever its id" in done.err


def test_without_a_checkpoint_there_are_no_commands(here: Path, call: Call) -> None:
    """CLI-1."""
    (here / "flow.yaml").write_text(GATE, encoding="utf-8")
    done = call("run", "flow.yaml")
    assert done.code == 0
    assert "[PAUSED] publish" in done.out
    assert "resume" not in done.out
