"""Gates in a database while everything else happens: fifty decisions and a timeout at the same moment, deaths of workers and servers."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.client import HTTPException
from random import Random

import psycopg
import pytest

from agentloom.core.keeping.waiting import paused_of
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.gates import waiting
from tests.cli.conftest import Call
from tests.cli.conftest import call as call
from tests.durable.crew import Workers
from tests.durable.waiting import Serve, pause, put, timed, until
from tests.durable.waiting import archive as archive
from tests.durable.waiting import serve as serve
from tests.durable.waiting import start as start

ROUNDS = int(os.environ.get("ROUNDS", "20"))
AT_ONCE = 50
SECONDS = 2
"""How long the gates wait."""


def test_fifty_decisions_and_the_timeout_at_the_same_moment(workers: Workers, archive: Archive, serve: Serve) -> None:
    """Over twenty rounds, at two servers, with two workers; in every other one a worker or a server is killed in the middle: one wins."""
    random = Random(8)
    workers.begin(2)
    pages = [serve(workers.url), serve(workers.url)]
    won = {"approved": 0, "rejected": 0}
    for number in range(ROUNDS):
        run_id = f"r{number}"
        put(archive, timed("reject", SECONDS), run_id)
        due = paused_of(until(archive, run_id, "paused", "success")).deadline
        if due is None:
            won["rejected"] += 1
            continue  # the machine was so slow that the time was over first
        barrier = threading.Barrier(AT_ONCE + 1)
        lead = random.uniform(-0.3, 0.7)

        def decide(at: int, run_id: str = run_id, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            try:
                return pages[at % 2].ask("POST", f"/approve/{run_id}").status
            except (OSError, HTTPException):
                return 0  # the server was killed

        with ThreadPoolExecutor(AT_ONCE) as pool:
            asked = [pool.submit(decide, at) for at in range(AT_ONCE)]
            left = (due - datetime.now(due.tzinfo)).total_seconds() - lead
            pause.wait(max(0.0, left))
            barrier.wait()
            killed = number % 4 if number % 2 else 0
            if killed == 1:
                victim = workers.running.pop(0)
                victim.kill()
                victim.communicate()
            elif killed == 3:
                pages[0].process.kill()
            statuses = [each.result() for each in asked]
        if killed == 1:
            workers.begin(1)
        elif killed == 3:
            pages[0].process.wait()
            pages[0] = serve(workers.url)
        verdict = until(archive, run_id, "success").state["verdict"]
        won[verdict] += 1
        taken = statuses.count(202)
        assert set(statuses) <= {202, 409, 0}
        assert taken <= 1
        if taken == 1:
            assert verdict == "approved"
        elif 0 not in statuses:
            assert verdict == "rejected"
        listed = archive.client.list_workflows(workflow_id_prefix=f"{run_id}~", load_input=False, load_output=False)
        assert {status.workflow_id for status in listed} == {f"{run_id}~1", f"{run_id}~2"}
    assert won["approved"] + won["rejected"] == ROUNDS
    assert waiting(archive, timed=True) == {}


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
