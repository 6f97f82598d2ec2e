"""Very many runs on the workers of a database, and what the workers take up meanwhile."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import psycopg

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import SCHEMA, place_of

SAMPLE_S = 0.5

_COUNT = f"SELECT count(*), count(*) FILTER (WHERE status = 'SUCCESS') FROM {SCHEMA}.workflow_status"
_OPEN = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Sample(NamedTuple):
    """How things are: seconds since the first run was asked for, runs that have ended, and what the workers have: memory in MB, threads, and
    connections to the database."""

    at_s: float
    done: int
    memory_mb: float
    threads: int
    connections: int


def soak(url: str, file: Path, count: int, workers: Sequence[subprocess.Popen[str]]) -> list[Sample]:
    """Have a workflow run so many times, and return samples until the last run has ended."""
    document = load_workflow(file)
    failure: list[BaseException] = []

    def ask() -> None:
        try:
            with closing(Archive(place_of(url))) as archive:
                for number in range(count):
                    archive.put(order_for(document, {}, f"soak{number}"), 1, QUEUE)
        except BaseException as error:
            failure.append(error)

    asker = threading.Thread(target=ask)
    samples: list[Sample] = []
    pause = threading.Event()
    with psycopg.connect(url, autocommit=True) as session:
        began = monotonic()
        asker.start()
        try:
            while not samples or samples[-1].done < count:
                pause.wait(SAMPLE_S)
                samples.append(_sample(session, monotonic() - began, [worker.pid for worker in workers]))
                if failure:
                    raise failure[0]
        finally:
            asker.join()
    return samples


def _sample(session: psycopg.Connection[tuple[int, ...]], at_s: float, pids: Sequence[int]) -> Sample:
    _, done = session.execute(_COUNT.encode()).fetchone() or (0, 0)
    (connections,) = session.execute(_OPEN.encode()).fetchone() or (0,)
    memory_kb = threads = 0
    for pid in pids:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        memory_kb += int(lines["VmRSS"].split()[0])
        threads += int(lines["Threads"])
    return Sample(at_s, done, memory_kb / 1024, threads, connections)


def thirds(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Return the samples of the first and of the last third of the runs."""
    count = samples[-1].done
    first = [sample for sample in samples if 0 < sample.done <= count / 3]
    last = [sample for sample in samples if count * 2 / 3 <= sample.done < count]
    return first, last
