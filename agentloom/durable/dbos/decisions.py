"""Decisions about runs in a database: taken when the run's next segment is there, whose id is given once.

So of two decisions exactly one is taken, also when they come to two servers, to `agentloom resume`, or in the moment in which the time is over.
Whatever dies then, the run goes on as soon as there is a worker. A SQLite file has no others, so the server sees to it that there is one.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

import anyio
from anyio.abc import Process, TaskGroup

from agentloom.core.keeping.waiting import Decision, Decisions, NotTaken, Paused, Stopping, Unable, paused_of, same_gate
from agentloom.durable.dbos.archive import POOL, Archive
from agentloom.durable.dbos.gates import go_on, load, waiting
from agentloom.durable.dbos.patience import Unreachable
from agentloom.durable.dbos.place import hidden, is_held
from agentloom.durable.dbos.versions import living
from agentloom.durable.journal import RunIsBusy
from agentloom.errors import WorkflowError

log = logging.getLogger(__name__)

ON = "AGENTLOOM_ON"

PAUSE_S = 1.0
"""How often it is looked whether a SQLite file has a worker, in seconds."""

MOST_PAUSE_S = 30.0
"""How long to wait at most before a worker is started again that ends at once, in seconds."""

PATIENCE_S = 5.0
"""How long a decision waits for a database that is away, in seconds."""

KILL_S = 10.0
"""How long a worker may take to end beyond the time that it is given, in seconds."""

T = TypeVar("T")


def in_database(
    archive: Archive, environment: Callable[[str | None], Mapping[str, str]], concurrency: int, drain_s: float
) -> Callable[[TaskGroup, str | None], Decisions]:
    """Return what begins to carry out decisions about the runs of a database.

    ``environment`` returns that of a worker, which a SQLite file gets as long as nobody else works on it, for runs that are told where the
    server is; it performs ``concurrency`` runs at once, and they get ``drain_s`` seconds when it is stopped.
    """
    return lambda group, url: DatabaseDecisions(archive, environment(url), concurrency, drain_s)


class DatabaseDecisions(Decisions):
    """Carries out decisions about runs in a database."""

    def __init__(self, archive: Archive, environment: Mapping[str, str], concurrency: int, drain_s: float) -> None:
        self._archive = archive
        self._environment = environment
        self._concurrency = concurrency
        self._drain_s = drain_s
        self._known: dict[str, Paused] = {}
        self._threads = anyio.CapacityLimiter(POOL)
        self._reading = anyio.Lock()
        self._stopping = False
        self._worker: Process | None = None

    async def waiting(self) -> list[Paused]:
        """Return the runs that wait for a decision."""
        async with self._reading:
            found = await self._ask(self._scan)
        return sorted(found, key=lambda run: (run.updated_at, run.run_id))

    async def decide(
        self, run_id: str, decision: Decision, step_id: str | None = None, updated_at: str | None = None
    ) -> Paused:
        """Take a decision and let the run go on; returns when its next segment is in the database."""
        if self._stopping:
            raise Stopping("the server is shutting down")
        run = await self._ask(lambda: self._decide(run_id, decision, step_id, updated_at))
        log.info("run %s at %s: %s; it goes on", run_id, run.step_id, decision)
        with suppress(Stopping):
            await self._ask(self._tell_of_workers)
        return run

    async def keep(self) -> None:
        """See to it that a SQLite file has a worker."""
        file = self._archive.place.file
        pause_s = PAUSE_S
        while file is not None and not self._stopping:
            if is_held(file):
                await anyio.sleep(PAUSE_S)
                continue
            began = anyio.current_time()
            self._worker = await anyio.open_process(
                [
                    sys.executable, "-m", "agentloom", "worker", "--with-parent",
                    "--concurrency", str(self._concurrency), "--drain", f"{self._drain_s:g}",
                ],
                stdin=subprocess.PIPE,  # it ends when that is closed, however this process ends
                stdout=subprocess.DEVNULL,
                stderr=None,
                env={**self._environment, ON: self._archive.place.name},
                start_new_session=True,  # the terminal's Ctrl-C is for the server
            )  # fmt: skip
            code = await self._worker.wait()
            self._worker = None
            if not self._stopping:
                log.warning("the worker on %s ended with exit code %d; another one is started", file, code)
                pause_s = PAUSE_S if anyio.current_time() - began > MOST_PAUSE_S else min(2 * pause_s, MOST_PAUSE_S)
                await anyio.sleep(pause_s)

    async def stop(self, grace: float) -> None:
        """Take nothing more; what this server's worker performs gets its time, and goes on when there is a worker again."""
        self._stopping = True
        worker = self._worker
        if worker is None:
            return
        with suppress(ProcessLookupError):
            worker.terminate()
        with anyio.move_on_after(grace + KILL_S):
            await worker.wait()
            return
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()

    def hurry(self) -> None:
        """Give what is under way here no more time."""
        if self._worker is not None:
            with suppress(ProcessLookupError):
                self._worker.terminate()

    # --- in threads

    def _scan(self) -> list[Paused]:
        segments = waiting(self._archive)
        for gone in self._known.keys() - segments.keys():
            del self._known[gone]
        for segment, data in load(self._archive, [segment for segment in segments if segment not in self._known]):
            self._known[segment] = paused_of(data)
        return [self._known[segment] for segment in segments if segment in self._known]

    def _decide(self, run_id: str, decision: Decision, step_id: str | None, updated_at: str | None) -> Paused:
        found = self._archive.find(run_id)
        if found.data.status != "paused" or found.data.paused_step_id is None:
            raise NotTaken(f"run `{run_id}` waits at no gate")
        run = paused_of(found.data)
        same_gate(run, step_id, updated_at)
        try:
            go_on(self._archive, found.segment, found.data, {run.step_id: decision})
        except RunIsBusy:
            raise NotTaken(f"run `{run_id}` has gone on meanwhile") from None
        return run

    def _tell_of_workers(self) -> None:
        """Say so when nobody is there who would go on with a run; a file gets a worker anyway."""
        place = self._archive.place
        if place.file is None and not living(place):
            log.warning(
                "no worker is running; what was decided goes on when one is: `agentloom worker --on %s`", place.name
            )

    async def _ask(self, question: Callable[[], T]) -> T:
        """Ask the database, in a thread. Raises ``Stopping`` when it can't be reached, and what the question raises."""
        try:
            return await anyio.to_thread.run_sync(question, limiter=self._threads)
        except (KeyError, NotTaken, Unable):
            raise
        except WorkflowError as error:
            if not isinstance(error, Unreachable):
                raise Unable(str(error)) from None
            raise Stopping("the database can't be reached; try again later") from None
        except Exception as error:
            log.warning(
                "%s can't be used: %s",
                self._archive.place.name,
                hidden(" ".join(str(error).split()), self._archive.place)[:300],
            )
            raise Stopping("the database can't be reached; try again later") from None
