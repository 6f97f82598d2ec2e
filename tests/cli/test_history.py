"""The history: a record of every run, and `agentloom history` over them."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, break_off
from tests.wire.server import WireServer, ok

FLOW = """\
name: tea
config: {provider: mock, model: gpt-4o-mini, responses_file: r.json}
steps:
  - {id: draft, type: llm_call, prompt: "x", output: draft}
  - {id: way, type: router, depends_on: [draft], conditions: [{expression: "True", target: yes_}], default: no_}
  - {id: yes_, type: llm_call, depends_on: [way], prompt: "y"}
  - {id: no_, type: llm_call, depends_on: [way], prompt: "z"}
"""
REPLIES = {
    "_version": 2,
    "draft": {"content": "d", "usage": {"total_tokens": 5}, "cost_usd": 0.25},
    "yes_": {"content": "y", "usage": {"total_tokens": 6}, "cost_usd": 0.5, "model": "gpt-4o"},
}
KEYS = {
    "_schema_version", "run_id", "timestamp", "agentloom_version", "python_version", "workflow_name", "workflow_hash", "status",
    "providers_used", "total_cost_usd", "total_tokens", "steps_executed", "duration_ms", "error", "steps",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a workflow, and a history of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTLOOM_RUNS_DIR", raising=False)
    (tmp_path / "flow.loom.yaml").write_text(FLOW, encoding="utf-8")
    (tmp_path / "r.json").write_text(json.dumps(REPLIES))
    return tmp_path


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]


def test_every_run_leaves_a_record(folder: Path, call: Call) -> None:
    """HI-1: in the working directory, for its owner alone."""
    done = call("run", "flow.loom.yaml", "--json")
    (found,) = records(folder / "agentloom_runs")
    assert set(found) == KEYS
    result = json.loads(done.out)
    assert found["run_id"] == result["run_id"]
    assert (found["_schema_version"], found["workflow_name"], found["status"]) == (1, "tea", "success")
    assert (found["total_cost_usd"], found["total_tokens"], found["steps_executed"]) == (0.75, 11, 3)
    assert found["providers_used"] == ["mock/gpt-4o-mini", "mock/gpt-4o"]
    assert found["workflow_hash"].startswith("sha256:")
    assert len(found["workflow_hash"]) == len("sha256:") + 32
    assert found["timestamp"].endswith("+00:00")
    assert {step["step"]: step["status"] for step in found["steps"]} == {
        "draft": "success",
        "way": "success",
        "yes_": "success",
        "no_": "skipped",
    }
    (path,) = (folder / "agentloom_runs").iterdir()
    assert path.name == f"{result['run_id']}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_where_the_records_go_and_how_to_have_none(folder: Path, call: Call) -> None:
    """HI-1: the variable moves them; an option switches them off; a replay leaves none."""
    call("run", "flow.loom.yaml", AGENTLOOM_RUNS_DIR="else/where")
    assert len(records(folder / "else" / "where")) == 1
    call("run", "flow.loom.yaml", "--no-history")
    call("replay", "flow.loom.yaml")
    assert not (folder / "agentloom_runs").exists()


def test_failed_paused_resumed(folder: Path, call: Call) -> None:
    """What went wrong is in the record; a resume updates the record of its run."""
    (folder / "flow.loom.yaml").write_text(
        FLOW + "  - {id: gate, type: approval_gate, depends_on: [yes_]}\n"
        "  - {id: read, type: tool, tool_name: file_read, depends_on: [gate], tool_args: {path: no.txt}, retry: {max_retries: 0}}\n"
    )
    call("run", "flow.loom.yaml", "--checkpoint")
    (paused,) = records(folder / "agentloom_runs")
    assert (paused["status"], paused["steps_executed"]) == ("paused", 4)
    call("resume", "latest", "--approve")
    (failed,) = records(folder / "agentloom_runs")
    assert (failed["run_id"], failed["status"]) == (paused["run_id"], "failed")
    assert failed["workflow_hash"] == paused["workflow_hash"]
    assert failed["error"].startswith("step `read` failed")
    assert failed["total_cost_usd"] == 0.75
    assert failed["steps_executed"] == 5
    assert {step["step"] for step in failed["steps"]} == {"draft", "way", "yes_", "no_", "gate", "read"}


def test_a_run_that_is_stopped_leaves_a_record(folder: Path, start: Any) -> None:
    """Ctrl-C: cancelled, with what was spent."""
    (folder / "flow.loom.yaml").write_text(FLOW.replace("provider: mock", "provider: openai"))
    with WireServer(ok, lambda exchange: exchange.held()) as server:
        assert break_off(start, folder, server, 2, signal.SIGINT, "run", "flow.loom.yaml") == 130
    (found,) = records(folder / "agentloom_runs")
    assert (found["status"], found["providers_used"]) == ("cancelled", ["openai/gpt-4o-mini-2024-07-18"])
    assert found["total_cost_usd"] > 0
    assert {step["step"]: step["status"] for step in found["steps"]}["yes_"] == "cancelled"


def test_a_resume_that_is_stopped_counts_what_went_before(folder: Path, call: Call, start: Any) -> None:
    """The steps and the costs of the earlier life stay in the record."""
    (folder / "flow.loom.yaml").write_text(FLOW + "  - {id: gate, type: approval_gate, depends_on: [draft]}\n"
    "  - {id: end, type: llm_call, depends_on: [gate], prompt: z}\n")  # fmt: skip
    call("run", "flow.loom.yaml", "--checkpoint")
    (before,) = records(folder / "agentloom_runs")
    with WireServer(lambda exchange: exchange.held()) as server:
        again = ("resume", "latest", "--approve", "--provider", "openai")
        assert break_off(start, folder, server, 1, signal.SIGINT, *again) == 130
    (after,) = records(folder / "agentloom_runs")
    assert (before["status"], after["status"]) == ("paused", "cancelled")
    assert after["total_cost_usd"] == before["total_cost_usd"] == 0.25
    assert {step["step"] for step in after["steps"]} == {"draft", "way", "yes_", "no_", "gate", "end"}


def test_a_record_that_cannot_be_written_fails_no_run(folder: Path, call: Call) -> None:
    """HI-1: a warning, and the run's own exit code."""
    (folder / "agentloom_runs").write_text("a file is in the way")
    done = call("run", "flow.loom.yaml", "--json")
    assert done.code == 0
    assert json.loads(done.out)["status"] == "success"
    assert "The run can't be kept in 'agentloom_runs': file exists" in done.err


def remember(folder: Path, run_id: str, **more: Any) -> None:
    """Write a record."""
    folder.mkdir(exist_ok=True)
    data = {
        "_schema_version": 1,
        "run_id": run_id,
        "timestamp": "2026-11-30T12:00:00+00:00",
        "workflow_name": "tea",
        "status": "success",
        "providers_used": ["openai/gpt-4o-mini"],
        "total_cost_usd": 0.5,
        "total_tokens": 7,
        "steps_executed": 2,
        "duration_ms": 1234.5,
        "error": None,
        **more,
    }
    (folder / f"{run_id}.json").write_text(json.dumps(data))


@pytest.fixture
def past(folder: Path) -> Path:
    """A history of five runs."""
    runs = folder / "agentloom_runs"
    remember(runs, "a")
    remember(runs, "b", timestamp="2026-11-29T23:59:59.999+00:00", workflow_name="coffee", total_cost_usd=0.0)
    remember(runs, "c", timestamp="2026-11-30T00:30:00+02:00", providers_used=["anthropic/claude-x"])  # the 29th
    remember(runs, "d", timestamp="2026-12-01T00:00:00+00:00", total_cost_usd=2.0, status="failed")
    remember(runs, "e", timestamp="2026-11-30T00:00:00+00:00", providers_used=["openai/gpt-4o", "google/gemini-y"])
    return runs


FILTERS = [
    ((), "daebc"),
    (("--workflow", "coffee"), "b"),
    (("--workflow", "t*"), "daec"),
    (("--provider", "openai"), "daeb"),
    (("--provider", "openai/gpt-4o"), "e"),
    (("--provider", "open"), ""),
    (("--since", "2026-11-30"), "dae"),
    (("--until", "2026-11-30"), "bc"),
    (("--since", "2026-11-30", "--until", "2026-12-01"), "ae"),
    (("--since", "2026-11-30T13:00:00+01:00"), "da"),
    (("--until", "2026-11-30T12:00:00Z"), "ebc"),
    (("--min-cost", "0.5"), "daec"),
    (("--max-cost", "0.5"), "aebc"),
    (("--min-cost", "0.1", "--max-cost", "1"), "aec"),
    (("--limit", "2"), "da"),
    (("--limit", "1", "--workflow", "coffee"), "b"),
]


@pytest.mark.parametrize(("arguments", "wanted"), FILTERS, ids=lambda value: " ".join(value) if value else "all")
def test_filters(past: Path, call: Call, arguments: tuple[str, ...], wanted: str) -> None:
    """HI-2: newest first; since inclusive, until exclusive; a date is midnight UTC; both bounds of money inclusive."""
    done = call("history", "--json", *arguments)
    assert done.code == 0
    assert "".join(run["run_id"] for run in json.loads(done.out)) == wanted
    text = call("history", *arguments)
    assert "".join(line.split()[1] for line in text.out.splitlines()[1:] if wanted) == wanted


def test_the_table(past: Path, call: Call) -> None:
    """HI-2: its columns; times in UTC."""
    done = call("history", "--limit", "2")
    assert done.out.splitlines() == [
        "TIMESTAMP             RUN ID  WORKFLOW  STATUS   COST USD  DUR MS",
        "2026-12-01T00:00:00Z  d       tea       failed   2.000000    1234",
        "2026-11-30T12:00:00Z  a       tea       success  0.500000    1234",
    ]


WRONG = [
    (("--limit", "0"), "--limit"),
    (("--since", "yesterday"), "`--since yesterday` is no date; write one as 2026-11-30"),
    (("--until", "2026-13-01"), "`--until 2026-13-01` is no date"),
    (("--min-cost", "-1"), "`--min-cost -1` is no sum of money"),
    (("--max-cost", "nan"), "`--max-cost nan` is no sum of money"),
    (("--min-cost", "2", "--max-cost", "1"), "`--min-cost` is above `--max-cost`"),
    (("--since", "2026-11-30", "--until", "2026-11-30"), "`--since` is not before `--until`"),
    (("--runs-dir", "nowhere"), "nowhere"),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=lambda value: " ".join(value))
def test_wrong_usage(past: Path, call: Call, arguments: tuple[str, ...], says: str) -> None:
    """Exit 2, the word in question and the cure."""
    done = call("history", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_without_any_run(folder: Path, call: Call) -> None:
    """No folder, an empty one, or none that fits: said, and no error."""
    assert call("history").out == "No runs found.\n"
    assert call("history", "--json").out == "[]\n"
    remember(folder / "agentloom_runs", "a")
    assert call("history", "--workflow", "x").out == "No runs found that fit.\n"


FOREIGN: dict[str, bytes] = {
    "cut.json": b'{"_schema_version": 1, "run_id"',
    "other.json": b'{"name": "package"}',
    "list.json": b"[]",
    "deep.json": b"[" * 200_000,
    "latin.json": b'{"x": "\xff"}',
    "newer.json": b'{"_schema_version": 2}',
    "when.json": json.dumps(
        {"_schema_version": 1, "run_id": "when", "timestamp": "now", "workflow_name": "w", "status": "s"}
    ).encode(),
    "copy.json": json.dumps(
        {"_schema_version": 1, "run_id": "a", "timestamp": "2026-11-30T12:00:00Z", "workflow_name": "w", "status": "s"}
    ).encode(),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_that_are_no_records_are_left_out(folder: Path, call: Call, name: str) -> None:
    """With a warning that names the file; the others are listed."""
    runs = folder / "agentloom_runs"
    remember(runs, "a")
    (runs / name).write_bytes(FOREIGN[name])
    (runs / "notes.txt").write_text("not looked at")
    done = call("history", "--json")
    assert [run["run_id"] for run in json.loads(done.out)] == ["a"]
    assert done.err.startswith(f"warning: `agentloom_runs/{name}` can't be read: ")
    assert done.err.count("\n") == 1
