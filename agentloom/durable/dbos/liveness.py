"""Which workers live, without clocks: each holds a lock that the database lets go of when its session ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from zlib import crc32

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, RUN
from agentloom.durable.dbos.place import Place

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

ALIVE, RECOVERING = 4711, 4712
"""The first numbers of the advisory locks: of a worker that lives, and of the one that looks after the dead."""

LOOKS = 3
"""How many times in a row a worker must be found dead: after a restart of the database all need a moment to come back."""

_KEEPALIVE: dict[str, Any] = {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
_SERVER = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"


class Liveness:
    """Holds this worker's lock, and has done again what workers left that hold none. A SQLite file has one worker: all others are dead."""

    def __init__(self, place: Place, executor: str, archive: Archive) -> None:
        self._place = place
        self._executor = executor
        self._archive = archive
        self._session: psycopg.Connection[Any] | None = None
        self._missed: dict[str, int] = {}

    def begin(self) -> None:
        """Take the lock, and look a first time."""
        if self._place.file is not None:
            self._recover([name for name in self._pending() if name != self._executor])
        else:
            self._connect()

    def look(self) -> None:
        """Recover what dead workers left. Raises what the database raises; look again later."""
        if self._place.file is not None:
            return
        try:
            session = self._session or self._connect()
            others = [name for name in self._pending() if name != self._executor]
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
            raise
        alive = {row[0] for row in held}
        self._missed = {name: self._missed.get(name, 0) + 1 for name in others if _number(name) not in alive}
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

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        session = psycopg.connect(self._place.url, autocommit=True, options=_SERVER, connect_timeout=5, **_KEEPALIVE)
        session.execute("SELECT pg_advisory_lock(%s, %s)", (ALIVE, _signed(_number(self._executor))))
        self._session = session
        return session

    def _pending(self) -> list[str]:
        """Return who performs what is under way."""
        listed = self._archive.client.list_workflows(status="PENDING", name=RUN, load_input=False, load_output=False)
        return list(dict.fromkeys(status.executor_id for status in listed if status.executor_id))

    def _recover(self, executors: list[str]) -> None:
        if not executors:
            return
        listed = self._archive.client.list_workflows(
            status="PENDING", name=RUN, executor_id=executors, load_input=False, load_output=False
        )
        for status in listed:
            log.info("Run segment %s goes on here: its worker %s is gone", status.workflow_id, status.executor_id)
            self._archive.client.resume_workflow(status.workflow_id, queue_name=QUEUE)


def _number(executor: str) -> int:
    return crc32(executor.encode())


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _one(session: psycopg.Connection[Any], query: str, number: int) -> Any:
    row = session.execute(query.encode(), (number,)).fetchone()
    return None if row is None else row[0]
