"""Another durable engine below the same seam, with real workers that are killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
from absurd_sdk import Absurd

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.orders import order_for
from tests.cli.conftest import environment
from tests.durable.second_engine import QUEUE, prepare, put
from tests.durable.workshop import build, effects


def test_workers_are_killed_and_nothing_is_lost(tmp_path: Path, new_postgres: Callable[[], str]) -> None:
    """Every step has its effect under one key; what was under way at a kill comes again, and nothing else. A segment is asked for once."""
    file = build(tmp_path, layers=2)
    world = environment(EFFECTS=str(tmp_path / "effects"), WORK_SECONDS="0.1")
    url = new_postgres()
    with psycopg.connect(url, autocommit=True) as session:
        prepare(session)
        client = Absurd(session, QUEUE)
        order = order_for(load_workflow(file), {}, "k")
        task, is_new = put(session, order, 1)
        assert is_new
        assert put(session, order, 1) == (task, False)
        pause = threading.Event()
        kills = 0
        while True:
            worker = subprocess.Popen(
                [sys.executable, "-m", "tests.durable.second_engine", url, "5"],
                cwd=tmp_path, env=world, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                before = len(effects(tmp_path / "effects"))
                while kills < 2 and len(effects(tmp_path / "effects")) < before + 3:
                    assert worker.poll() is None
                    pause.wait(0.02)
                if kills == 2:
                    snapshot = client.await_task_result(task)
                    break
            finally:
                worker.kill()
                worker.communicate()
            kills += 1
    assert snapshot.state == "completed", snapshot
    assert snapshot.result["result"]["status"] == "success"  # type: ignore[index, call-overload]
    found = effects(tmp_path / "effects")
    assert len(found) == 2 * 5, "one key for every step"
    assert sum(found.values()) - len(found) <= kills * 4
