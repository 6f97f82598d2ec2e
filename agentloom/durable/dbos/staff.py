"""Which workers can perform which runs: what each lacks, and how a run gets to one that lacks nothing.

All runs are put into one queue (``orders.QUEUE``), whoever puts them there: new ones, decisions, resumes, gates whose time is over. A worker that takes
one it can't perform puts it aside, before anything is done, in a queue for what such runs need, which nobody listens to. Others see the needs in a table,
judge them once, and take such runs into queues of their own. So where all workers are alike, as most are, this costs nothing.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from agentloom.core.needs import Needs, needs_from
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.liveness import ALIVE, lock_number
from agentloom.durable.dbos.orders import NEEDS as NEEDED
from agentloom.durable.dbos.orders import QUEUE, RUN, VERSION
from agentloom.durable.dbos.place import SCHEMA
from agentloom.durable.dbos.tables import LACKS, NEEDS, WORKERS

log = logging.getLogger(__name__)

LOOK_S = 0.5
"""How often a worker looks for needs that it hasn't judged, and for runs that were put aside."""

TIDY_LOOKS = 20
"""In how many looks one also looks after what dead workers had in their own queues."""

ASIDE = "aside-"
"""What the names of the queues begin with that nobody listens to."""

OWN = f"{QUEUE}@"
"""What the names of the workers' own queues begin with."""

Lacking = Callable[[Needs], list[str]]
"""Returns what this machine lacks for a run, in a few words each."""

_SEGMENTS = f"{SCHEMA}.workflow_status"
_HELD = (
    "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
    f" AND classid = {ALIVE} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_NEW = f"""
WITH me AS (INSERT INTO {WORKERS} (name, number) VALUES (:me, :number) ON CONFLICT DO NOTHING)
SELECT key, needs FROM {NEEDS} AS n WHERE NOT EXISTS (SELECT FROM {LACKS} AS l WHERE l.key = n.key AND l.worker = :me)
"""
_TELL = f"""
INSERT INTO {LACKS} (key, worker, lacks) VALUES (:key, :me, CAST(:lacks AS jsonb))
ON CONFLICT (key, worker) DO UPDATE SET lacks = excluded.lacks
"""
_ASK = f"INSERT INTO {NEEDS} (key, needs) VALUES (:key, CAST(:needs AS jsonb)) ON CONFLICT DO NOTHING"
# Conditions and change are one statement: who cancelled the run, or took it over, meanwhile has won.
_PUT_ASIDE = f"""
UPDATE {_SEGMENTS} SET status = 'ENQUEUED', queue_name = :queue, owner_xid = NULL, started_at_epoch_ms = NULL, recovery_attempts = 0
WHERE workflow_uuid = :segment AND status = 'PENDING' AND executor_id = :me
"""
_FETCH = f"""
UPDATE {_SEGMENTS} SET queue_name = :own WHERE status = 'ENQUEUED' AND workflow_uuid IN (
    SELECT workflow_uuid FROM {_SEGMENTS} WHERE status = 'ENQUEUED' AND queue_name = ANY (:aside)
    AND name = '{RUN}' AND application_version = '{VERSION}' ORDER BY created_at LIMIT :free FOR UPDATE SKIP LOCKED
)
"""
_TIDY = (
    f"DELETE FROM {WORKERS} WHERE number NOT IN ({_HELD})",
    f"DELETE FROM {LACKS} WHERE worker NOT IN (SELECT name FROM {WORKERS})",
    f"UPDATE {_SEGMENTS} SET queue_name = '{QUEUE}' WHERE status = 'ENQUEUED' AND queue_name LIKE '{OWN}%'"
    f" AND substr(queue_name, {len(OWN) + 1}) NOT IN (SELECT name FROM {WORKERS})",
    f"DELETE FROM {SCHEMA}.queues WHERE name LIKE '{OWN}%' AND substr(name, {len(OWN) + 1}) NOT IN (SELECT name FROM {WORKERS})",
)
_LEAVE = (
    f"DELETE FROM {WORKERS} WHERE name = :me",
    f"DELETE FROM {LACKS} WHERE worker = :me",
    f"UPDATE {_SEGMENTS} SET queue_name = '{QUEUE}' WHERE status = 'ENQUEUED' AND queue_name = :own",
    f"DELETE FROM {SCHEMA}.queues WHERE name = :own",
)
_ANSWERS = f"""
SELECT l.lacks FROM {WORKERS} AS w LEFT JOIN {LACKS} AS l ON l.worker = w.name AND l.key = :key WHERE w.number IN ({_HELD})
"""


class PutAside(BaseException):
    """Ends an execution of which DBOS is to keep nothing: neither a result nor an error, and nobody waits for one."""


class Abilities:
    """What a worker can do. ``free`` returns how many more runs it may perform now, ``register`` makes its own queue, if it isn't there."""

    def __init__(
        self,
        engine: Engine,
        executor: str,
        lacking: Lacking,
        free: Callable[[], int],
        register: Callable[[str], None],
    ) -> None:
        self.own = OWN + executor
        """The queue that only this worker listens to."""
        self._register = register
        self._engine = engine
        self._me = executor
        self._lacking = lacking
        self._free = free
        self._judged: dict[str, list[str]] = {}
        self._stop = threading.Event()
        # Judging imports the tools of a project, which may take its time; who watches over runs can't wait for that.
        self._thread = threading.Thread(target=self._look_often, name="agentloom-abilities", daemon=True)

    def begin(self) -> None:
        """Begin to look."""
        self._thread.start()

    def end(self) -> None:
        """Take nothing more, and leave what was taken and hasn't begun to others."""
        self._stop.set()
        self._thread.join(2)
        try:
            with self._engine.begin() as session:
                for statement in _LEAVE:
                    session.execute(text(statement), {"me": self._me, "own": self.own})
        except Exception as error:  # the database is away: the others find out
            log.debug("Leaving failed", exc_info=error)

    def lacks(self, needs: Needs) -> list[str]:
        """Return what this worker lacks."""
        key = needs.key
        if key not in self._judged:
            self._judged[key] = self._lacking(needs)
        return self._judged[key]

    def put_aside(self, segment: str, needs: Needs) -> None:
        """Leave a segment that this process has taken to a worker that lacks nothing."""
        with self._engine.begin() as session:
            session.execute(text(_ASK), {"key": needs.key, "needs": json.dumps(needs.to_dict())})
            session.execute(text(_PUT_ASIDE), {"queue": ASIDE + needs.key, "segment": segment, "me": self._me})

    def _look_often(self) -> None:
        looks = 0
        while not self._stop.is_set():
            try:
                self._look()
                if looks % TIDY_LOOKS == 0:
                    self._register(
                        self.own
                    )  # others took it for that of a dead worker, should our connection have been away
                    with self._engine.begin() as session:
                        for statement in _TIDY:
                            session.execute(text(statement))
                looks += 1
            except Exception as error:  # the database is away: look again
                log.debug("Looking for what was put aside failed", exc_info=error)
            self._stop.wait(LOOK_S)

    def _look(self) -> None:
        with self._engine.begin() as session:
            asked = session.execute(text(_NEW), {"me": self._me, "number": lock_number(self._me)}).all()
        for key, described in asked:
            try:
                lacks = self.lacks(needs_from(described))
            except ValueError as error:
                lacks = [str(error)]
            self._judged[key] = lacks
            with self._engine.begin() as session:
                session.execute(text(_TELL), {"key": key, "me": self._me, "lacks": json.dumps(lacks)})
        able = [ASIDE + key for key, lacks in list(self._judged.items()) if not lacks]
        free = self._free()
        if able and free > 0:
            with self._engine.begin() as session:
                session.execute(text(_FETCH), {"own": self.own, "aside": able, "free": free})


class Answers(NamedTuple):
    """How many workers live, and what those lack that have answered."""

    living: int
    lacks: Sequence[Sequence[str]]

    @property
    def able(self) -> int:
        """How many lack nothing."""
        return sum(not lacks for lacks in self.lacks)

    @property
    def lacking(self) -> dict[str, int]:
        """What is lacking, and for how many workers."""
        found: dict[str, int] = {}
        for lacks in self.lacks:
            for lack in lacks:
                found[lack] = found.get(lack, 0) + 1
        return found


def ask(engine: Engine, needs: Needs) -> None:
    """Have all workers judge some needs. They answer within a second or so."""
    with engine.begin() as session:
        session.execute(text(_ASK), {"key": needs.key, "needs": json.dumps(needs.to_dict())})


def answers(engine: Engine, needs: Needs) -> Answers:
    """Return what the workers have answered so far."""
    with engine.begin() as session:
        rows = session.execute(text(_ANSWERS), {"key": needs.key}).scalars().all()
    return Answers(len(rows), [[str(lack) for lack in row] for row in rows if isinstance(row, list)])


def why_nobody(found: Answers, name: str) -> str | None:
    """Return why no worker of a place called ``name`` performs a run; None when one may, or not all have answered."""
    if not found.living:
        return f"no worker is running; start one with `agentloom worker --on {name}`"
    if found.able or len(found.lacks) < found.living:
        return None
    of = f"of {found.living} " + ("worker" if found.living == 1 else "workers")
    listed = ", ".join(f"{lack} on {count} {of}" for lack, count in found.lacking.items())
    return f"no worker that is running has all that the run needs; lacking: {listed}"


def why_it_waits(archive: Archive, segment: str) -> str | None:
    """Return why no worker performs a segment that is queued; None when one will, or when not all have answered yet.

    Only where workers come and go: the one that serves a file performs what it is asked for. Raises what the database raises.
    """
    found = archive.client.list_workflows(workflow_ids=[segment], load_input=False, load_output=False)
    if archive.engine is None or not found or found[0].status != "ENQUEUED":
        return None
    described = (found[0].attributes or {}).get(NEEDED)
    try:
        needs = Needs() if described is None else needs_from(described)
    except ValueError:
        return None
    if needs:
        with suppress(DBAPIError):  # whoever may only read sees what others have asked
            ask(archive.engine, needs)
    return why_nobody(answers(archive.engine, needs), archive.place.name)
