"""Runs that other versions of agentloom began: who goes on with them.

Workers perform only what was asked for in their own version (``orders.VERSION``). Each holds a shared lock with the number of its journal as
long as it lives, so that a worker of a newer version knows when nobody is left who goes on with the rest: then it asks for that itself.
"""

from __future__ import annotations

from contextlib import closing

from dbos import WorkflowStatus

from agentloom.durable.dbos.orders import JOURNALS, VERSION
from agentloom.durable.dbos.place import Place, is_held
from agentloom.durable.dbos.sessions import Session, session_of
from agentloom.durable.journal import VERSION as JOURNAL

LIVING = 4713
"""The first number of the advisory lock that all living workers of a version share; the second is the version of their journal."""

ANSWER_S = 10.0
"""How long the database may take to say who lives, in seconds."""

OLDER = [f"{JOURNALS}{number}" for number in range(1, JOURNAL)]
"""The versions before this one. Each of them can be read: the tests hold journals of every version."""


def number_of(status: WorkflowStatus) -> int:
    """Return the version of the journal that a segment is written in; 0 if it isn't one of ours."""
    name, _, number = str(status.app_version).rpartition("-")
    return int(number) if f"{name}-" == JOURNALS and number.isdecimal() else 0


def enlist(session: Session) -> None:
    """Tell others, as long as a session lasts, that a worker of this version lives."""
    session.execute("SELECT pg_advisory_lock_shared(%s, %s)", (LIVING, JOURNAL))


def living(place: Place) -> set[int]:
    """Return the journals' versions whose workers live on a server. Raises what the database raises."""
    with closing(session_of(place, ANSWER_S)) as session:
        rows = session.execute(
            "SELECT DISTINCT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2"
            " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            (LIVING,),
        ).fetchall()
    return {int(row[0]) for row in rows}


def is_stranded(place: Place, status: WorkflowStatus) -> bool:
    """Tell whether a segment that is under way is another version's, and no worker of that lives."""
    if status.app_version == VERSION:
        return False
    if place.file is not None:
        return not is_held(place.file)
    return number_of(status) not in living(place)


def newer(status: WorkflowStatus) -> str | None:
    """Return why a segment can't be read that a newer agentloom has asked for; None for all others."""
    number = number_of(status)
    if number <= JOURNAL:
        return None
    return f"it was begun by a newer agentloom (journal version {number}, this one reads {JOURNAL}); upgrade first"
