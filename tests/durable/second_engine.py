"""Another durable engine below the same seam: Absurd, which keeps tasks and their checkpoints in PostgreSQL. For tests alone.

A segment is a task, and a line of its journal a checkpoint, which Absurd keeps by name: `line`, `line#2`, …. Who claims a task after a death finds
them, and writes on after the last. Nothing of the engine is different from a run on DBOS, and nothing of a host but what is said here.

``python -m tests.durable.second_engine URL`` performs the tasks of a database, until it is killed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, cast

import absurdctl
import anyio
import psycopg
from absurd_sdk import Absurd, CancelledTask, FailedTask, SuspendTask, TaskContext

from agentloom.cli.durable import equip
from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data
from agentloom.durable.dbos.feed import Feed, Kept, StreamHost, recorded_of
from agentloom.durable.dbos.orders import Order, segment_id
from agentloom.durable.dbos.received import begun_from, order_of
from agentloom.durable.dbos.wire import result_to_wire

QUEUE = "runs"
TASK = "agentloom.run"
LINE = "line"


def prepare(session: psycopg.Connection[Any]) -> None:
    """Make Absurd's tables in a database, and the queue."""
    session.execute(absurdctl.BUNDLED_SCHEMA_SQL.encode())
    Absurd(session, QUEUE).create_queue()


def put(session: psycopg.Connection[Any], order: Order, number: int) -> tuple[str, bool]:
    """Ask for a segment; return the id of its task, and whether it is a new one: of many who ask for the same, one is the first.

    In SQL, since the library doesn't hand on which it is.
    """
    key = segment_id(str(order.input["run_id"]), number)
    options = {
        "max_attempts": 1_000_000,
        "retry_strategy": {"kind": "none"},
        "headers": {"segment": key},
        "idempotency_key": key,
    }
    row = session.execute(
        "SELECT task_id, created FROM absurd.spawn_task(%s, %s, %s, %s)",
        (QUEUE, TASK, json.dumps(order.input), json.dumps(options)),
    ).fetchone()
    assert row is not None
    return row[0], row[1]


class Ledger:
    """Stands where a feed stands: writes every line at once. ``lines`` are those of all lives of the task."""

    def __init__(self, context: TaskContext) -> None:
        self.broken: OSError | None = None
        self.lines: list[str] = []
        self._context = context
        self._next = context.begin_step(LINE)
        while self._next.done:
            self.lines.append(str(self._next.state))
            self._next = context.begin_step(LINE)

    def line(self, line: str, urgent: bool) -> None:
        """Keep a line, unless the task was claimed by somebody else meanwhile."""
        if self.broken is not None:
            return
        try:
            self._context.complete_step(self._next, line)
        except (CancelledTask, FailedTask):
            self.broken = OSError("another worker has taken the run over, or it was cancelled")
            return
        self.lines.append(line)
        self._next = self._context.begin_step(LINE)

    def mark(self) -> None:
        """Everything is written already."""

    def is_safe(self) -> bool:
        """Everything is written already."""
        return True

    def flush(self) -> None:
        """Everything is written already."""

    def host(self, before: list[str]) -> StreamHost:
        """Return a host that goes on with this journal; ``before`` are the lines of earlier segments."""
        return StreamHost(cast(Feed, self), recorded_of([*before, *self.lines]))


async def perform(order: Mapping[str, Any], segment: str, ledger: Ledger) -> dict[str, Any]:
    """Perform a segment, or go on with it, and return how it ended."""
    order = order_of(order, segment)
    recorded = recorded_of([*order["lines"], *ledger.lines])
    seed = begun_from(order, recorded, segment)
    document = load_data(order["definition"], order["source"])
    gateway, tools = equip(document)
    kept = Kept()
    engine = WorkflowEngine(document, gateway, tools, kept, order["run_id"], host=ledger.host(order["lines"]))
    if seed is not None:
        engine.go_on(seed, order["decisions"])
    result = await engine.run(order["state"])
    await gateway.close()
    if ledger.broken is not None:
        raise SuspendTask
    return {"result": result_to_wire(result), "checkpoint": None if kept.data is None else kept.data.to_dict()}


def main() -> None:
    """Perform tasks; a claim that isn't prolonged by new lines is given to somebody else after so many seconds."""
    client = Absurd(sys.argv[1], QUEUE)

    @client.register_task(TASK)
    def run(order: Any, context: TaskContext) -> Any:
        return anyio.run(perform, order, str(context.headers["segment"]), Ledger(context))

    print("takes runs", flush=True)
    client.start_worker(f"worker-{os.getpid()}", claim_timeout=int(sys.argv[2]), poll_interval=0.1)


if __name__ == "__main__":
    main()
