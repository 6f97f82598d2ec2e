"""Deleting runs: whole, with all segments, journals and inputs, a batch at a time, beside workers that live."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.listing import ALIVE, Row
from agentloom.durable.dbos.orders import RUN, run_of, segment_id
from agentloom.durable.dbos.place import SCHEMA, Busy, FileLock, Place

BATCH = 100
"""How many runs are deleted at once."""

_HELD = (
    ("workflow_input", "inputs"),
    ("workflow_output", "output"),
    ("operation_outputs", "output"),
    ("streams", "value"),
)
"""The tables and columns that hold what a segment was asked, what it gave back and what happened in it."""


def pruned(archive: Archive, rows: Iterable[Row], dry_run: bool) -> Iterator[tuple[Row, int]]:
    """Delete runs, and yield each that is gone, or would be, with the bytes that it took.

    One that has gone on since it was listed stays.
    """
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        gone_on = _gone_on(archive, batch)
        batch = [row for row in batch if row.segment not in gone_on]
        ids = {row.run_id: _segments(row) for row in batch}
        sizes = _sizes(archive.place, [name for names in ids.values() for name in names])
        if not dry_run:
            archive.client.delete_workflows([name for names in ids.values() for name in names])
        for row in batch:
            yield row, sum(sizes.get(name, 0) for name in ids[row.run_id])


def give_back(place: Place) -> None:
    """Have the room of what was deleted taken by what comes next, now; a SQLite file that nobody works on gets smaller."""
    if place.file is not None:
        with suppress(Busy, sqlite3.Error):
            lock = FileLock(place.file, is_worker=False)
            try:
                with closing(sqlite3.connect(place.file)) as session:
                    session.execute("VACUUM")
            finally:
                lock.close()
        return
    import psycopg

    # PostgreSQL does it by itself, too, some time; a role that doesn't own the tables is told so, and nothing happens.
    tables = ", ".join(f"{SCHEMA}.{table}" for table in ("workflow_status", *(table for table, _ in _HELD)))
    with suppress(psycopg.Error), psycopg.connect(place.url, autocommit=True) as session:
        session.execute(f"VACUUM {tables}".encode())


def _segments(row: Row) -> list[str]:
    return [segment_id(row.run_id, number) for number in range(1, run_of(row.segment)[1] + 1)]


def _gone_on(archive: Archive, batch: Sequence[Row]) -> set[str]:
    """Return the last segments of runs that went on, or are under way though they were not when they were listed."""
    following = {segment_id(row.run_id, run_of(row.segment)[1] + 1): row.segment for row in batch}
    found = archive.client.list_workflows(
        name=RUN, workflow_ids=[*following, *following.values()], load_input=False, load_output=False
    )
    states = {status.workflow_id: status.status for status in found}
    return {
        row.segment
        for row in batch
        if segment_id(row.run_id, run_of(row.segment)[1] + 1) in states
        or (not row.is_open and states.get(row.segment) in ALIVE)
    }


def _sizes(place: Place, names: Sequence[str]) -> dict[str, int]:
    """Return how many bytes each of some segments takes, indexes left out."""
    found: dict[str, int] = {}
    if not names:
        return found
    if place.file is not None:
        marks = ", ".join("?" * len(names))
        with closing(sqlite3.connect(place.file)) as session:
            for table, column in _HELD:
                found = _added(
                    found,
                    session.execute(
                        f"SELECT workflow_uuid, SUM(LENGTH(CAST({column} AS BLOB))) FROM {table}"
                        f" WHERE workflow_uuid IN ({marks}) GROUP BY 1",
                        names,
                    ),
                )
        return found
    import psycopg

    with psycopg.connect(place.url, autocommit=True) as server:
        for table, column in _HELD:
            query = (
                f"SELECT workflow_uuid, SUM(OCTET_LENGTH({column})) FROM {SCHEMA}.{table}"
                " WHERE workflow_uuid = ANY(%s) GROUP BY 1"
            )
            found = _added(found, server.execute(query.encode(), (list(names),)))
    return found


def _added(found: dict[str, int], sizes: Iterable[tuple[str, int | None]]) -> dict[str, int]:
    for name, size in sizes:
        found[name] = found.get(name, 0) + int(size or 0)
    return found
