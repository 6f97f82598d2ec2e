"""A worker as a service: how many runs it performs, when it is ready, and how it is stopped."""

from __future__ import annotations

import ctypes
import platform
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.workshop import build, effects


@pytest.fixture
def workers(tmp_path: Path, new_postgres: Callable[[], str]) -> Iterator[Workers]:
    """Workers whose steps take a while, on a new database of the server."""
    found = Workers(new_postgres(), tmp_path, 1.0)
    try:
        yield found
    finally:
        found.end()


def test_each_worker_performs_as_many_runs_as_it_was_told(tmp_path: Path, workers: Workers) -> None:
    """The one that was started later doesn't set it for the other."""
    file = build(tmp_path, layers=20, wide=1)
    three, one = workers.start("--concurrency", "3"), None
    workers.ready(three)
    one = workers.start("--concurrency", "1")
    workers.ready(one)
    document = load_workflow(file)
    pause = threading.Event()
    with closing(Archive(place_of(workers.url))) as archive:
        for number in range(7):
            archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE)
        looks = 0
        while looks < 20:
            listed = archive.client.list_workflows(status="PENDING", load_input=False, load_output=False)
            performed = Counter(str(status.executor_id).split("-")[-2] for status in listed)
            assert performed[str(three.pid)] <= 3
            assert performed[str(one.pid)] <= 1
            if performed == {str(three.pid): 3, str(one.pid): 1}:
                looks += 1
            pause.wait(0.05)


def test_a_worker_that_is_stopped_lets_what_is_under_way_end(tmp_path: Path, workers: Workers) -> None:
    """SIGTERM: it takes nothing more, what it does comes to its end, and what waits goes to another worker. The manager is told both times."""
    workers.environment["WORK_SECONDS"] = "0.3"
    file = build(tmp_path, layers=2, wide=1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        workers.environment["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        first = workers.start("--concurrency", "1", "--drain", "60")
        assert manager.recv(100) == b"READY=1"
        workers.ready(first)
        document = load_workflow(file)
        pause = threading.Event()
        with closing(Archive(place_of(workers.url))) as archive:
            segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(2)]
            while not effects(workers.effects):
                pause.wait(0.05)
            first.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
            said, _ = first.communicate(timeout=120)
            assert "stops when what is under way has ended, in 60 seconds at the latest" in said
            assert first.returncode == 0
            assert [archive.status(segment).status for segment in segments] == ["SUCCESS", "ENQUEUED"]
            workers.ready(workers.start())
            for segment in segments:
                archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
    assert set(effects(workers.effects).values()) == {1}


def test_what_is_not_done_in_time_goes_on_elsewhere(tmp_path: Path, workers: Workers) -> None:
    """`--drain 0`: the worker goes at once, and leaves its run to the next."""
    file = build(tmp_path, layers=2, wide=1)
    first = workers.start("--drain", "0")
    workers.ready(first)
    pause = threading.Event()
    with closing(Archive(place_of(workers.url))) as archive:
        segment = archive.put(order_for(load_workflow(file), {}, "r"), 1, QUEUE)
        while not effects(workers.effects):
            pause.wait(0.05)
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=120)
        assert (first.returncode, archive.status(segment).status) == (0, "PENDING")
        workers.environment["WORK_SECONDS"] = "0.1"
        workers.ready(workers.start())
        archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
        result = archive.ended(segment).result
        assert result is not None
        assert result.status == "success"
    done = effects(workers.effects)
    assert len(done) == 6, "each step has one key"
    assert sum(done.values()) - len(done) <= 2


def to_another(process: subprocess.Popen[str]) -> None:
    """Send SIGTERM to a process and have a thread get it that isn't the main one: the system may choose so."""
    others = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir() if int(task.name) != process.pid]
    number = {"x86_64": 234, "aarch64": 131}[platform.machine()]
    assert ctypes.CDLL(None).syscall(number, process.pid, min(others), int(signal.SIGTERM)) == 0


@pytest.mark.parametrize("send", [subprocess.Popen.terminate, to_another])
def test_a_second_signal_ends_a_worker_at_once(
    tmp_path: Path, workers: Workers, send: Callable[[subprocess.Popen[str]], None]
) -> None:
    """It waits for nothing more."""
    workers.environment["WORK_SECONDS"] = "600"
    file = build(tmp_path, layers=1, wide=1)
    first = workers.start("--drain", "600")
    workers.ready(first)
    pause = threading.Event()
    with closing(Archive(place_of(workers.url))) as archive:
        segment = archive.put(order_for(load_workflow(file), {}, "r"), 1, QUEUE)
        while archive.status(segment).status != "PENDING":
            pause.wait(0.05)
        send(first)
        assert first.stdout is not None
        assert first.stdout.readline().startswith("stops when")
        send(first)
        assert first.wait(60) == 0
        assert archive.status(segment).status == "PENDING"
