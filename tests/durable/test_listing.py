"""Lists of runs in a database, the history of them, and deleting the old ones; and the same words for runs in files."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentloom.core.loader import load_text
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.listing import ended
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import Place, place_of
from tests.cli.conftest import ROOT, Call, call

__all__ = ["call"]

GATED = """\
name: gated
steps:
  - {id: draft, type: llm_call, prompt: Write., output: draft}
  - {id: gate, type: approval_gate, depends_on: [draft]}
config: {provider: mock, model: gpt-4o-mini}
"""
FAILS = """\
name: fails
steps:
  - id: inner
    type: subworkflow
    retry: {max_retries: 0}
    workflow_inline:
      name: c
      steps: [{id: b, type: tool, tool_name: file_read, tool_args: {path: nowhere}, retry: {max_retries: 0}}]
config: {provider: mock}
"""
TABLES = ("workflow_status", "workflow_input", "workflow_output", "operation_outputs", "streams")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTLOOM_RUNS_DIR", str(tmp_path / "history"))


def write(folder: Path) -> None:
    """Write both workflows into a folder."""
    (folder / "gated.loom.yaml").write_text(GATED)
    (folder / "fails.loom.yaml").write_text(FAILS)


def counts(file: Path) -> list[int]:
    """Return how many rows each table of a SQLite database has."""
    with closing(sqlite3.connect(file)) as session:
        return [session.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in TABLES]


def age_all(place: Place, days: int) -> None:
    """Have everything in a database happened so many days earlier."""
    columns = ("created_at", "updated_at", "completed_at", "started_at_epoch_ms")
    change = ", ".join(f"{column} = {column} - {days * 86_400_000}" for column in columns)
    if place.file is not None:
        with closing(sqlite3.connect(place.file)) as session, session:
            session.execute(f"UPDATE workflow_status SET {change}")
        return
    with psycopg.connect(place.url) as server:
        server.execute(f"UPDATE agentloom.workflow_status SET {change}".encode())


def test_a_list_tells_what_the_runs_themselves_tell(call: Call, sqlite: str, tmp_path: Path) -> None:
    """Status, workflow, gate, cost: as in the checkpoints, which needn't be read for that. `--status`, `--workflow` and `--limit` choose."""
    write(tmp_path)
    for run_id, name in (("a", "gated"), ("b", "gated"), ("c", "fails")):
        call("run", f"{name}.loom.yaml", "--run-id", run_id, "--on", sqlite)
    call("resume", "a", "--approve", "--on", sqlite)
    whole = json.loads(call("runs", "--json", "--on", sqlite).out)
    brief = json.loads(call("runs", "--brief", "--on", sqlite).out)
    told = [(run["run_id"], run["status"], run["paused_step_id"]) for run in brief]
    assert told == [("a", "success", None), ("c", "failed", None), ("b", "paused", "gate")]
    for row, run in zip(brief, whole, strict=True):
        assert {key: run[key] for key in row if key in run and key not in ("created_at", "updated_at")} == {
            key: value for key, value in row.items() if key not in ("created_at", "updated_at", "steps", "steps_done")
        }
        assert (row["steps"], row["steps_done"]) == (
            len(run["workflow_definition"]["steps"]),
            len(run["completed_steps"]),
        )
    for options, found in (
        (("--status", "failed", "--status", "paused"), ["c", "b"]),
        (("--workflow", "gat*"), ["a", "b"]),
        (("--limit", "1"), ["a"]),
        (("--workflow", "nothing"), []),
    ):
        listed = json.loads(call("runs", "--brief", *options, "--on", sqlite).out)
        assert [run["run_id"] for run in listed] == found
    lines = call("runs", "--status", "paused", "--on", sqlite).out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["b", "gated", "paused"]]
    empty = call("runs", "--status", "timeout", "--on", sqlite)
    assert empty.out == f"No runs found in {sqlite}.\n"
    assert call("runs", "--status", "timeout", "--json", "--on", sqlite).out == "[]\n"


def test_the_history_of_a_database(call: Call, sqlite: str, tmp_path: Path) -> None:
    """It has the columns and the filters of the history in files, and what it tells is the same."""
    write(tmp_path)
    triage = str(ROOT / "examples" / "support-triage.loom.yaml")
    for run_id, file in (("a", triage), ("c", "fails.loom.yaml")):
        call("run", file, "--run-id", run_id, "--on", sqlite)
        call("run", file, "--run-id", run_id)
    call("run", "gated.loom.yaml", "--run-id", "waits", "--on", sqlite, "--detach")
    here = json.loads(call("history", "--json").out)
    there = json.loads(call("history", "--json", "--on", sqlite).out)
    same = (
        "run_id", "workflow_name", "status", "providers_used", "total_cost_usd", "total_tokens", "steps_executed", "error",
        "agentloom_version",
    )  # fmt: skip
    assert [[run[key] for key in same] for run in there] == [[run[key] for key in same] for run in here]
    assert all(run["duration_ms"] > 0 for run in there)
    for options, found in (
        (("--workflow", "f*"), ["c"]),
        (("--provider", "openai"), []),
        (("--min-cost", "0.0000001"), ["a"]),
        (("--until", "2020-01-01"), []),
        (("--limit", "1"), ["c"]),
    ):
        listed = json.loads(call("history", "--json", *options, "--on", sqlite).out)
        assert [run["run_id"] for run in listed] == found
    table = call("history", "--on", sqlite).out.splitlines()
    assert table[0].split()[:4] == ["TIMESTAMP", "RUN", "ID", "WORKFLOW"]
    assert [line.split()[1] for line in table[1:]] == ["c", "a"]


def test_one_run_is_shown_as_one_in_files(call: Call, sqlite: str) -> None:
    """Also to a terminal that didn't follow it: when each step began, how long all of it took, what asked whom."""
    triage = str(ROOT / "examples" / "support-triage.loom.yaml")
    call("run", triage, "--run-id", "x", "--checkpoint")
    here = json.loads(call("runs", "show", "x", "--json").out)
    call("run", triage, "--run-id", "x", "--on", sqlite)
    there = json.loads(call("runs", "show", "x", "--json", "--on", sqlite, AGENTLOOM_RUNS_DIR="elsewhere").out)
    clocks = ("started_at", "updated_at", "duration_ms", "checkpoint", "history")

    def timeless(run: dict[str, Any]) -> dict[str, Any]:
        steps = [{key: value for key, value in step.items() if key not in clocks} for step in run["steps"]]
        return {**{key: value for key, value in run.items() if key not in clocks}, "steps": steps}

    assert timeless(there) == timeless(here)
    assert there["duration_ms"] > 0
    times = [step["started_at"] for step in there["steps"] if step["status"] == "success"]
    assert there["started_at"] <= min(times)
    assert max(times) <= there["updated_at"]
    assert (there["checkpoint"], there["history"]) == (None, None)
    assert json.loads(call("runs", "show", "x", "--checkpoint", "--on", sqlite).out)["status"] == "success"


def test_an_empty_id_means_no_run(call: Call, sqlite: str, tmp_path: Path) -> None:
    """Every id begins with it: a variable that isn't set in a script mustn't cancel or decide the only run there is."""
    write(tmp_path)
    call("run", "gated.loom.yaml", "--run-id", "only", "--on", sqlite)
    for command in (["cancel", ""], ["resume", " ", "--approve"], ["runs", "show", ""]):
        done = call(*command, "--on", sqlite)
        assert done.code == 1
        assert done.err == "error: the run's id is empty; give an id, the beginning of one, or `latest`\n"
    assert json.loads(call("runs", "show", "only", "--json", "--on", sqlite).out)["status"] == "paused"


def test_old_runs_of_a_file_are_deleted_whole(call: Call, sqlite: str, tmp_path: Path) -> None:
    """With all their segments; what waits at a gate or for a worker stays unless it is meant, and what is young."""
    write(tmp_path)
    place = place_of(sqlite)
    assert place.file is not None
    for run_id, name in (("done", "gated"), ("waits", "gated"), ("broken", "fails")):
        call("run", f"{name}.loom.yaml", "--run-id", run_id, "--on", sqlite)
    call("resume", "done", "--approve", "--on", sqlite)
    call("run", "gated.loom.yaml", "--run-id", "queued", "--on", sqlite, "--detach")
    assert counts(place.file)[0] == 5
    assert call("runs", "prune", "--older", "30d", "--on", sqlite).out == "deleted 0 runs, 0 B\n"
    age_all(place, 31)
    call("run", "fails.loom.yaml", "--run-id", "young", "--on", sqlite)
    size = place.file.stat().st_size
    dry = call("runs", "prune", "--older", "30d", "--dry-run", "--on", sqlite)
    assert [line.split()[0] for line in dry.out.splitlines()[1:3]] == ["done", "broken"]
    assert dry.out.splitlines()[3].startswith("would delete 2 runs, ")
    assert counts(place.file)[0] == 6
    gone = call("runs", "prune", "--older", "30d", "--on", sqlite)
    assert (gone.code, gone.out) == (0, dry.out.splitlines()[3].replace("would delete", "deleted") + "\n")
    assert [run["run_id"] for run in json.loads(call("runs", "--brief", "--on", sqlite).out)] == [
        "young",
        "queued",
        "waits",
    ]
    assert counts(place.file)[0] == 3
    assert place.file.stat().st_size < size
    assert call("resume", "waits", "--approve", "--on", sqlite, "--json").code == 0
    age_all(place, 31)
    call("run", "gated.loom.yaml", "--run-id", "waits2", "--on", sqlite)
    age_all(place, 31)
    meant = call("runs", "prune", "--older", "4w", "--status", "paused", "--workflow", "g*", "--on", sqlite)
    assert meant.out.startswith("deleted 1 run, ")
    call("cancel", "queued", "--on", sqlite)
    call("runs", "prune", "--older", "0m", "--on", sqlite)
    assert counts(place.file) == [0] * 5
    again = call("run", "gated.loom.yaml", "--run-id", "waits", "--on", sqlite)
    assert again.code == 0, "an id that was deleted can be given again"


def test_old_runs_in_files_are_deleted_whole(call: Call, tmp_path: Path) -> None:
    """By the same words: checkpoints, those of subworkflows too; not what waits, is young, is under way or can't be read."""
    write(tmp_path)
    for run_id, name in (("done", "gated"), ("waits", "gated"), ("broken", "fails")):
        call("run", f"{name}.loom.yaml", "--run-id", run_id, "--checkpoint")
    call("resume", "done", "--approve")
    store = tmp_path / ".agentloom" / "checkpoints"
    assert len([name for name in os.listdir(store) if name.startswith("broken")]) == 2
    for file in store.iterdir():
        data = json.loads(file.read_text())
        data["updated_at"] = "2020-01-01T00:00:00+00:00"
        file.write_text(json.dumps(data))
    call("run", "fails.loom.yaml", "--run-id", "young", "--checkpoint")
    (store / "damaged.json").write_text("{")
    dry = call("runs", "prune", "--older", "30d", "--dry-run")
    assert [line.split()[0] for line in dry.out.splitlines()[1:3]] == ["broken", "done"]
    assert sum(name.startswith(("broken", "done")) for name in os.listdir(store)) == 3
    gone = call("runs", "prune", "--older", "30d")
    assert gone.out == dry.out.splitlines()[3].replace("would delete", "deleted") + "\n"
    assert (gone.code, "damaged" in gone.err, "it stays" in gone.err) == (1, True, True)
    left = {name.partition(".")[0] for name in os.listdir(store)}
    assert left == {"waits", "young", "damaged"}
    (store / "damaged.json").unlink()
    assert call("runs", "prune", "--older", "30d", "--status", "paused").out.startswith("deleted 1 run, ")
    assert {name.partition(".")[0] for name in os.listdir(store)} == {"young"}


def test_older_than_the_calendar(call: Call, tmp_path: Path) -> None:
    """No run is so old, and that is no fault of ours."""
    write(tmp_path)
    call("run", "gated.loom.yaml", "--checkpoint")
    for span in ("999999w", "999999d"):
        done = call("runs", "prune", "--older", span, "--status", "paused")
        assert (done.code, done.out, done.err) == (0, "deleted 0 runs, 0 B\n", ""), span


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--older", "30"), "`--older 30` is no span of time; write `30d`"),
        (("--older", "d"), "is no span of time"),
        (
            ("--older", "1d", "--status", "running"),
            "runs that are under way aren't deleted; `agentloom cancel RUN` stops one",
        ),
        ((), "--older"),
    ],
    ids=["no-unit", "no-number", "running", "nothing"],
)
def test_what_makes_no_sense(call: Call, tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    """It is wrong usage, and nothing is deleted."""
    done = call("runs", "prune", *options)
    assert done.code == 2
    assert words in done.err


def fill(place: Place, first: int, number: int) -> None:
    """Put runs that have ended into a PostgreSQL database: one as it really is, and copies of its rows."""
    with closing(Archive(place, migrate=True)) as archive, psycopg.connect(place.url) as server:
        if first == 0:
            archive.put(order_for(load_text(GATED), {}, "r0"), 1, QUEUE)
            output: dict[str, Any] = {"result": None, "checkpoint": None, "refused": "x" * 500}
            archive.client.update_workflow_attributes("r0~1", ended(output), merge=True)
            for query in (
                "UPDATE agentloom.workflow_status SET status = 'SUCCESS'",
                "INSERT INTO agentloom.workflow_output (workflow_uuid, output) SELECT 'r0~1', repeat('o', 1500)",
                'INSERT INTO agentloom.streams (workflow_uuid, key, value, "offset", function_id)'
                " SELECT 'r0~1', 'events', repeat(md5(n::text), 40), n, 1 FROM generate_series(0, 4) n",
            ):
                server.execute(query.encode())
        for table in TABLES:
            columns = [
                row[0]
                for row in server.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'agentloom' AND table_name = %s",
                    (table,),
                )
            ]
            others = ", ".join(f'"{name}"' for name in columns if name != "workflow_uuid")
            shown = others.replace('"created_at"', '"created_at" + n') if table == "workflow_status" else others
            server.execute(
                f"INSERT INTO agentloom.{table} (workflow_uuid, {others}) SELECT 'r' || n || '~1', {shown} FROM agentloom.{table},"
                f" generate_series({first + 1}, {first + number}) n WHERE workflow_uuid = 'r0~1'".encode()
            )


def test_the_room_of_deleted_runs_is_used_again(call: Call, new_postgres: Callable[[], str]) -> None:
    """What is filled, deleted and filled again takes no more room on the server than before."""
    place = place_of(new_postgres())

    def size() -> int:
        with psycopg.connect(place.url) as server:
            row = server.execute("SELECT pg_database_size(current_database())").fetchone()
            assert row is not None
            return int(row[0])

    fill(place, 0, 400)
    once = size()
    for turn in range(3):
        gone = call("runs", "prune", "--older", "0m", "--workflow", "gated", "--on", place.url)
        assert gone.out.startswith("deleted 401 runs, "), gone.err
        fill(place, 0, 0)
        fill(place, 1000 * (turn + 1), 400)
    assert size() < once * 1.1
