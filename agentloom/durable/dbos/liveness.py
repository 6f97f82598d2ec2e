"""Which workers live, without clocks: each holds a lock that the database lets go of when its session ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from time import monotonic
from typing import Any
from zlib import crc32

import sqlalchemy

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.clock import Clock
from agentloom.durable.dbos.orders import RUN
from agentloom.durable.dbos.place import Place
from agentloom.durable.dbos.sessions import DEAD_MS, Session, session_of
from agentloom.durable.dbos.versions import enlist

log = logging.getLogger(__name__)

ALIVE, RECOVERING = 4711, 4712
"""The first numbers of the advisory locks: of a worker that lives, and of the one that looks after the dead."""

LOOKS = 3
"""How many times in a row a worker must be found dead: after a restart of the database all need a moment to come back."""

LOST_LOOKS = 10
"""How many times in a row a segment must be found that is ours and that nobody performs: taken from the queue just when the connection broke."""

GRACE_S = 8.0
"""How long nobody is taken for dead after a connection was lost and made again, in seconds: the others may be on their way back, too."""

ANSWER_S = 10.0
"""How long an answer may take here, in seconds."""


class Liveness:
    """Holds this worker's lock, and has done again what workers left that hold none. A SQLite file has one worker: all others are dead.

    ``performed`` returns the segments that this worker performs, ``clock`` is set by the database's.
    """

    def __init__(
        self,
        place: Place,
        executor: str,
        archive: Archive,
        clock: Clock,
        performed: Callable[[], Container[str]] = tuple,
    ) -> None:
        self._place = place
        self._executor = executor
        self._archive = archive
        self._clock = clock
        self._performed = performed
        self._session: Session | None = None
        self._missed: dict[str, int] = {}
        self._lost: dict[str, int] = {}
        self._spared_until = 0.0

    def connect(self) -> None:
        """Take the lock, and read the database's clock."""
        if self._place.file is None:
            self._connect()

    def begin(self) -> None:
        """Look a first time."""
        if self._place.file is not None:
            self._recover([name for name in self._pending() if name != self._executor])

    def look(self) -> None:
        """Recover what dead workers left. Raises what the database raises; look again later."""
        if self._place.file is not None:
            return
        try:
            session = self._session or self._connect()
            self._look_at_clock(session)
            pending = self._pending()
            self._find_lost(pending.pop(self._executor, []))
            others = list(pending)
            if not others:
                self._missed.clear()
                return
            held = session.execute(
                "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2"
                " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
                (ALIVE,),
            ).fetchall()
        except Exception:
            self.end()
            self._missed.clear()
            self._spared_until = monotonic() + GRACE_S
            raise
        if monotonic() < self._spared_until:
            return
        alive = {row[0] for row in held}
        self._missed = {name: self._missed.get(name, 0) + 1 for name in others if lock_number(name) not in alive}
        dead = [name for name, times in self._missed.items() if times >= LOOKS]
        if not dead:
            return
        if not _one(session, "SELECT pg_try_advisory_lock(%s, 0)", RECOVERING):
            return
        try:
            self._recover(dead)
        finally:
            _one(session, "SELECT pg_advisory_unlock(%s, 0)", RECOVERING)

    def end(self) -> None:
        """Let go of the lock."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _connect(self) -> Session:
        session = session_of(self._place, ANSWER_S)
        # Of a process that hangs or is stopped, the system goes on answering for its connections: only its silence tells (PostgreSQL 14).
        session.execute(
            "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = 'idle_session_timeout'", (str(DEAD_MS),)
        )
        # Shared, since nobody but us wants it: the server may not have noticed yet that our last session is gone.
        session.execute("SELECT pg_advisory_lock_shared(%s, %s)", (ALIVE, _signed(lock_number(self._executor))))
        enlist(session)
        self._session = session
        if self._spared_until:
            self._spared_until = monotonic() + GRACE_S
        self._look_at_clock(session)
        return session

    def _look_at_clock(self, session: Session) -> None:
        row = session.execute("SELECT clock_timestamp()").fetchone()
        if row is not None:
            self._clock.set(row[0])

    def _pending(self) -> dict[str, list[str]]:
        """Return who performs what is under way."""
        found: dict[str, list[str]] = {}
        for status in self._archive.client.list_workflows(
            status="PENDING", name=RUN, load_input=False, load_output=False
        ):
            if status.executor_id:
                found.setdefault(status.executor_id, []).append(status.workflow_id)
        return found

    def _find_lost(self, ours: list[str]) -> None:
        """Put segments back that are ours by what the database says, and that we know nothing of."""
        known = self._performed()
        self._lost = {name: self._lost.get(name, 0) + 1 for name in ours if name not in known}
        lost = [name for name, times in self._lost.items() if times >= LOST_LOOKS]
        for segment in take_over(self._archive, [self._executor], lost) if lost else ():
            log.info("Run segment %s is put back: it never got here", segment)

    def _recover(self, executors: list[str]) -> None:
        for segment in take_over(self._archive, executors) if executors else ():
            log.info("Run segment %s is put back: its worker is gone", segment)


def take_over(archive: Archive, executors: Sequence[str], segments: Sequence[str] | None = None) -> list[str]:
    """Put what these workers perform, or only some ``segments`` of it, back into its queue, and return its ids.

    What has ended or was cancelled meanwhile stays as it is: one statement sees to that. DBOS's own way, a look and then a resume, would bring
    back to life what was cancelled in between. What somebody writes to at that moment is passed over: who is frozen may hold it for seconds.
    """
    database = archive.client._sys_db
    table = database.tables.workflow_status
    wanted = sqlalchemy.select(table.c.workflow_uuid).where(
        table.c.name == RUN, table.c.status == "PENDING", table.c.executor_id.in_(executors)
    )
    if segments is not None:
        wanted = wanted.where(table.c.workflow_uuid.in_(segments))
    statement = (
        sqlalchemy.update(table)
        .where(table.c.workflow_uuid.in_(wanted.with_for_update(skip_locked=True)))
        .values(status="ENQUEUED", owner_xid=None, started_at_epoch_ms=None, updated_at=database._now_ms_sql())
        .returning(table.c.workflow_uuid)
    )
    with database.engine.begin() as connection:
        return [str(row[0]) for row in connection.execute(statement)]


def lock_number(executor: str) -> int:
    """Return the second number of the lock that a worker holds."""
    return crc32(executor.encode())


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _one(session: Session, query: str, number: int) -> Any:
    row = session.execute(query.encode(), (number,)).fetchone()
    return None if row is None else row[0]
