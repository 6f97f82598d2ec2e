"""A process that performs segments: takes them from the queue, one thread each, and stops what isn't its any more."""

from __future__ import annotations

import contextvars
import logging
import os
import socket
import threading
from collections.abc import Collection, Mapping
from functools import partial
from time import monotonic
from typing import Any

import anyio
from dbos import DBOS, DBOSPortableJSONSerializer
from dbos import error as dbos_error

from agentloom.core.needs import needs_from
from agentloom.core.results import JSON
from agentloom.durable.dbos.adoption import Adoption
from agentloom.durable.dbos.archive import APPLICATION, POOL, Archive
from agentloom.durable.dbos.clock import Clock
from agentloom.durable.dbos.counters import InDatabase, InMemory
from agentloom.durable.dbos.feed import Feed
from agentloom.durable.dbos.gates import Timekeeper, mark
from agentloom.durable.dbos.listing import cut, ended
from agentloom.durable.dbos.liveness import Liveness
from agentloom.durable.dbos.orders import HERE, LIFE, NEEDS, QUEUE, RUN, VERSION, Order, run_of
from agentloom.durable.dbos.packing import NO_WAYS, Ways
from agentloom.durable.dbos.performing import Equip, Life, Performer
from agentloom.durable.dbos.place import SCHEMA, FileLock, Place
from agentloom.durable.dbos.queues import limit, register
from agentloom.durable.dbos.received import recorded_in
from agentloom.durable.dbos.sessions import engine_of, is_away
from agentloom.durable.dbos.staff import Abilities, Lacking, PutAside
from agentloom.durable.dbos.turns import AllTurns

log = logging.getLogger(__name__)

POLL_S = 0.1
"""How often a worker looks for new segments, in seconds."""

WATCH_S = 0.5
"""How often it looks whether those that it performs are its still, and whether other workers live."""

HEED_S = 0.5
"""How long the main thread may wait at a stretch where no event loop does, in seconds.

A signal that reaches another thread, or this one just before it begins to wait, doesn't wake it: Python calls the handler when it wakes up.
"""

RECONNECT_S = 60.0
"""How long one attempt to get back to the database lasts, in seconds, before DBOS begins to wait longer and longer."""

WRITTEN_S = 60.0
"""How long it may take until the database knows that a segment has ended, in seconds."""

WATCHER_S = 2.0
"""How long a worker that stops waits for its last look at the database, in seconds: it takes longer only where that is away."""

WIND_UP_S = 5.0
"""How long a segment that is stopped may take to tidy up, in seconds."""


class Worker:
    """Performs segments. DBOS allows one in a process.

    ``alone`` takes only what this process itself puts into the queue ``HERE``; otherwise it takes up to ``concurrency`` of those that
    anybody put into ``QUEUE``, and what workers left that are dead. ``equip`` is asked for each segment; ``ways`` are the folders that are
    the same for whoever asks for runs and whoever performs them, ``variables`` those of the environment that runs may refer to;
    ``lacking`` returns what this machine lacks to perform a run.
    """

    def __init__(
        self,
        place: Place,
        equip: Equip,
        *,
        alone: bool,
        concurrency: int = 10,
        ways: Ways = NO_WAYS,
        variables: Collection[str] = (),
        lacking: Lacking = lambda needs: [],
    ) -> None:
        self.place = place
        self.archive: Archive
        self.own: dict[str, Order] = {}
        """What this process asked itself to do, with the secrets that must not get into the database, by the id of the segment."""
        self._equip = equip
        self._lacking = lacking
        self._alone = alone
        self._concurrency = concurrency
        self._ways = ways
        self._variables = frozenset(variables)
        self._lives: dict[str, Life] = {}
        self._ended = threading.Condition()
        self._dbos: DBOS | None = None
        self._lock: FileLock | None = None
        self._clock = Clock()
        self._is_away = False
        self._liveness: Liveness | None = None
        self._left: dict[str, float] = {}
        self._turns: AllTurns | None = None
        self._performer: Performer
        self._abilities: Abilities | None = None
        self._adoption: Adoption | None = None
        self._timekeeper: Timekeeper | None = None
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="agentloom-watch", daemon=True)
        self.executor = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"

    def start(self) -> None:
        """Begin. Raises ``Busy`` when another process works on the SQLite file, ``WorkflowError`` when the database can't be used."""
        global _worker
        if self.place.file is not None:
            self._lock = FileLock(self.place.file, is_worker=not self._alone)
        try:
            self.archive = Archive(self.place, migrate=True, patience_s=0.0)  # who looks at something looks again
        except BaseException:
            if self._lock is not None:
                self._lock.close()
            raise
        self.archive.is_ours = self._alone and self.place.file is not None
        if self._alone:
            self.archive.take_back(HERE)
        else:
            self._turns = AllTurns(InMemory() if self.place.file is not None else InDatabase(self.place))
            self._liveness = Liveness(self.place, self.executor, self.archive, self._clock, self._known)
            self._liveness.connect()
            self._timekeeper = Timekeeper(self.archive, self._clock)
        self._performer = Performer(
            self.archive, self._equip, self._clock, self.own, self._ways, self._variables, self._turns
        )
        _worker = self
        self._engine = engine_of(self.place, POOL, self._stop.is_set, RECONNECT_S)
        self._dbos = DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": self.place.url,
                "dbos_system_schema": SCHEMA,
                "system_database_engine": self._engine,
                "application_version": VERSION,
                "executor_id": self.executor,
                "serializer": DBOSPortableJSONSerializer(),
                "sys_db_pool_size": POOL,
                "log_level": "CRITICAL",
                "run_migrations": False,
                "notification_listener_polling_interval_sec": POLL_S,
            }
        )
        DBOS.workflow(name=RUN, max_recovery_attempts=1000)(perform_segment)
        queues = [HERE if self._alone else QUEUE]
        if not self._alone and self.archive.engine is not None:
            self._abilities = Abilities(
                self.archive.engine, self.executor, self._lacking, self._free, partial(register, WATCH_S, None)
            )
            queues.append(self._abilities.own)
        DBOS.listen_queues(queues)
        DBOS.launch()
        if not self._alone:
            limit(self._dbos, queues, self._concurrency)
        register(POLL_S, None if self._alone else self._concurrency, queues[0])
        if self._liveness is not None:
            self._liveness.begin()
            self._adoption = Adoption(self.archive)
        if self._abilities is not None:
            self._abilities.begin()
        self._watcher.start()

    def cancel(self, segment: str) -> None:
        """Stop a segment that this process performs, have written down how far it came, and cancel it."""
        life = self._lives.get(segment)
        if life is not None:
            life.cancel()
            self._wait_for_lives(WIND_UP_S)
        self.archive.cancel(segment)

    def stop(self, drain_s: float = 0.0) -> bool:
        """Take on nothing more, give what is running ``drain_s`` seconds, and end; tell whether everything came to an end.

        What is cut off goes on elsewhere.
        """
        assert self._dbos is not None
        if self._abilities is not None:
            self._abilities.end()
        for event in self._dbos.background_thread_stop_events:
            event.set()
        was_busy = bool(self._lives)
        self._wait_for_lives(drain_s)
        cut = dict(self._lives)
        for life in cut.values():
            life.cancel()
        self._wait_for_lives(WIND_UP_S)
        for segment in cut if self._alone else ():
            self.archive.cancel(segment)  # nobody else goes on with it unless asked to
        self._stop.set()
        DBOS.destroy(workflow_completion_timeout_sec=2 if was_busy else 0)
        self._watcher.join(WATCHER_S)  # or it would take the lock of one that lives again
        self.archive.close()
        if self._engine is not None:
            self._engine.dispose()
        if self._turns is not None:
            self._turns.close()
        if self._liveness is not None:
            self._liveness.end()
        if self._lock is not None:
            self._lock.close()
        return not cut

    def _free(self) -> int:
        """Return how many more segments may be performed here."""
        return self._concurrency - len(self._lives)

    def _wait_for_lives(self, seconds: float) -> None:
        until = monotonic() + seconds
        with self._ended:
            while self._lives and (rest := until - monotonic()) > 0:
                self._ended.wait(min(rest, HEED_S))

    def _known(self) -> set[str]:
        """Return the segments that are performed here, and those of which DBOS may still be writing down how they ended."""
        with self._ended:
            self._left = {name: at for name, at in self._left.items() if monotonic() - at < WRITTEN_S}
            return {*self._lives, *self._left}

    def _watch(self) -> None:
        """Stop what was cancelled or taken over; have what dead workers left performed again."""
        while not self._stop.wait(WATCH_S):
            try:
                self._look_at_ours()
                if self._liveness is not None and self._timekeeper is not None:
                    self._liveness.look()
                    self._timekeeper.look()
                if self._adoption is not None:
                    self._adoption.look()
                if self._is_away:
                    log.warning("The database is back")
                self._is_away = False
            except Exception as error:  # look again
                log.debug("Watching failed", exc_info=error)
                if is_away(error) and not self._is_away:
                    log.warning("The database is away; what is under way waits for it")
                    self._is_away = True

    def _look_at_ours(self) -> None:
        """Stop what isn't ours any more: it was cancelled, taken over or deleted."""
        lives = dict(self._lives)
        if not lives:
            return
        listed = self.archive.client.list_workflows(
            status="PENDING", name=RUN, executor_id=self.executor, load_input=False, load_output=False
        )
        ours = {status.workflow_id for status in listed}
        for segment, life in lives.items():
            if segment not in ours and not life.over.is_set():
                life.cancel()

    # --- a segment

    def leave_aside(self, order: object) -> None:
        """Put a segment aside that needs what isn't here, before anything is done. Raises ``PutAside`` then."""
        if self._abilities is None or not isinstance(order, dict) or NEEDS not in order:
            return
        segment = str(DBOS.workflow_id)
        try:
            needs = needs_from(order[NEEDS])
        except ValueError:
            return  # whoever wrote that gets to know what is lacking when it is
        if lacks := self._abilities.lacks(needs):
            log.info("Segment %s is left to other workers; here is lacking: %s", segment, ", ".join(lacks))
            self._abilities.put_aside(segment, needs)
            raise PutAside

    def live(self, order: object) -> dict[str, JSON]:
        """Perform a segment, or go on with it, in a thread of its own."""
        segment = str(DBOS.workflow_id)
        life = Life()
        with self._ended:
            before, self._lives[segment] = self._lives.get(segment), life
        if before is not None:  # it was taken from us, and came back
            before.cancel()
            before.over.wait(WIND_UP_S)
        feed = life.feed = Feed(contextvars.copy_context(), life.cancel)
        try:
            output = anyio.run(self._performer.perform, segment, order, feed, life)
            feed.close()
            if output is None or not feed.lost:
                self._tell(segment, output)
        finally:
            feed.close()
            life.over.set()
            with self._ended:
                if self._lives.get(segment) is life:  # and not the next one, after this one was taken over
                    del self._lives[segment]
                self._left[segment] = monotonic()
                self._ended.notify_all()
        if feed.lost:
            raise dbos_error.DBOSWorkflowConflictIDError(segment)
        if output is None:
            raise dbos_error.DBOSWorkflowCancelledError(f"segment {segment} was cancelled")
        mark(
            segment, output
        )  # before it ends: so there is none that waits and can't be found, whenever this process dies
        return output

    def _tell(self, segment: str, output: Mapping[str, Any] | None) -> None:
        """Note what lists show of a segment that has ended, or was stopped. The run doesn't depend on it."""
        try:
            if output is None:
                told = cut(recorded_in(self.archive.lines(segment), segment), run_of(segment)[0])
            else:
                told = ended(output)
            self.archive.client.update_workflow_attributes(segment, told, merge=True)
        except Exception as error:
            log.debug("What lists show of %s can't be noted", segment, exc_info=error)


_worker: Worker | None = None


def perform_segment(*given: object) -> dict[str, Any]:
    """The DBOS workflow: one operation, which finds out by itself how far it had come."""
    assert _worker is not None
    order = given[0] if len(given) == 1 else None
    _worker.leave_aside(order)
    return DBOS.run_step({"name": LIFE}, _worker.live, order)
