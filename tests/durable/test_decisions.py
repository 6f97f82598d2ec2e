"""Decisions about runs in a database, over HTTP: real servers and workers, one winner, and gates whose time is over."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from agentloom.core.keeping.waiting import paused_of
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.clock import Clock
from agentloom.durable.dbos.gates import Timekeeper, waiting
from agentloom.durable.dbos.place import is_held, place_of
from tests.callbacks.conftest import lines_of
from tests.cli.conftest import Call
from tests.cli.conftest import call as call
from tests.durable.crew import Workers
from tests.durable.postgres import Server
from tests.durable.waiting import Serve, both, pause, put, timed, until
from tests.durable.waiting import archive as archive
from tests.durable.waiting import serve as serve
from tests.durable.waiting import start as start

TWO = """\
name: two
steps:
  - {id: draft, type: llm_call, prompt: Write., output: draft}
  - id: sub
    type: subworkflow
    depends_on: [draft]
    output: inner
    workflow_inline:
      name: child
      steps:
        - {id: before, type: llm_call, prompt: Write., output: text}
        - {id: gate, type: approval_gate, depends_on: [before], output: verdict}
  - {id: last, type: approval_gate, depends_on: [sub], output: verdict}
  - {id: send, type: llm_call, depends_on: [last], prompt: "{state.verdict}", output: sent}
config: {provider: mock}
"""


def test_a_decision_while_nobody_works(workers: Workers, archive: Archive, server: Server, serve: Serve) -> None:
    """Two gates, one of them in a child; workers killed, PostgreSQL stopped as if its machine lost power: a decision that got its 202 is kept."""
    put(archive, TWO, "r")
    workers.begin(1)
    until(archive, "r", "paused")
    workers.end()
    page = serve(workers.url)
    [listed] = page.ask("GET", "/pending").json["paused_runs"]
    assert (listed["run_id"], listed["workflow_name"], listed["paused_step_id"]) == ("r", "two", "sub.gate")
    shown = page.ask("GET", "/").text
    assert "Approve two, run r" in shown
    assert page.ask("POST", "/approve/r?step_id=last").status == 409
    assert page.ask("POST", "/approve/nope").status == 404
    server.stop("immediate")
    assert page.ask("POST", "/approve/r").status == 503
    assert page.ask("GET", "/pending").status == 503
    assert page.ask("GET", "/").status == 503
    server.start()
    answer = page.ask("POST", "/approve/r")
    while answer.status == 503:
        answer = page.ask("POST", "/approve/r")
    assert (answer.status, answer.json) == (
        202, {"run_id": "r", "decision": "approved", "step_id": "sub.gate", "message": "approved; the run goes on"},
    )  # fmt: skip
    assert f"`agentloom worker --on {workers.url}`" in page.wait_for("no worker is running")
    server.stop("immediate")
    server.start()
    with Archive(place_of(workers.url)) as again:
        assert again.find("r").data.status == "queued"
        workers.begin(1)
        assert until(again, "r", "paused").paused_step_id == "last"
        [waits] = page.ask("GET", "/pending").json["paused_runs"]
        assert waits["paused_step_id"] == "last"
        assert page.ask("POST", "/reject/r").status == 202
        data = until(again, "r", "success")
    assert (data.state["inner"]["verdict"], data.state["verdict"]) == ("approved", "rejected")
    assert page.ask("GET", "/pending").json == {"paused_runs": []}
    assert page.ask("POST", "/reject/r").status == 409
    assert page.stop() == 0


def test_two_servers_and_fifty_decisions(workers: Workers, archive: Archive, serve: Serve) -> None:
    """One is taken of those that come at the same moment, wherever they come to."""
    put(archive, timed("reject", 3600), "r")
    workers.begin(1)
    until(archive, "r", "paused")
    pages = [serve(workers.url), serve(workers.url)]
    answers = both(pages, [("POST", f"/{'approve' if at // 2 % 2 else 'reject'}/r") for at in range(50)])
    assert lines_of(answers) == {202: 1, 409: 49}
    [taken] = [answer.json["decision"] for answer in answers if answer.status == 202]
    assert until(archive, "r", "success").state["verdict"] == taken
    assert waiting(archive) == waiting(archive, timed=True) == {}


def test_time_is_over_with_nobody_but_a_worker_there(workers: Workers, archive: Archive, call: Call) -> None:
    """Each takes its `on_timeout`, or fails; one that was decided before takes that, and one that was cancelled nothing."""
    ends = {"approve": "approved", "reject": "rejected", None: None}
    put(archive, timed("reject", 3600), "waits", "taken", "stopped")
    workers.begin(1)
    for name in ("waits", "taken", "stopped"):
        until(archive, name, "paused")
    shown = json.loads(call("runs", "show", "waits", "--json", "--on", workers.url).out)
    assert shown["status"] == "paused"
    assert call("cancel", "stopped", "--on", workers.url).code == 0
    assert call("cancel", "stopped", "--on", workers.url).code == 1
    assert call("resume", "taken", "--approve", "--on", workers.url).code == 0
    for then in ends:
        put(archive, timed(then), str(then))
    for then, verdict in ends.items():
        data = until(archive, str(then), "success", "failed")
        if verdict is None:
            assert data.status == "failed"
            assert data.step_results["gate"]["error"] == "nobody decided within 1 s"
        else:
            assert (data.status, data.state["verdict"]) == ("success", verdict)
    listed = {run["run_id"]: run["status"] for run in json.loads(call("runs", "--json", "--on", workers.url).out)}
    assert listed == {
        "waits": "paused", "taken": "success", "stopped": "cancelled", "approve": "success", "reject": "success", "None": "failed",
    }  # fmt: skip
    assert archive.find("taken").data.state["verdict"] == "approved"
    assert set(waiting(archive)) == {"waits~1"}
    resumed = call("resume", "stopped", "--on", workers.url, "--json")
    assert (resumed.code, json.loads(resumed.out)["status"]) == (0, "paused")


def test_the_time_is_the_databases(workers: Workers, archive: Archive) -> None:
    """A gate is over by that clock alone, and once, whoever looks."""
    put(archive, timed("approve", 3600), "r")
    workers.begin(1)
    due = paused_of(until(archive, "r", "paused")).deadline
    workers.end()
    assert due is not None
    for seconds, ids in ((-1, {"r~1"}), (0, {"r~1", "r~2"}), (7200, {"r~1", "r~2"})):
        clock = Clock()
        clock.set(due + timedelta(seconds=seconds))
        for _ in range(2):
            Timekeeper(archive, clock).look()
        listed = archive.client.list_workflows(load_input=False, load_output=False)
        assert {status.workflow_id for status in listed} == ids
    # This machine's clock says that there is an hour left, and so does the database's: the gate waits again, and for no longer.
    workers.begin(1)
    data = until(archive, "r", "paused")
    assert archive.find("r").segment == "r~2"
    assert paused_of(data).deadline == due


def test_a_file_gets_a_worker(call: Call, serve: Serve, sqlite: str, tmp_path: Path) -> None:
    """With a server over a SQLite file nothing else has to be started: runs go on, and others leave theirs to its worker, which ends with it."""
    file = tmp_path / "timed.loom.yaml"
    file.write_text(timed("reject", 3600))
    assert call("run", str(file), "--run-id", "r", "--on", sqlite).code == 0
    page = serve(sqlite)
    [listed] = page.ask("GET", "/pending").json["paused_runs"]
    assert listed["run_id"] == "r"
    answers = page.together(*[("POST", "/approve/r")] * 10)
    assert lines_of(answers) == {202: 1, 409: 9}
    place = place_of(sqlite)
    with Archive(place) as archive:
        assert until(archive, "r", "success").state["verdict"] == "approved"
        file.write_text(timed("reject", 1))
        left = call("run", str(file), "--run-id", "s", "--on", sqlite, "--json")
        assert json.loads(left.out)["status"] == "paused"
        assert until(archive, "s", "success").state["verdict"] == "rejected"
    page.process.kill()
    assert place.file is not None
    while is_held(place.file):
        pause.wait(0.05)


def test_a_server_over_nothing(call: Call, tmp_path: Path) -> None:
    """What can't be is said in a line."""
    refused = call("callback-server", "--on", "postgresql://postgres@127.0.0.1:9/none")
    assert refused.code == 1
    assert "can't be used" in refused.err
    wrong = call("callback-server", "--on", f"sqlite:///{tmp_path}/x.db", "--checkpoint-dir", "x")
    assert (wrong.code, wrong.err) == (2, "error: `--checkpoint-dir` doesn't go with `--on`\n")
