"""Workers, a database and whoever asks for runs on hosts of their own: links are cut and healed, hosts die, processes freeze."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.postgres import Server
from tests.durable.workshop import build, effects
from tests.scale.hosts import Network

STEPS = 4 * 5
"""Steps with an effect in one run: four layers, each of three steps and a child with two."""
SIDE_BY_SIDE = 4
PAUSE_S = 0.1


class Site:
    """Workers on the hosts of a network, each with one run at a time, and the database that they share."""

    def __init__(self, network: Network, workers: Workers, archive: Archive) -> None:
        self.network = network
        self.workers = workers
        self.archive = archive
        self.hosts: dict[str, subprocess.Popen[str]] = {}
        self._pause = threading.Event()

    def start(self, *hosts: str) -> None:
        """Start a worker on each of the hosts."""
        for host in hosts:
            self.hosts[host] = self.workers.start(before=self.network.on(host))
        for host in hosts:
            self.workers.ready(self.hosts[host])

    def put(self, *names: str) -> list[str]:
        """Ask for runs and return their segments."""
        document = load_workflow(build(self.workers.folder))
        return [self.archive.put(order_for(document, {}, name), 1, QUEUE) for name in names]

    def performer(self, segment: str) -> str | None:
        """Return the host whose worker has a segment."""
        executor = str(self.archive.status(segment).executor_id)
        return next((host for host, process in self.hosts.items() if f"-{process.pid}-" in executor), None)

    def segments_of(self, host: str, segments: list[str]) -> list[str]:
        """Return those that a host's worker performs now."""
        listed = self.archive.client.list_workflows(
            workflow_ids=segments, status="PENDING", load_input=False, load_output=False
        )
        mark = f"-{self.hosts[host].pid}-"
        return [status.workflow_id for status in listed if mark in str(status.executor_id)]

    def until(self, what: Callable[[], object]) -> float:
        """Wait for something, and return how long that took, in seconds."""
        began = monotonic()
        while not what():
            self._pause.wait(PAUSE_S)
        return monotonic() - began

    def for_seconds(self, seconds: float) -> None:
        """Let time pass: how long a link stays cut is what is tried."""
        self._pause.wait(seconds)

    def outcomes(self, segment: str) -> dict[str, int]:
        """Return how often each step of a run has its outcome written down."""
        lines = [json.loads(line) for line in self.archive.lines(segment)]
        return Counter(line["path"] for line in lines if line["kind"] == "outcome")

    def lives(self, segment: str) -> list[str]:
        """Return who wrote to a run's stream, in the order of what was written, each as often as the turn came to it."""
        found: list[str] = []
        for value in self.archive.client.read_stream(segment, "events", timeout_seconds=0):
            life = str(value["n"]).partition("-")[0]
            if not found or found[-1] != life:
                found.append(life)
        return found

    def ended_well(self, segments: list[str]) -> Counter[tuple[str, str]]:
        """Wait for runs; each ended well, no outcome was written twice, each step had one key. Return the effects that came more than once."""
        for segment in segments:
            self.until(lambda segment=segment: self.archive.status(segment).status not in ("PENDING", "ENQUEUED"))
            ended = self.archive.ended(segment)
            assert ended.result is not None, ended.error
            assert ended.result.status == "success", ended.result.error
            outcomes = self.outcomes(segment)
            assert len(outcomes) == 4 * 6
            assert set(outcomes.values()) == {1}, "what was written down as done was done again"
            lives = self.lives(segment)
            assert len(lives) == len(set(lives)), "a worker wrote after it was replaced"
        found = effects(self.workers.effects)
        assert len({name for name, _ in found}) == STEPS
        assert len(found) == STEPS * len(segments), "a step was done under two keys"
        return Counter({key: times - 1 for key, times in found.items() if times > 1})


@pytest.fixture
def site(tmp_path: Path, network: Network, far_server: Server) -> Iterator[Site]:
    """Workers to be started, on a new database."""
    workers = Workers(far_server.database(), tmp_path, 1.0)
    workers.options = ("--concurrency", "1")
    try:
        with closing(Archive(place_of(workers.url), migrate=True)) as archive:
            yield Site(network, workers, archive)
    finally:
        for name in network.addresses:
            network.heal(name)
        for process in workers.running:
            process.send_signal(signal.SIGCONT)
        workers.end()


def test_a_link_is_cut_for_half_a_minute(site: Site) -> None:
    """Others go on with what the cut worker had; it writes nothing more, and serves again. Who follows from a cut desk is told everything once."""
    site.start("a", "b", "c")
    asked = subprocess.Popen(
        [*site.network.on("desk"), sys.executable, "-m", "agentloom", "run", str(build(site.workers.folder)), "--run-id", "seen",
         "--events", "-", "--no-history"],
        cwd=site.workers.folder, env=site.workers.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    site.workers.running.append(asked)
    assert asked.stdout is not None
    first = asked.stdout.readline()
    assert json.loads(first)["event"] == "run_started", first
    segments = ["seen~1", *site.put("one", "two")]
    site.until(lambda: all(len(site.outcomes(segment)) >= 2 for segment in segments))
    [lost] = site.segments_of("c", segments)
    site.network.cut("c")
    site.network.cut("desk")
    began = monotonic()
    site.until(lambda: site.performer(lost) in ("a", "b"))
    took = monotonic() - began
    site.for_seconds(began + 30 - monotonic())
    site.network.heal("c")
    site.network.heal("desk")
    again = site.ended_well(segments)
    assert sum(again.values()) <= SIDE_BY_SIDE, again
    assert set(again.values()) <= {1}
    out, err = asked.communicate()
    assert asked.returncode == 0, err
    told = Counter(event["step"] for event in map(json.loads, out.splitlines()) if event["event"] == "step_finished")
    assert len(told) == 4 * 6
    assert set(told.values()) == {1}
    assert json.loads(out.splitlines()[-1])["event"] == "run_finished"
    assert "can't be reached; waits for it" in err
    more = site.put("three", "four", "five")
    site.until(lambda: site.segments_of("c", more))
    site.ended_well([*segments, *more])
    print(f"a cut link: its run went on elsewhere after {took:.1f} s; {sum(again.values())} steps came again")


def test_the_link_of_the_database_is_cut(site: Site) -> None:
    """All workers are cut off from it at once. They come back, and nobody takes the others for dead."""
    site.start("a", "b", "c")
    segments = site.put("one", "two", "three")
    site.until(lambda: all(len(site.outcomes(segment)) >= 2 for segment in segments))
    site.network.cut("db")
    site.for_seconds(20)
    site.network.heal("db")
    again = site.ended_well(segments)
    assert sum(again.values()) <= 3 * SIDE_BY_SIDE, again
    assert set(again.values()) <= {1}
    print(f"the database's link: {sum(again.values())} steps came again")


def test_a_host_dies_without_a_word(site: Site) -> None:
    """No end of its connections reaches the database, as when a machine loses its power: its lock is free all the same."""
    site.start("a", "b")
    segments = site.put("one", "two")
    site.until(lambda: all(len(site.outcomes(segment)) >= 2 for segment in segments))
    [lost] = site.segments_of("b", segments)
    site.network.cut("b")
    site.hosts["b"].kill()
    took = site.until(lambda: site.performer(lost) == "a" or site.archive.status(lost).status == "ENQUEUED")
    again = site.ended_well(segments)
    assert sum(again.values()) <= SIDE_BY_SIDE, again
    assert set(again.values()) <= {1}
    print(f"a dead host: its run was free after {took:.1f} s; {sum(again.values())} steps came again")


def test_a_frozen_worker_is_replaced(site: Site) -> None:
    """Its host still answers for it, but the database hears nothing from it. Awake again, it finds its run gone: what comes late counts for nothing."""
    site.start("a", "b")
    segments = site.put("one", "two")
    site.until(lambda: all(len(site.outcomes(segment)) >= 2 for segment in segments))
    [frozen] = site.segments_of("b", segments)
    process = site.hosts["b"]
    process.send_signal(signal.SIGSTOP)
    began = monotonic()
    took = site.until(lambda: site.performer(frozen) == "a")
    site.for_seconds(began + 20 - monotonic())
    process.send_signal(signal.SIGCONT)
    again = site.ended_well(segments)
    assert sum(again.values()) <= SIDE_BY_SIDE, again
    assert set(again.values()) <= {1}
    print(f"a frozen worker: its run went on elsewhere after {took:.1f} s; {sum(again.values())} steps came again")
