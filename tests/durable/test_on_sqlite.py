"""Durable runs in a SQLite file: gates, budgets, secrets, and who may work on the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.durable.dbos.place import Busy, FileLock, place_of
from agentloom.errors import UsageError, WorkflowError
from tests.cli.conftest import ROOT, Call, call, environment

__all__ = ["call"]

GATED = """\
name: gated
steps:
  - id: draft
    type: llm_call
    prompt: Write.
    output: draft
  - id: gate
    type: approval_gate
    depends_on: [draft]
    output: verdict
  - id: send
    type: llm_call
    depends_on: [gate]
    prompt: "Send {state.draft} {state.verdict}"
    output: sent
config:
  provider: mock
  model: gpt-4o-mini
"""


def test_a_run_waits_at_a_gate_and_goes_on(call: Call, sqlite: str, tmp_path: Path) -> None:
    """Each decision is a segment of its own; a second decision comes too late, and every command knows the run."""
    (tmp_path / "gated.loom.yaml").write_text(GATED)
    first = call("run", str(tmp_path / "gated.loom.yaml"), "--on", sqlite, "--run-id", "g1")
    assert first.code == 0
    assert f"agentloom resume g1 --approve --on {sqlite}" in first.out
    listed = call("runs", "--json", AGENTLOOM_ON=sqlite)
    assert [(run["run_id"], run["status"], run["paused_step_id"]) for run in json.loads(listed.out)] == [
        ("g1", "paused", "gate")
    ]
    done = call("resume", "g", "--approve", "--on", sqlite, "--json")
    assert done.code == 0
    result = json.loads(done.out)
    assert (result["status"], result["final_state"]["verdict"]) == ("success", "approved")
    again = call("resume", "latest", "--reject", "--on", sqlite)
    assert (again.code, again.err) == (
        1, "error: run `g1` doesn't wait at a gate, it is success; leave `--reject` out\n",
    )  # fmt: skip
    shown = json.loads(call("runs", "show", "g1", "--json", "--on", sqlite).out)
    assert [(step["step"], step["status"], step["attempts"]) for step in shown["steps"]] == [
        ("draft", "success", 1), ("gate", "success", 2), ("send", "success", 1),
    ]  # fmt: skip


def test_half_of_a_surrogate_pair(call: Call, sqlite: str, tmp_path: Path) -> None:
    """A reply or a state may end in the middle of an emoji: no UTF-8, but a text like any other, and the run gives what it gives here."""
    flow, replies = tmp_path / "gated.loom.yaml", tmp_path / "replies.json"
    flow.write_text(GATED)
    replies.write_text('{"draft": {"content": "cut \\ud83d"}, "send": {"content": "\\udc80 \\\\ud83d"}}')
    given = ("--mock-responses", str(replies), "--state", 'name="\\ud83d"', "--run-id", "g", "--on", sqlite, "--json")
    assert json.loads(call("run", str(flow), *given).out)["final_state"]["draft"] == "cut \ud83d"
    done = json.loads(call("resume", "g", "--approve", "--on", sqlite, "--json").out)
    assert done["status"] == "success"
    assert [done["final_state"][name] for name in ("name", "draft", "sent")] == [
        "\ud83d",
        "cut \ud83d",
        "\udc80 \\ud83d",
    ]


def test_a_budget_that_was_too_small_is_raised(call: Call, sqlite: str) -> None:
    """What was paid for is not paid again."""
    example = str(ROOT / "examples" / "support-triage.loom.yaml")
    stopped = call("run", example, "--on", sqlite, "--json", "--budget", "0.00001")
    assert (stopped.code, json.loads(stopped.out)["status"]) == (1, "budget_exceeded")
    raised = call("resume", "latest", "--on", sqlite, "--json", "--budget", "5")
    assert (raised.code, json.loads(raised.out)["status"]) == (0, "success")
    shown = json.loads(call("runs", "show", "latest", "--json", "--on", sqlite).out)
    assert {step["attempts"] for step in shown["steps"]} <= {0, 1}
    whole = json.loads(call("run", example, "--json").out)
    assert json.loads(raised.out)["total_cost_usd"] == pytest.approx(whole["total_cost_usd"])


def test_secrets_stay_out_of_the_file(call: Call, sqlite: str, tmp_path: Path) -> None:
    """They reach the steps of this process, and nothing of them is written; a worker elsewhere can't be given any."""
    file = tmp_path / "secret.loom.yaml"
    file.write_text(
        "name: s\nstate: {api_key: none}\nstate_schema: {api_key: {redact: true}}\nsteps:\n  - {id: r, type: router, conditions: [{expression: \"state.api_key != 'none'\", target: a}]}\n"
        "  - {id: a, type: llm_call, depends_on: [r], prompt: Hello}\nconfig: {provider: mock}\n"
    )
    done = call("run", str(file), "--on", sqlite, "--state", "api_key=hush-hush")
    assert (done.code, "a: done" in done.out) == (0, True)
    assert b"hush-hush" not in place_of(sqlite).file.read_bytes()  # type: ignore[union-attr]
    left = call("run", str(file), "--on", sqlite, "--detach", "--state", "api_key=hush-hush")
    assert left.code == 1
    assert "`state.api_key` is secret and would have to go through the database" in left.err


def test_a_secret_that_is_written_out_in_a_step(call: Call, sqlite: str, tmp_path: Path) -> None:
    """The steps of this process get it as it stands there, the file doesn't; a run for a worker elsewhere is refused."""
    file, told = tmp_path / "secret.loom.yaml", tmp_path / "told.txt"
    file.write_text(
        "name: s\nsteps:\n"
        "  - {id: b, type: subworkflow, workflow_inline: {name: c, state: {password: hush-hush}, state_schema: {password: {redact: true}},"
        " steps: [{id: w, type: tool, tool_name: file_write, tool_args: {path: told.txt, content: '{state.password}'}}]}}\n"
        "config: {provider: mock}\n"
    )
    call("run", str(file), "--on", sqlite)
    assert told.read_text() == "hush-hush"
    assert b"hush-hush" not in place_of(sqlite).file.read_bytes()  # type: ignore[union-attr]
    left = call("run", str(file), "--on", sqlite, "--detach")
    assert left.code == 1
    assert "`b.workflow_inline.state.password`" in left.err


def test_one_process_works_on_a_file(call: Call, sqlite: str, tmp_path: Path) -> None:
    """Another run is refused, with the cure; what a worker is going to do can be asked for and taken back."""
    (tmp_path / "gated.loom.yaml").write_text(GATED)
    file = place_of(sqlite).file
    assert file is not None
    held = FileLock(file, is_worker=False)
    with pytest.raises(Busy):
        FileLock(file, is_worker=True)
    refused = call("run", str(tmp_path / "gated.loom.yaml"), "--on", sqlite)
    assert refused.code == 1
    assert "works on" in refused.err
    assert "agentloom worker --on" in refused.err
    held.close()
    left = call("run", str(tmp_path / "gated.loom.yaml"), "--on", sqlite, "--detach", "--run-id", "r1")
    assert (left.code, left.out) == (0, "Run ID: r1\n")
    twice = call("run", str(tmp_path / "gated.loom.yaml"), "--on", sqlite, "--detach", "--run-id", "r1")
    assert twice.code == 2
    assert "there is a run `r1`" in twice.err
    assert call("cancel", "r1", "--on", sqlite).out == "cancelled r1\n"
    assert call("cancel", "r1", "--on", sqlite).code == 1
    went_on = call("resume", "r1", "--on", sqlite, "--json")
    assert (went_on.code, json.loads(went_on.out)["status"]) == (0, "paused")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--on", "mysql://u:pw@h/x"), "`--on mysql://u@h/x` is no database"),
        (("--detach",), "`--detach` goes with `--on`"),
        (("--on", "sqlite:///x.db", "--checkpoint"), "`--checkpoint` doesn't go with `--on`"),
        (("--on", "sqlite:///x.db", "--record", "r.json"), "`--record` doesn't go with `--on`"),
    ],
    ids=["no-database", "detached-from-nothing", "checkpoint", "record"],
)
def test_options_that_make_no_sense(call: Call, tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    """They are wrong usage, and passwords are not repeated."""
    (tmp_path / "gated.loom.yaml").write_text(GATED)
    done = call("run", str(tmp_path / "gated.loom.yaml"), *options)
    assert done.code == 2
    assert words in done.err
    assert "pw" not in done.err


def test_what_cannot_run_is_refused_as_here(call: Call, sqlite: str, tmp_path: Path) -> None:
    """A recording that is none: the worker's refusal has the words and the exit code of a local run."""
    (tmp_path / "gated.loom.yaml").write_text(GATED)
    (tmp_path / "none.json").write_text("none")
    options = ("run", str(tmp_path / "gated.loom.yaml"), "--mock-responses", str(tmp_path / "none.json"))
    local, durable = call(*options), call(*options, "--on", sqlite)
    assert durable.code == local.code == 1
    assert durable.err.splitlines()[-1] == local.err.splitlines()[-1]


def test_runs_of_a_file_that_is_not_there(call: Call, sqlite: str) -> None:
    """Looking makes no database."""
    done = call("runs", "--on", sqlite)
    assert done.code == 1
    assert "there is no database" in done.err
    assert not place_of(sqlite).file.exists()  # type: ignore[union-attr]


def test_without_dbos_the_cure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WorkflowError, match=r"pip install 'agentloom\[dbos\]'"):
        place_of("sqlite:///x.db")
    with pytest.raises(UsageError):
        place_of("nonsense")


def test_dbos_is_imported_with_on_alone(tmp_path: Path) -> None:
    """No other run pays for it."""
    (tmp_path / "gated.loom.yaml").write_text(GATED)
    probe = (
        "import sys\nfrom agentloom.cli.app import app\ntry:\n    app.main(sys.argv[1:])\nexcept SystemExit as end:\n"
        "    print(end.code, sorted({'dbos', 'sqlalchemy', 'psycopg'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "run", str(tmp_path / "gated.loom.yaml")],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0 []"
