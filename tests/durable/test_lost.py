"""Segments that nobody performs though the database says so, or that were cancelled while somebody took them over."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.liveness import take_over
from agentloom.durable.dbos.orders import order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.workshop import build, effects

CLAIMED = (
    "UPDATE agentloom.workflow_status SET status = 'PENDING', executor_id = %s, owner_xid = 'x', queue_name = 'runs'"
    " WHERE workflow_uuid = %s"
)


def _put(archive: Archive, folder: Path, run_id: str) -> str:
    """Put a segment where no worker looks."""
    return archive.put(order_for(load_workflow(build(folder, 1, 2)), {}, run_id), 1, "aside")


def test_an_answer_that_got_lost_costs_nothing(tmp_path: Path, workers: Workers) -> None:
    """The database gave a segment to a worker, and the connection broke before that knew: it is performed all the same."""
    workers.ready(workers.start())
    with closing(Archive(place_of(workers.url))) as archive, psycopg.connect(workers.url, autocommit=True) as session:
        first = _put(archive, tmp_path, "first")
        session.execute("UPDATE agentloom.workflow_status SET queue_name = 'runs'")
        archive.client.retrieve_workflow(first).get_result(polling_interval_sec=0.05)
        worker = archive.status(first).executor_id
        segment = _put(archive, tmp_path, "lost")
        session.execute(CLAIMED, (worker, segment))
        archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.1)
        assert archive.status(segment).executor_id == worker
        assert archive.find("lost").data.status == "success"
    assert set(effects(workers.effects).values()) == {1}
    assert len(effects(workers.effects)) == 2 * 4


def test_a_run_that_is_cancelled_while_it_is_taken_over_stays_cancelled(tmp_path: Path, workers: Workers) -> None:
    """Only what its dead worker still has is put back into the queue, and what somebody writes to just then is passed over."""
    workers.ready(first := workers.start())
    first.terminate()
    assert first.wait(60) == 0
    with closing(Archive(place_of(workers.url))) as archive, psycopg.connect(workers.url, autocommit=True) as session:
        segments = [_put(archive, tmp_path, name) for name in ("cancelled", "held", "lost", "living")]
        for segment, worker in zip(segments, ("dead", "dead", "dead", "alive"), strict=True):
            session.execute(CLAIMED, (worker, segment))
        archive.cancel("cancelled~1")
        with psycopg.connect(workers.url) as other:
            other.execute("SELECT 1 FROM agentloom.workflow_status WHERE workflow_uuid = 'held~1' FOR NO KEY UPDATE")
            assert take_over(archive, ["dead"]) == ["lost~1"]
        assert take_over(archive, ["dead"]) == ["held~1"]
        assert take_over(archive, ["dead"]) == []
        found = {segment: archive.status(segment).status for segment in segments}
    assert found == {"cancelled~1": "CANCELLED", "held~1": "ENQUEUED", "lost~1": "ENQUEUED", "living~1": "PENDING"}
