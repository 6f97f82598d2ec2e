"""Decisions about runs in a database, over HTTP: real servers and workers, one winner, and gates whose time is over."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentloom.core.keeping.waiting import paused_of
from agentloom.core.loader import load_text
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.clock import Clock
from agentloom.durable.dbos.gates import Timekeeper, waiting
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import is_held, place_of
from tests.callbacks.conftest import Server as Page
from tests.callbacks.conftest import lines_of
from tests.cli.conftest import Call
from tests.cli.conftest import call as call  # a fixture
from tests.cli.conftest import start as start  # a fixture
from tests.durable.crew import Workers
from tests.durable.postgres import Server

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

Serve = Callable[..., Page]
pause = threading.Event()


def timed(then: str | None, seconds: int = 1) -> str:
    """Return a workflow that waits so long for a decision."""
    on_timeout = "" if then is None else f", on_timeout: {then}"
    return (
        "name: timed\nconfig: {provider: mock}\nsteps:\n"
        f"  - {{id: gate, type: approval_gate, output: verdict, timeout_seconds: {seconds}{on_timeout}}}\n"
        "  - {id: send, type: llm_call, depends_on: [gate], prompt: '{state.verdict}', output: sent}\n"
    )


@pytest.fixture
def serve(start: Any, tmp_path: Path) -> Serve:
    """Return a function that starts a callback server over a database."""

    def begin(url: str, *options: str) -> Page:
        return Page(
            start(
                "callback-server", "--port", "0", *options, cwd=tmp_path,
                env={"AGENTLOOM_ON": url}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip

    return begin


@pytest.fixture
def archive(workers: Workers) -> Iterator[Archive]:
    """The database of the workers, prepared."""
    with Archive(place_of(workers.url), migrate=True) as found:
        yield found


def put(archive: Archive, text: str, *names: str) -> None:
    """Ask for runs of a workflow."""
    for name in names:
        archive.put(order_for(load_text(text), {}, name), 1, QUEUE)


def until(archive: Archive, run_id: str, *statuses: str) -> Any:
    """Wait until a run has one of these statuses, and return its checkpoint."""
    while (data := archive.find(run_id).data).status not in statuses:
        pause.wait(0.05)
    return data


def both(pages: list[Page], questions: list[tuple[str, str]]) -> list[Any]:
    """Ask several servers at the same moment, in turn."""
    barrier = threading.Barrier(len(questions))

    def one(at: int) -> Any:
        barrier.wait()
        return pages[at % len(pages)].ask(*questions[at])

    with ThreadPoolExecutor(len(questions)) as pool:
        return list(pool.map(one, range(len(questions))))


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
        assert again.find("r").data.status in ("queued", "running")
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


def test_time_that_is_over_while_nobody_works(workers: Workers, archive: Archive) -> None:
    """It is found by the next worker, and by one of many."""
    put(archive, timed("approve", 2), "r")
    workers.begin(1)
    data = until(archive, "r", "paused")
    workers.end()
    due = paused_of(data).deadline
    assert due is not None
    workers.begin(3)
    data = until(archive, "r", "success")
    assert data.state["verdict"] == "approved"
    assert data.attempts["gate"] == 2


def test_a_resume_without_a_decision_waits_no_longer(workers: Workers, archive: Archive, call: Call) -> None:
    """The gate's time goes on from when it began to wait, over all segments."""
    put(archive, timed("approve", 4), "r")
    workers.begin(1)
    first = until(archive, "r", "paused")
    assert call("resume", "r", "--on", workers.url).code == 0
    second = archive.find("r").data
    assert second.paused_since == first.paused_since
    assert until(archive, "r", "success").state["verdict"] == "approved"


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


@pytest.mark.parametrize("seconds", [1, 3600])
def test_a_worker_dies_in_the_moment_in_which_a_run_begins_to_wait(
    workers: Workers, archive: Archive, seconds: int
) -> None:
    """Its end can't be written down, and the worker is killed: the next one has the run wait, and its time is neither lost nor begun anew."""
    with psycopg.connect(workers.url, autocommit=True) as session:
        session.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$"
        )
        session.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE ON agentloom.workflow_status FOR EACH ROW"
            " WHEN (NEW.status = 'SUCCESS' AND OLD.status = 'PENDING') EXECUTE FUNCTION refuse()"
        )
        put(archive, timed("approve", seconds), "r")
        workers.begin(1)
        while not (known := archive.status("r~1").attributes or {}).get("waits"):
            pause.wait(0.05)
        workers.end()
        assert archive.status("r~1").status == "PENDING"
        session.execute("DROP TRIGGER refuse ON agentloom.workflow_status")
    workers.begin(1)
    if seconds == 1:
        assert until(archive, "r", "success").state["verdict"] == "approved"
    else:
        deadline = paused_of(until(archive, "r", "paused")).deadline
        assert deadline is not None
        assert deadline.isoformat() == known["due"]
        assert set(waiting(archive, timed=True)) == {"r~1"}
        return
    while waiting(archive, timed=True):
        pause.wait(0.05)


def test_webhooks_name_addresses_that_decide(workers: Workers, archive: Archive, serve: Serve) -> None:
    """A gate tells where to decide, also from a worker; the callback server takes the message, and the decision."""
    page = serve(workers.url)
    url = f"http://127.0.0.1:{page.port}"
    workers.environment["AGENTLOOM_CALLBACK_URL"] = url
    notify = f"notify: {{url: '{url}/webhook'}}"
    put(
        archive,
        timed(None)
        .replace("timeout_seconds: 1", notify)
        .replace("provider: mock", "provider: mock, sandbox: {allow_internal_webhook_targets: true}"),
        "r",
    )
    workers.begin(1)
    told = json.loads(page.wait_for("webhook: ").partition("webhook: ")[2])
    assert (told["run_id"], told["step_id"], told["reject_url"]) == ("r", "gate", f"{url}/reject/r")
    until(archive, "r", "paused")
    assert page.ask("POST", told["approve_url"].removeprefix(url)).status == 202
    assert until(archive, "r", "success").state["verdict"] == "approved"


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
