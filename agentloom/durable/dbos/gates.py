"""Runs that wait at gates: found, decided, and gone on with when a gate's time is over.

A segment that ends waiting marks itself before it ends, so there is none without a mark. The mark is for finding only: what a run waits for,
and until when, stands in the segment's output. A run has gone on when its next segment is there, and the id of that is given once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from random import shuffle
from time import monotonic
from typing import Any

import sqlalchemy
from dbos import DBOS

from agentloom.checkpointing.base import CheckpointData
from agentloom.core.keeping.waiting import paused_of
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.clock import Clock
from agentloom.durable.dbos.orders import DUE, QUEUE, RUN, TIMED, WAITS, next_order, run_of, segment_id
from agentloom.durable.dbos.received import is_segment, sound
from agentloom.durable.dbos.versions import newer
from agentloom.durable.journal import RunIsBusy
from agentloom.errors import WorkflowError

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""How often a worker looks for gates whose time is over, in seconds; less often where that takes long."""

SHARE = 10
"""How much longer than a look the pause after it is at least."""

CHUNK, FEW = 500, 10
"""How many segments are asked for at once, and how many with what they hold."""


def mark(segment: str, output: Any) -> None:
    """Mark a segment that is about to end with this output if it ends waiting; in the segment's own step."""
    data = _ended_waiting(output, run_of(segment)[0])
    if data is not None:
        DBOS.update_workflow_attributes(segment, _mark_of(data), merge=True)


def _mark_of(data: CheckpointData) -> dict[str, Any]:
    deadline = paused_of(data).deadline
    return {WAITS: True, TIMED: deadline is not None, DUE: None if deadline is None else deadline.isoformat()}


def waiting(archive: Archive, timed: bool = False) -> dict[str, Mapping[str, Any]]:
    """Return the segments that wait, with their attributes; ``timed`` for those only that have a time that can be over."""
    word = TIMED if timed else WAITS
    wanted = {word: True} if archive.place.file is None else None  # DBOS doesn't look into attributes in SQLite
    marked: dict[str, Mapping[str, Any]] = {
        status.workflow_id: status.attributes
        for status in archive.client.list_workflows(
            name=RUN, status="SUCCESS", attributes=wanted, load_input=False, load_output=False
        )
        if is_segment(status.workflow_id) and status.attributes and status.attributes.get(word)
    }
    for segment in _gone_on(archive, marked):
        del marked[segment]
    return marked


def overdue(archive: Archive, now: datetime) -> list[str]:
    """Return segments that wait and whose time is over, those first that wait longest: all, or the first few hundred."""
    if archive.place.file is not None:
        return [segment for segment, known in waiting(archive, timed=True).items() if _is_over(known, now)]
    database = archive.client._sys_db
    table = database.tables.workflow_status
    due = sqlalchemy.func.jsonb_extract_path_text(table.c.attributes, DUE)
    statement = (
        sqlalchemy.select(table.c.workflow_uuid)
        .where(table.c.name == RUN, table.c.status == "SUCCESS", database._attributes_contains_clause({TIMED: True}))
        .where(due <= now.isoformat())
        .order_by(due)
        .limit(CHUNK)
    )
    with database.engine.connect() as connection:
        found = [name for row in connection.execute(statement) if is_segment(name := str(row[0]))]
    gone_on = set(_gone_on(archive, found))
    return [segment for segment in found if segment not in gone_on]


def _gone_on(archive: Archive, segments: Iterable[str]) -> list[str]:
    """Return those of some segments whose runs have gone on, and take their marks away."""
    after = {_after(segment): segment for segment in segments}
    found = [
        after[status.workflow_id]
        for some in _chunks(after)
        for status in archive.client.list_workflows(workflow_ids=some, load_input=False, load_output=False)
    ]
    for segment in found:
        archive.unmark(segment)
    return found


def load(archive: Archive, segments: Iterable[str], at_once: int = CHUNK) -> Iterator[tuple[str, CheckpointData]]:
    """Yield what segments that wait ended with."""
    for some in _chunks(segments, at_once):
        for status in archive.client.list_workflows(workflow_ids=some, load_input=False):
            run_id, _ = run_of(status.workflow_id)
            if newer(status) is not None:
                continue  # workers of that version see to it
            try:
                data = sound(partial(_ended_waiting, status.output, run_id), f"run `{run_id}`")
            except WorkflowError as error:
                log.debug("%s", error)
                continue
            if data is None:  # a life of the segment that was cut off had marked it; a later one came to another end
                archive.unmark(status.workflow_id)
                continue
            yield status.workflow_id, data


def _ended_waiting(output: Any, run_id: str) -> CheckpointData | None:
    """Return what a segment ended with that gave this output, if it ended waiting."""
    if not isinstance(output, Mapping) or output.get("status") != "paused" or output.get("checkpoint") is None:
        return None
    return CheckpointData.from_dict({**output["checkpoint"], "run_id": run_id})


def go_on(archive: Archive, segment: str, data: CheckpointData, decisions: Mapping[str, str]) -> str:
    """Have a waiting run go on, on any worker, and return its next segment. Raises ``RunIsBusy`` when it has: one of many wins."""
    _, number = run_of(segment)
    return archive.put(next_order(data, decisions), number + 1, QUEUE)


class Timekeeper:
    """Has runs go on whose gates' time is over, by the database's clock. Any number of them may look: each run goes on once."""

    def __init__(self, archive: Archive, clock: Clock) -> None:
        self._archive = archive
        self._clock = clock
        self._next = 0.0

    def look(self) -> None:
        """Look if it is time to. Raises what the database raises; look again later."""
        began = monotonic()
        if began < self._next:
            return
        looked = began
        try:
            now = self._clock.now()
            due = overdue(self._archive, now)
            looked = monotonic()
            shuffle(due)  # many workers may look at the same moment
            for segment, data in load(self._archive, due, FEW):
                self._expire(segment, data, now)
                if monotonic() - looked > LOOK_S:
                    return  # whoever looks has other things to look at
        finally:
            self._next = looked + max(LOOK_S, SHARE * (looked - began))

    def _expire(self, segment: str, data: CheckpointData, now: datetime) -> None:
        deadline = paused_of(data).deadline
        if deadline is None or deadline > now:  # the mark is of a worker that had lost the segment
            self._archive.client.update_workflow_attributes(segment, _mark_of(data), merge=True)
            return
        try:
            go_on(self._archive, segment, data, {})
            log.info("Run %s goes on: nobody decided in time", data.run_id)
        except RunIsBusy:
            log.debug("A decision about run %s, or another worker, was faster", data.run_id)
        except WorkflowError as error:  # what it went on from can't be read
            log.debug("Run %s can't go on: %s", data.run_id, error)


def _is_over(known: Mapping[str, Any], now: datetime) -> bool:
    with suppress(ValueError, TypeError):
        return datetime.fromisoformat(str(known.get(DUE))) <= now
    return True  # look into it


def _after(segment: str) -> str:
    run_id, number = run_of(segment)
    return segment_id(run_id, number + 1)


def _chunks(names: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    rest = iter(names)
    while some := list(islice(rest, size)):
        yield some
