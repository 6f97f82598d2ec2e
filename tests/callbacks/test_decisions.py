"""Decisions over HTTP: a real server, real processes, one winner."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.keeping import load_run
from tests.callbacks.conftest import StartServer, done, lines_of, publish
from tests.cli.conftest import Call
from tests.cli.conftest import call as call  # a fixture

Pause = Callable[..., None]


@pytest.mark.parametrize(("path", "verdict"), [("approve", "approved"), ("reject", "rejected")])
def test_a_decision_lets_the_run_go_on(
    serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path, path: str, verdict: str
) -> None:
    """CB-1, CB-2: listed, decided with 202, resumed in the background, and gone from the list."""
    pause("r1", publish(tmp_path))
    server = serve()
    listed = server.ask("GET", "/pending")
    assert listed.json == {
        "paused_runs": [
            {
                "run_id": "r1",
                "workflow_name": "publish",
                "paused_step_id": "ok",
                "updated_at": kept.read("r1").updated_at,
            }
        ]
    }
    answer = server.ask("POST", f"/{path}/r1")
    assert (answer.status, answer.json) == (
        202,
        {"run_id": "r1", "decision": verdict, "step_id": "ok", "message": f"{verdict}; the run goes on"},
    )
    server.wait_for("run r1: success")
    assert done(tmp_path) == [verdict]
    assert kept.read("r1").status == "success"
    assert server.ask("GET", "/pending").json == {"paused_runs": []}
    assert server.ask("POST", f"/{path}/r1").status == 409
    assert server.stop() == 0


def test_of_fifty_decisions_one_is_taken(
    serve: StartServer, pause: Pause, copy: Callable[[str, str], None], tmp_path: Path
) -> None:
    """Case: fifty posts at the same moment, approvals and rejections, for each of several runs: the side effect happens once."""
    pause("r1", publish(tmp_path))
    for name in ("r2", "r3"):
        copy("r1", name)
    server = serve("--max-runs", "2")
    for name in ("r1", "r2", "r3"):
        questions = [("POST", f"/{'approve' if at % 2 else 'reject'}/{name}") for at in range(50)]
        answers = server.together(*questions)
        assert lines_of(answers) == {202: 1, 409: 49}
        taken = next(answer.json["decision"] for answer in answers if answer.status == 202)
        server.wait_for(f"run {name}: success")
        assert done(tmp_path)[-1] == taken
    assert len(done(tmp_path)) == 3


def test_two_servers_and_the_command_line_have_one_winner(
    serve: StartServer, pause: Pause, start: Any, kept: FileCheckpointer, tmp_path: Path
) -> None:
    """CB-1: the run is claimed by its journal, whoever asks."""
    pause("r1", publish(tmp_path))
    servers = [serve(), serve()]
    by_hand = start("resume", "r1", "--reject", "--checkpoint-dir", str(kept.folder))
    first, second = [server.ask("POST", "/approve/r1") for server in servers]
    code = by_hand.wait(60)
    assert sorted([first.status, second.status]) in ([202, 409], [409, 409])
    assert [first.status, second.status].count(202) + (code == 0) == 1
    for server, answer in zip(servers, (first, second), strict=True):
        if answer.status == 202:
            server.wait_for("run r1: success")
    assert len(done(tmp_path)) == 1


REFUSALS: list[tuple[str, str, str | None, dict[str, str], int, str]] = [
    ("POST", "/approve/nope", None, {}, 404, "there is no run `nope`"),
    ("POST", "/approve/", None, {}, 400, "that is no run id"),
    ("POST", "/approve/..", None, {}, 400, "that is no run id"),
    ("POST", "/approve/..%2Fx", None, {}, 400, "that is no run id"),
    ("POST", "/approve/a%20b", None, {}, 400, "that is no run id"),
    ("POST", "/approve/r1%00", None, {}, 400, "that is no run id"),
    ("POST", "/approve/r", None, {}, 404, "there is no run `r`"),  # beginnings are for people
    ("POST", "/approve/part", None, {}, 409, "run `part` waits at no gate"),
    ("POST", "/approve/broken", None, {}, 500, "it is no JSON"),
    ("POST", "/approve/r1?step_id=other", None, {}, 409, "run `r1` waits at `ok` now"),
    ("POST", "/approve/r1", '{"step_id": "other"}', {}, 409, "run `r1` waits at `ok` now"),
    ("POST", "/approve/r1", '{"step_id": 1}', {}, 400, "`step_id` must be a text"),
    ("POST", "/approve/r1", "[]", {}, 400, "the body must be a JSON object"),
    ("POST", "/approve/r1", "{", {}, 400, "the body is no JSON"),
    ("POST", "/approve/r1", "x" * 70_000, {}, 413, "the body is larger than 65536 bytes"),
    ("GET", "/approve/r1", None, {}, 405, "Method Not Allowed"),
    ("GET", "/nothing", None, {}, 404, "Not Found"),
    ("POST", "/webhook", "[]", {}, 400, "the body must be a JSON object"),
    ("POST", "/webhook", "", {}, 400, "the body is no JSON"),
    ("GET", "/pending", None, {"Host": "evil.example"}, 421, "answers to `localhost` only"),
    ("POST", "/approve/r1", None, {"Host": "evil.example:80"}, 421, "answers to `localhost` only"),
    ("POST", "/approve/r1", None, {"Origin": "https://evil.example"}, 403, "other sites are refused"),
    ("POST", "/approve/r1", None, {"Origin": "null"}, 403, "other sites are refused"),
    ("POST", "/approve/r1", None, {"Sec_Fetch_Site": "cross-site"}, 403, "other sites are refused"),
    ("POST", "/approve/r1", None, {"Sec_Fetch_Site": "same-site"}, 403, "other sites are refused"),
    ("POST", "/decide", "csrf=x&run_id=r1&decision=approved", {}, 403, "too old, or not ours"),
]


def test_what_is_refused(serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path) -> None:
    """CB-2: each with its status and a reason, and nothing happens."""
    pause("r1", publish(tmp_path))
    whole = json.loads(kept.path("r1").read_text(encoding="utf-8"))
    kept.path("part").write_text(json.dumps({**whole, "run_id": "part", "part_of": "r1"}), encoding="utf-8")
    kept.path("broken").write_text('{"schema', encoding="utf-8")
    server = serve()
    for method, path, body, headers, status, words in REFUSALS:
        answer = server.ask(method, path, body, **headers)
        assert (answer.status, words in answer.text) == (status, True), (path, headers, answer)
        if path != "/decide":
            assert list(answer.json) == ["error"]
    assert server.ask("POST", "/webhook", '{"run_id": "r1"}').json == {"status": "received"}
    assert [run["run_id"] for run in server.ask("GET", "/pending").json["paused_runs"]] == ["r1"]
    assert done(tmp_path) == []


def test_gates_whose_time_is_over_decide_themselves(
    serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path
) -> None:
    """AG-2, case: `on_timeout` holds without anybody asking, and without one the run fails; other gates go on waiting."""
    pause("late", publish(tmp_path, timeout_seconds=1, on_timeout="reject"))
    pause("fails", publish(tmp_path, timeout_seconds=1))
    pause("waits", publish(tmp_path, timeout_seconds=3600, on_timeout="approve"))
    server = serve()
    ended: set[str] = set()
    while len(ended) < 2:
        ended.add(server.wait_for(": ").split(" run ")[-1].strip())
        ended &= {"late: success", "fails: failed"}
    assert done(tmp_path) == ["rejected"]
    assert kept.read("fails").step_results["ok"]["error"] == "nobody decided within 1 s"
    assert kept.read("waits").status == "paused"


def test_gates_inside_children_and_one_after_the_other(
    serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path
) -> None:
    """SW-6, AG-1: the parent is listed, not the child's own checkpoint; each gate needs its decision."""
    child = publish(tmp_path, name="kid")
    pause(
        "r1",
        {
            "name": "two",
            "steps": [
                {"id": "s", "type": "subworkflow", "workflow_inline": child},
                {"id": "t", "type": "approval_gate"},
            ],
        },
    )
    server = serve()
    assert sorted(kept.run_ids()) == ["r1", "r1.s"]
    (first,) = server.ask("GET", "/pending").json["paused_runs"]
    assert (first["run_id"], first["paused_step_id"]) == ("r1", "s.ok")
    assert server.ask("POST", "/approve/r1.s").status == 409
    assert server.ask("POST", "/approve/r1?step_id=s.ok").json["step_id"] == "s.ok"
    server.wait_for("run r1: paused")
    assert (
        server.ask("POST", "/approve/r1?step_id=s.ok").status == 409
    )  # decided already: not a decision about the next gate
    assert server.ask("POST", "/approve/r1").json["step_id"] == "t"
    server.wait_for("run r1: success")
    assert done(tmp_path) == ["approved"]


def test_a_run_that_cannot_go_on(serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path) -> None:
    """The reason is told, nothing is lost, and it can be decided again."""
    pause("r1", publish(tmp_path))
    path = kept.path("r1")
    good = path.read_text(encoding="utf-8")
    path.write_text(good.replace('"approval_gate"', '"no_such_type"'), encoding="utf-8")
    server = serve()
    answer = server.ask("POST", "/approve/r1")
    assert answer.status == 500
    assert answer.json["error"].startswith("run `r1` can't go on: ")
    path.write_text(good, encoding="utf-8")
    assert server.ask("POST", "/approve/r1").status == 202
    server.wait_for("run r1: success")
    assert done(tmp_path) == ["approved"]


def test_files_that_somebody_wrote_by_hand(
    serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path
) -> None:
    """No file of the folder can take the server down, or hide another run; each is told once."""
    pause("r1", publish(tmp_path))
    whole = json.loads(kept.path("r1").read_text(encoding="utf-8"))
    changes: dict[str, dict[str, Any]] = {
        "a": {"workflow_definition": {"steps": ["x"]}},
        "b": {"workflow_definition": {"steps": 1}},
        "c": {"completed_steps": 1},
        "d": {"attempts": [1]},
        "e": {"paused_since": {"ok": "yesterday"}},
        "f": {"step_results": {"s": {"status": "success", "output": [[[[]]]] * 1000}}},
        "g": {"inside": {"s": {"status": "success"}}, "created_at": "x", "updated_at": ""},
        "h": {"workflow_definition": {"steps": [{"id": "ok", "timeout_seconds": 10**30, "on_timeout": []}]}},
    }
    for run_id, change in changes.items():
        kept.path(run_id).write_text(json.dumps({**whole, "run_id": run_id, **change}), encoding="utf-8")
    kept.path("i").mkdir()
    kept.path("j").write_bytes(b"\xff")
    (kept.folder / "r1.json.tmp").write_text("")
    server = serve()
    assert server.ask("GET", "/").status == 200
    assert "r1" in {run["run_id"] for run in server.ask("GET", "/pending").json["paused_runs"]}
    for run_id in [*changes, "i", "j"]:
        assert server.ask("POST", f"/approve/{run_id}").status in (202, 409, 500), run_id
    assert server.ask("POST", "/approve/r1").status == 202
    server.wait_for("run r1: success")
    assert server.stop() == 0


def slow(folder: Path) -> dict[str, Any]:
    """Return a workflow that goes on for a long time after its decision, unless there is a file `go`."""
    return publish(folder, command=f"echo begun >> {folder / 'begun'}; test -e {folder / 'go'} || sleep 60")


def begun(server: Any, folder: Path) -> None:
    """Wait until the step after the gate runs."""
    while not (folder / "begun").exists():
        assert server.process.poll() is None


def test_when_the_server_is_stopped_its_runs_can_be_resumed(
    serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path, call: Call
) -> None:
    """CB-1: a run that takes too long keeps a checkpoint; the decision isn't lost, and what was running runs again."""
    pause("r1", slow(tmp_path))
    server = serve("--grace", "0.1")
    assert server.ask("POST", "/approve/r1").status == 202
    begun(server, tmp_path)
    assert server.stop() == 0
    assert kept.read("r1").status == "cancelled"
    assert done(tmp_path) == []
    (tmp_path / "go").touch()
    again = call("resume", "r1", "--checkpoint-dir", str(kept.folder))
    assert again.code == 0
    assert done(tmp_path) == ["approved"]


def test_a_second_signal_waits_for_no_run(
    serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path
) -> None:
    """Whoever presses Ctrl-C twice means it; the run keeps a checkpoint all the same."""
    pause("r1", slow(tmp_path))
    server = serve("--grace", "3600")
    assert server.ask("POST", "/approve/r1").status == 202
    begun(server, tmp_path)
    server.process.send_signal(signal.SIGINT)
    server.wait_for("shutting down")
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(60) == 0
    assert kept.read("r1").status == "cancelled"


def test_when_the_server_is_killed_its_runs_go_on(
    serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path
) -> None:
    """CB-1: a decision that was taken is carried out, whatever becomes of the server."""
    wait = f"echo begun >> {tmp_path / 'begun'}; while ! test -e {tmp_path / 'go'}; do :; done"
    pause("r1", publish(tmp_path, command=wait))
    server = serve()
    assert server.ask("POST", "/approve/r1").status == 202
    begun(server, tmp_path)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    assert load_run(kept, "r1").status == "running"
    (tmp_path / "go").touch()
    other = serve()
    while load_run(kept, "r1").status == "running":
        assert other.process.poll() is None
    assert load_run(kept, "r1").status == "success"
    assert done(tmp_path) == ["approved"]


def test_the_token_of_the_server_is_in_no_command(serve: StartServer, pause: Pause, tmp_path: Path) -> None:
    """Runs that the server resumes don't inherit its secret; webhooks of theirs know its address."""
    pause("r1", publish(tmp_path, command=f"env > {tmp_path / 'env'}"))
    server = serve(env={"AGENTLOOM_CALLBACK_TOKEN": "a-secret-of-some-length"})
    assert server.ask("POST", "/approve/r1").status == 401
    assert server.ask("POST", "/approve/r1", Authorization="Bearer a-secret-of-some-length").status == 202
    server.wait_for("run r1: success")
    environment = (tmp_path / "env").read_text()
    assert "a-secret" not in environment
    assert f"AGENTLOOM_CALLBACK_URL=http://127.0.0.1:{server.port}" in environment


def test_old_runs_are_due_at_once(serve: StartServer, pause: Pause, kept: FileCheckpointer, tmp_path: Path) -> None:
    """AG-2: time counts from when the gate began to wait, not from when the server began."""
    pause("r1", publish(tmp_path, timeout_seconds=86_400, on_timeout="approve"))
    data = json.loads(kept.path("r1").read_text(encoding="utf-8"))
    data["paused_since"]["ok"] = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    kept.path("r1").write_text(json.dumps(data), encoding="utf-8")
    server = serve()
    server.wait_for("run r1: success")
    assert done(tmp_path) == ["approved"]
