"""Lists of 10,000 runs on a server: in moments, without loading what happened in them; and deleting them beside workers that live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.test_listing import fill
from tests.durable.workshop import build

MANY = 10_000


def measured(workers: Workers, *arguments: str) -> tuple[str, int]:
    """Return what a command printed, and the most memory that it had, in MB."""
    with (workers.folder / "printed").open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentloom", *arguments], cwd=workers.folder, env=workers.environment, stdout=printed
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (workers.folder / "printed").read_text(), usage.ru_maxrss // 1024


def test_ten_thousand_runs_are_listed_and_deleted(tmp_path: Path, workers: Workers) -> None:
    """Neither takes much more memory than for one run; the worker performs a run meanwhile, which stays."""
    place = place_of(workers.url)
    fill(place, 0, 0)
    _, little = measured(workers, "runs")
    fill(place, 1, MANY - 1)
    listed, memory = measured(workers, "runs")
    assert len(listed.splitlines()) == MANY + 1
    assert memory < little + 40, "MB: the lines of the table"
    _, memory = measured(workers, "history", "--limit", "20")
    assert memory < little + 10
    latest, memory = measured(workers, "runs", "--json", "--limit", "50")
    assert (len(json.loads(latest)), memory < little + 10) == (50, True)
    workers.ready(workers.start())
    with closing(Archive(place)) as archive:
        segment = archive.put(order_for(load_workflow(build(tmp_path, 8)), {}, "lives"), 1, QUEUE)
        deleted, memory = measured(workers, "runs", "prune", "--older", "0m")
        assert deleted.startswith(f"deleted {MANY} runs, "), deleted
        assert memory < little + 40
        archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
        result = archive.ended(segment).result
        assert result is not None
        assert result.status == "success"
        assert [row.run_id for row in archive.rows()] == ["lives"]
