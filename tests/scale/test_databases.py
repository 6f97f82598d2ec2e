"""Databases that go away in the middle of runs, also while what a dead worker left is taken over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.postgres import Server
from tests.scale.receiver import Receiver, build

LAYERS, WIDE = 10, 5
STEPS = LAYERS * WIDE


def put(workers: Workers, file: Path, count: int) -> list[str]:
    """Ask for so many runs, and return their segments."""
    document = load_workflow(file)
    with closing(Archive(place_of(workers.url))) as archive:
        names = [f"run{number}" for number in range(count)]
        return [archive.put(order_for(document, {"name": name}, name), 1, QUEUE) for name in names]


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return when something is so."""
    pause = threading.Event()
    while not is_so():
        pause.wait(0.1)


def all_is_well(workers: Workers, segments: Sequence[str], receiver: Receiver) -> int:
    """Wait for the runs to end, see that each step was done and had one effect, and return how many requests were repeated."""
    with closing(Archive(place_of(workers.url))) as archive:
        statuses = ("ENQUEUED", "PENDING")
        wait_until(lambda: all(archive.status(segment).status not in statuses for segment in segments))
        for segment in segments:
            result = archive.ended(segment).result
            assert result is not None, archive.ended(segment).error
            assert result.status == "success", result.error
            lines = [json.loads(line) for line in archive.lines(segment)]
            outcomes = Counter(line["path"] for line in lines if line["kind"] == "outcome")
            assert len(outcomes) == STEPS
            assert set(outcomes.values()) == {1}, "what was written down as done was done again"
    accepted = receiver.accepted
    assert len(accepted) == len(segments) * STEPS
    assert set(accepted.values()) == {1}, "a step asked for its effect under two keys"
    return len(receiver.requests) - len(accepted)


def performers(archive: Archive) -> set[str]:
    """Return what the database knows those workers by that perform something."""
    listed = archive.client.list_workflows(status="PENDING", load_input=False, load_output=False)
    return {str(status.executor_id) for status in listed}


def test_the_database_stops_four_times(tmp_path: Path, workers: Workers, server: Server) -> None:
    """As if its machine lost power, in the middle of runs: they wait, and go on."""
    file = build(tmp_path, LAYERS, WIDE)
    with Receiver(0.2) as receiver:
        workers.environment["RECEIVER"] = receiver.url
        workers.begin(2)
        segments = put(workers, file, 10)
        terminal = subprocess.Popen(
            [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", "shown", "--state", "name=shown", "--no-history"],
            cwd=tmp_path, env=workers.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        segments.append("shown~1")
        wait_until(lambda: any(request.step.startswith("shown/") for request in list(receiver.requests)))
        for number in range(4):
            wait_until(lambda goal=(number + 1) * 100: len(receiver.requests) > goal)  # type: ignore[misc]
            server.stop("immediate")
            server.start()
        again = all_is_well(workers, segments, receiver)
        told, _ = terminal.communicate()
        assert terminal.returncode == 0, told
        assert "Traceback" not in told
        assert again <= 4 * 11 * WIDE
        assert all(process.poll() is None for process in workers.running), "a worker gave up"


def test_the_database_stops_while_runs_are_taken_over(tmp_path: Path, workers: Workers, server: Server) -> None:
    """A worker dies, and the database just when another one takes over what it left; and a second time in the middle of that."""
    file = build(tmp_path, LAYERS, WIDE)
    with Receiver(0.2) as receiver:
        workers.environment["RECEIVER"] = receiver.url
        workers.options = ("--concurrency", "4")
        workers.begin(3)
        segments = put(workers, file, 16)
        for number in range(2):
            with closing(Archive(place_of(workers.url))) as archive:
                wait_until(lambda: bool(performers(archive)))
                name = sorted(performers(archive))[0]
                victim = next(process for process in workers.running if f"-{process.pid}-" in name)
                victim.kill()
                victim.communicate()
                workers.running.remove(victim)
                if number == 0:  # else it stops before anybody has noticed
                    wait_until(lambda: name not in performers(archive))  # noqa: B023
            server.stop("immediate")
            server.start()
        all_is_well(workers, segments, receiver)


def test_a_worker_stops_though_its_database_is_away(tmp_path: Path, workers: Workers, server: Server) -> None:
    """It waits for it only so long; when there is another worker, and the database, the run goes on."""
    file = build(tmp_path, LAYERS, WIDE)
    with Receiver(0.2) as receiver:
        workers.environment["RECEIVER"] = receiver.url
        workers.ready(first := workers.start())
        segments = put(workers, file, 2)
        wait_until(lambda: len(receiver.requests) > 20)
        server.stop("immediate")
        try:
            first.send_signal(signal.SIGTERM)
            told, _ = first.communicate(timeout=120)
        finally:
            server.start()
        assert first.returncode == 0, told
        assert "Traceback" not in told
        workers.ready(workers.start())
        all_is_well(workers, segments, receiver)
