"""The database as whoever asks for runs sees it: puts segments there, finds runs, follows them, cancels them."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple, TypeVar

import anyio
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, WorkflowStatus
from dbos import error as dbos_error
from sqlalchemy.exc import DBAPIError

from agentloom.checkpointing.base import CheckpointData
from agentloom.core.events import RunEvent
from agentloom.core.keeping.runs import INTERRUPTED, RUNNING, seed_of
from agentloom.core.needs import Needs
from agentloom.core.results import JSON, WorkflowResult
from agentloom.durable.dbos.feed import STREAM, Once, recorded_of
from agentloom.durable.dbos.listing import ALIVE, UNTOLD, Row, begun, rows
from agentloom.durable.dbos.orders import (
    NEEDS,
    NOWHERE,
    RUN,
    TIMED,
    VERSION,
    WAITS,
    Order,
    gone_on,
    next_order,
    run_of,
    segment_id,
)
from agentloom.durable.dbos.patience import GIVE_UP_S, Away, patiently
from agentloom.durable.dbos.place import SCHEMA, Place, is_held
from agentloom.durable.dbos.received import is_segment, order_of, read_json_only, sound, write_every_text
from agentloom.durable.dbos.refusals import in_a_line, reason
from agentloom.durable.dbos.sessions import abandon, engine_of
from agentloom.durable.dbos.tables import prepare
from agentloom.durable.dbos.versions import is_stranded, newer, number_of
from agentloom.durable.dbos.wire import event_from_wire, result_from_wire
from agentloom.durable.journal import RunIsBusy
from agentloom.durable.recorded import Recorded
from agentloom.errors import AgentLoomError, UsageError, WorkflowError

read_json_only()
write_every_text()

_Answer = TypeVar("_Answer")

APPLICATION = "agentloom"
POOL = 4
LOOK_S = 0.05
"""How often a reader looks for news, in seconds."""

ADOPTED = "adopted"
"""What a segment has, in its order and as an attribute, that goes on in the place of the one before it, which an older version had begun."""

QUEUED = "queued"
"""The status of a run that waits for a worker."""


class Found(NamedTuple):
    """A run: its last segment, what it goes on from, and the lines of its journal if it came to no end of its own.

    ``is_open`` tells that the segment is still under way for DBOS, whoever performs it.
    """

    segment: str
    data: CheckpointData
    lines: list[str]
    is_open: bool


class Ended(NamedTuple):
    """How a segment ended: with a result, or in one line why there is none and the exit code that goes with it; 130 for a cancelled one."""

    result: WorkflowResult | None
    error: str | None = None
    code: int = 0


class Archive:
    """The runs of a place."""

    def __init__(self, place: Place, migrate: bool = False, patience_s: float = GIVE_UP_S) -> None:
        """Connect; ``migrate`` prepares a database that is new, ``patience_s`` is how long one is waited for later that is away.

        Raises ``WorkflowError`` when that fails.
        """
        self.place = place
        self._patience_s = patience_s
        self.notes: list[str] = []
        """What users should know of the runs that were looked at, a sentence each."""
        self.is_ours = False
        """Whether nobody but this process works on the database, so that nothing in it is under way."""
        logging.getLogger("dbos").setLevel(logging.CRITICAL)
        if place.file is not None and not place.file.exists() and not migrate:
            raise WorkflowError(
                f"there is no database `{place.file}`; `agentloom run FILE --on {place.name}` makes one"
            )
        try:
            if migrate:
                if place.file is not None:
                    place.file.parent.mkdir(parents=True, exist_ok=True)
                DBOS.migrate(place.url, schema=SCHEMA)
                if place.file is None:
                    prepare(place)
            self.engine = engine_of(place, POOL)
            """Connections to a database that is no file."""
            self.client = DBOSClient(
                system_database_url=place.url,
                system_database_engine=self.engine,
                dbos_system_schema=SCHEMA,
                serializer=DBOSPortableJSONSerializer(),
                system_database_pool_size=POOL,
                application_name=APPLICATION,
                retry_connection_errors=False,
            )
            self.client.list_workflows(name=RUN, limit=1, load_input=False, load_output=False)
        except Exception as error:
            raise WorkflowError(f"`{place.name}` can't be used: {reason(error, place)}") from None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
        if isinstance(error, DBAPIError):
            raise WorkflowError(f"`{self.place.name}` refuses it: {reason(error, self.place)}") from None

    def close(self) -> None:
        """Disconnect. As a context manager it also says in a line what the database refuses, with ``WorkflowError``."""
        self.client.destroy()
        if self.engine is not None:
            self.engine.dispose()

    def abandon(self) -> None:
        """Break the connections, from any thread, so that nobody waits for an answer any more."""
        abandon()

    def put(self, order: Order, number: int, queue: str) -> str:
        """Ask for a segment, and return its id. Raises ``RunIsBusy`` when it was asked for already: one of many wins.

        When the connection breaks, it is asked for again, and what asked first is known by a number of its own.
        """
        run_id = str(order.input["run_id"])
        segment = segment_id(run_id, number)
        if number > 1:
            before = segment_id(run_id, number - 1)
            order = gone_on(order, self._patiently(segment, lambda: self.asked(before)), before)
        asked = {**order.input, "asked": os.urandom(8).hex()}
        if asked.get("shared") is not None:
            asked[NEEDS] = {**(asked.get(NEEDS) or Needs().to_dict()), "shared": asked["shared"]}
        tries = count()

        def enqueue() -> None:
            is_first = next(tries) == 0
            try:
                self._enqueue(asked, segment, queue)
            except dbos_error.DBOSWorkflowIDInUseError:
                there = self.status(segment).input
                if is_first or there is None or there["args"][0].get("asked") != asked["asked"]:
                    raise

        try:
            self._patiently(segment, enqueue)
        except dbos_error.DBOSWorkflowIDInUseError:
            if number == 1:
                raise UsageError(
                    f"there is a run `{run_id}` in `{self.place.name}` already; take another `--run-id`"
                ) from None
            raise RunIsBusy(f"run `{run_id}` was resumed by another process meanwhile; look at it again") from None
        if number > 1:
            with suppress(Exception):  # whoever looks for what waits finds the next segment, too
                self.unmark(segment_id(run_id, number - 1))
        return segment

    def unmark(self, segment: str) -> None:
        """Take away the mark of a segment whose run waited, and has gone on."""
        self.client.update_workflow_attributes(segment, {WAITS: False, TIMED: False}, merge=True)

    def _enqueue(self, order: dict[str, JSON], segment: str, queue: str) -> None:
        _, number = run_of(segment)
        self.client.enqueue(
            {
                "workflow_name": RUN,
                "queue_name": queue,
                "workflow_id": segment,
                "workflow_id_reuse_policy": "reject",
                "app_version": VERSION,
                "attributes": {
                    **begun(order, number),
                    **({ADOPTED: True} if order.get(ADOPTED) else {}),
                    **({NEEDS: order[NEEDS]} if NEEDS in order else {}),
                },
            },
            order,
        )

    # --- finding runs

    def rows(self) -> Iterator[Row]:
        """Yield every run as a list shows it, the latest first."""
        for row in rows(self.client, self._word):
            if row.status == UNTOLD:
                data = self.whole(row)
                row = row._replace(status=data.status, paused_step=data.paused_step_id, cost_usd=data.total_cost_usd)
            yield row

    def whole(self, row: Row) -> CheckpointData:
        """Return a run of a list as far as it has come; one that can't be read with nothing in it."""
        try:
            return self._found(row.segment).data
        except (AgentLoomError, KeyError):  # `runs show` says why
            word = "failed" if row.status == UNTOLD else row.status
            return CheckpointData(row.workflow or "(unreadable)", row.run_id, {}, {}, {}, word, updated_at=row.updated)

    def find(self, run_id: str) -> Found:
        """Return a run. Raises ``KeyError`` for an unknown one, ``WorkflowError`` for one that can't be read."""
        numbers = [
            run_of(status.workflow_id)[1]
            for status in self.client.list_workflows(
                name=RUN, workflow_id_prefix=f"{run_id}~", load_input=False, load_output=False
            )
            if is_segment(status.workflow_id) and run_of(status.workflow_id)[0] == run_id
        ]
        if not numbers:
            raise KeyError(run_id)
        return self._found(segment_id(run_id, max(numbers)))

    def ids(self) -> list[str]:
        """Return the ids of all runs, the latest first."""
        return [row.run_id for row in rows(self.client, lambda _: RUNNING)]

    def _found(self, segment: str) -> Found:
        status = self.status(segment)
        return sound(lambda: self._read(status), f"run `{run_of(segment)[0]}`")

    def _read(self, status: WorkflowStatus) -> Found:
        segment = status.workflow_id
        run_id, _ = run_of(segment)
        is_open = status.status in ALIVE
        if why := newer(status):
            raise WorkflowError(why)
        output = status.output if isinstance(status.output, Mapping) else {}
        if output.get("checkpoint") is not None:
            return Found(segment, CheckpointData.from_dict({**output["checkpoint"], "run_id": run_id}), [], False)
        order: Mapping[str, Any] = status.input["args"][0] if status.input else {}
        lines = [*order.get("lines", ()), *self.lines(segment)]
        recorded = recorded_of(lines)
        updated = _time_of(status)
        if is_open:
            word = self._word(status)
        else:
            word = "cancelled" if status.status == "CANCELLED" else "failed"
        if recorded is not None:
            return Found(segment, seed_of(recorded, run_id, word, updated), lines, is_open)
        if order.get("seed") is not None:
            return Found(
                segment, CheckpointData.from_dict({**order["seed"], "run_id": run_id, "status": word}), [], is_open
            )
        header = {
            "run_id": run_id,
            "workflow_name": str(order.get("definition", {}).get("name") or ""),
            "workflow_definition": order.get("definition", {}),
            "state": order.get("state", {}),
            "step_results": {},
            "source": order.get("source"),
            "created_at": updated,
        }
        return Found(segment, seed_of(Recorded.begun(header), run_id, word, updated), [], is_open)

    def _word(self, status: WorkflowStatus) -> str:
        """Return the status of a run whose segment is under way for DBOS."""
        is_unheld = status.status == "PENDING" and self.place.file is not None and not is_held(self.place.file)
        if self.is_ours or is_unheld:
            return INTERRUPTED
        if not is_stranded(self.place, status):
            return QUEUED if status.status == "ENQUEUED" else RUNNING
        run_id, _ = run_of(status.workflow_id)
        if why := newer(status):
            self.notes.append(f"run `{run_id}` waits for a worker of its version, and none lives: {why}")
        else:
            self.notes.append(
                f"run `{run_id}` was begun by an older agentloom (journal version {number_of(status)}), and no worker of"
                f" that version lives; a worker of this version goes on with it, or `agentloom resume {run_id}` does"
            )
        return INTERRUPTED

    def asked(self, segment: str) -> Mapping[str, Any]:
        """Return a segment's order as it stands in the database, where anything may stand; nothing for one that is none or isn't there."""
        found = self.client.list_workflows(workflow_ids=[segment], load_output=False)
        given = found[0].input if found else None
        args = given.get("args") if isinstance(given, Mapping) else None
        order = args[0] if isinstance(args, list | tuple) and len(args) == 1 else None
        return order if isinstance(order, Mapping) else {}

    def order(self, segment: str) -> Mapping[str, Any]:
        """Return what a segment was asked to do. Raises ``WorkflowError`` for one that can't be read, or isn't there."""
        return order_of(dict(self.asked(segment)), segment)

    def status(self, segment: str) -> WorkflowStatus:
        """Return what DBOS knows of a segment. Raises ``KeyError`` for an unknown one."""
        found = self.client.list_workflows(workflow_ids=[segment])
        if not found:
            raise KeyError(segment)
        return found[0]

    def lines(self, segment: str) -> list[str]:
        """Return the lines of its journal that a segment has written so far."""
        return [line for value in self._written(segment) for line in value.get("lines", ())]

    def events(self, segment: str) -> Iterator[RunEvent]:
        """Yield the events that a segment has written so far."""
        for value in self._written(segment):
            for data in value.get("events", ()):
                event = event_from_wire(data, run_of(segment)[0])
                if event is not None:
                    yield event

    def _written(self, segment: str) -> Iterator[Mapping[str, Any]]:
        try:
            yield from filter(Once(), self.client.read_stream(segment, STREAM, timeout_seconds=0))
        except dbos_error.DBOSStreamTimeoutError:
            return  # all of it, for now

    # --- following and ending one

    async def follow(self, segment: str) -> AsyncIterator[RunEvent]:
        """Yield the events of a segment until it ends; of those that begin the run, the first. A database that is away is waited for.

        Raises ``WorkflowError`` when it doesn't come back.
        """
        run_id, _ = run_of(segment)
        begun = False
        following: str | None = segment
        while following is not None:
            offset, is_new, away = 0, Once(), Away(self.place, run_id)
            while True:
                values = self.client.read_stream_async(following, STREAM, offset=offset, polling_interval_sec=LOOK_S)
                try:
                    async with aclosing(values):
                        async for value in values:
                            offset += 1
                            away.is_back()
                            for data in value.get("events", ()) if is_new(value) else ():
                                event = event_from_wire(data, run_id)
                                if event is None or (begun and event.name == "run_started"):
                                    continue
                                begun = begun or event.name == "run_started"
                                yield event
                    break
                except Exception as error:
                    await anyio.sleep(away.pause_s(error))
            following = await anyio.to_thread.run_sync(self._rest_of, following)

    def ended(self, segment: str) -> Ended:
        """Return how a segment ended. A database that is away is waited for.

        Raises ``WorkflowError`` when it doesn't come back, and for a result that can't be read.
        """
        while (rest := self._rest_of(segment)) is not None:
            segment = rest
        status = self._patiently(segment, lambda: self.status(segment))
        output = status.output if isinstance(status.output, Mapping) else {}
        if output.get("result") is not None:
            return Ended(sound(lambda: result_from_wire(output["result"]), f"the result of segment `{segment}`"))
        if output.get("refused") is not None:
            return Ended(None, str(output["refused"]), int(output.get("code", 1)))
        if status.status == "CANCELLED":
            return Ended(None, f"run `{run_of(segment)[0]}` was cancelled", 130)
        if isinstance(status.error, str):
            return Ended(None, f"segment `{segment}` can't be read: what the database holds isn't JSON", 1)
        return Ended(None, f"the worker failed: {in_a_line(status.error or status.status)}", 1)

    def _patiently(self, segment: str, ask: Callable[[], _Answer]) -> _Answer:
        return patiently(Away(self.place, run_of(segment)[0], self._patience_s), ask)

    def cancel(self, segment: str) -> None:
        """Stop a segment: it starts nothing more, and what it does is stopped where it is performed."""

        def cancel() -> None:
            following: str | None = segment
            while following is not None:
                self.client.cancel_workflow(following)
                following = self._rest_of(following)

        self._patiently(segment, cancel)

    def _rest_of(self, segment: str) -> str | None:
        """Return the segment that a newer version has asked for in the place of this one."""
        run_id, number = run_of(segment)
        after = segment_id(run_id, number + 1)
        found = self._patiently(
            segment,
            lambda: self.client.list_workflows(workflow_ids=[after], load_input=False, load_output=False),
        )
        return after if found and (found[0].attributes or {}).get(ADOPTED) else None

    def cancel_waiting(self, segment: str, data: CheckpointData) -> None:
        """Cancel a run that waits: the segment that a decision would have begun is taken. Raises ``RunIsBusy`` when it has gone on."""
        _, number = run_of(segment)
        self.cancel(self.put(next_order(data, {}), number + 1, NOWHERE))

    def take_back(self, queue: str) -> None:
        """Cancel what waits in a queue that nobody takes from any more."""
        for status in self.client.list_workflows(
            status="ENQUEUED", queue_name=queue, load_input=False, load_output=False
        ):
            self.client.cancel_workflow(status.workflow_id)


def _time_of(status: WorkflowStatus) -> str:
    """Return when something last happened to a segment: ISO 8601, UTC."""
    return datetime.fromtimestamp((status.updated_at or status.created_at or 0) / 1000, UTC).isoformat()
