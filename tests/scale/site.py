"""What tests of bad networks share: runs that are under way somewhere, and what must be true of them when they have ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from time import monotonic

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.workshop import build, effects

STEPS = 4 * 5
"""Steps with an effect in one run: four layers, each of three steps and a child with two."""

OUTCOMES = 4 * 6
"""What is written down of one run: the steps with an effect, and the children."""

SIDE_BY_SIDE = 4
PAUSE_S = 0.1


@contextmanager
def site_of(workers: Workers) -> Iterator[Site]:
    """Return where workers are to be started, with the tables made; end them all."""
    try:
        with closing(Archive(place_of(workers.url), migrate=True)) as archive:
            yield Site(workers, archive)
    finally:
        for process in workers.running:
            process.send_signal(signal.SIGCONT)
        workers.end()


class Site:
    """Workers by their names, and the database that they share."""

    def __init__(self, workers: Workers, archive: Archive) -> None:
        self.workers = workers
        self.archive = archive
        self.hosts: dict[str, subprocess.Popen[str]] = {}
        self._pause = threading.Event()

    def start(self, **hosts: Sequence[str]) -> None:
        """Start workers; what stands before the command of each is given by its name."""
        for host, before in hosts.items():
            self.hosts[host] = self.workers.start(before=before)
        for host in hosts:
            self.workers.ready(self.hosts[host])

    def put(self, *names: str) -> list[str]:
        """Ask for runs and return their segments."""
        document = load_workflow(build(self.workers.folder))
        return [self.archive.put(order_for(document, {}, name), 1, QUEUE) for name in names]

    def follow(self, name: str, before: Sequence[str] = (), **environment: str) -> subprocess.Popen[str]:
        """Have a run asked for and followed by a process."""
        asked = subprocess.Popen(
            [*before, sys.executable, "-m", "agentloom", "run", str(build(self.workers.folder)), "--run-id", name,
             "--events", "-", "--no-history"],
            cwd=self.workers.folder, env={**self.workers.environment, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.workers.running.append(asked)
        return asked

    def begun(self, *following: subprocess.Popen[str]) -> None:
        """Wait until what processes follow has begun."""
        for asked in following:
            assert asked.stdout is not None
            first = asked.stdout.readline()
            assert json.loads(first or "{}").get("event") == "run_started", first

    def told_once(self, asked: subprocess.Popen[str]) -> str:
        """Wait for a process that follows a run: it was told of the end of each step once. Return what it said on standard error."""
        out, err = asked.communicate()
        assert asked.returncode == 0, err
        events = [json.loads(line) for line in out.splitlines()]
        told = Counter(event["step"] for event in events if event["event"] == "step_finished")
        assert len(told) == OUTCOMES
        assert set(told.values()) == {1}
        assert events[-1]["event"] == "run_finished"
        return err

    def performer(self, segment: str) -> str | None:
        """Return the worker that has a segment."""
        executor = str(self.archive.status(segment).executor_id)
        return next((host for host, process in self.hosts.items() if f"-{process.pid}-" in executor), None)

    def segments_of(self, host: str, segments: list[str]) -> list[str]:
        """Return those that a worker performs now."""
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

    def until_under_way(self, segments: list[str]) -> None:
        """Wait until runs are somewhere in their middle."""
        self.until(lambda: all(len(self.outcomes(segment)) >= 2 for segment in segments))

    def for_seconds(self, seconds: float) -> None:
        """Let time pass: how long something lasts is what is tried."""
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

    def came_again(self, segments: list[str], most: int) -> int:
        """Wait for runs that end well, and return how many steps came again: ``most`` at the most, and each of them once."""
        again = self.ended_well(segments)
        assert sum(again.values()) <= most, again
        assert set(again.values()) <= {1}
        return sum(again.values())

    def ended_well(self, segments: list[str]) -> Counter[tuple[str, str]]:
        """Wait for runs: each ended well, no outcome was written twice, each step had one key. Return how often effects came again."""
        for segment in segments:
            self.until(lambda segment=segment: self.archive.status(segment).status not in ("PENDING", "ENQUEUED"))
            ended = self.archive.ended(segment)
            assert ended.result is not None, ended.error
            assert ended.result.status == "success", ended.result.error
            outcomes = self.outcomes(segment)
            assert len(outcomes) == OUTCOMES
            assert set(outcomes.values()) == {1}, "what was written down as done was done again"
            lives = self.lives(segment)
            assert len(lives) == len(set(lives)), "a worker wrote after it was replaced"
        found = effects(self.workers.effects)
        assert len({name for name, _ in found}) == STEPS
        assert len(found) == STEPS * len(segments), "a step was done under two keys"
        return Counter({key: times - 1 for key, times in found.items() if times > 1})
