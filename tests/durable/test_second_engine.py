"""The seam holds another engine, too: the contract of runners on Absurd. `tests/scale` has its workers killed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import psycopg
import pytest
from absurd_sdk import Absurd, SuspendTask, TaskContext

from agentloom.checkpointing import BaseCheckpointer, CheckpointData
from agentloom.core.keeping import INTERRUPTED
from agentloom.core.keeping.host import Host
from agentloom.core.keeping.keeper import Keeper
from agentloom.core.keeping.runs import seed_of
from agentloom.durable.dbos.feed import Kept, recorded_of
from agentloom.durable.dbos.orders import Order
from agentloom.durable.recorded import Recorded
from tests.durable.second_engine import LINE, QUEUE, TASK, Ledger, prepare, put
from tests.runner_contract import RUN, House, RunnerContract

LEASE_S = 60


class Claim:
    """A task that a test performs; its thread is Absurd's."""

    def __init__(self, context: TaskContext) -> None:
        self.context = context
        self.ledger = Ledger(context)
        self.output: dict[str, Any] | None = None
        self.done = threading.Event()


class AbsurdHouse(House, Host):
    """The run in Absurd's tables. A life that ends in a death lets its claim expire; the next one claims the task again."""

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        self.session = session
        self.client = Absurd(session, QUEUE)
        self.client.register_task(TASK)(self._lend)
        self.kept = self.store = Kept()
        self.host = self
        self.claims: Queue[Claim] = Queue()
        self.claim: Claim | None = None
        self.is_begun = False
        self.thread: threading.Thread | None = None
        self.task = ""
        self.number = 0
        self.saved: CheckpointData | None = None
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.client.drop_queue()
        self.client.create_queue()
        self._pass_time(0)

    def open(
        self, run_id: str, checkpointer: BaseCheckpointer | None, seed: CheckpointData | None, header: Mapping[str, Any]
    ) -> Keeper:
        """Go on with the task that was claimed, or ask for a new one."""
        if self.claim is None:
            self.number += 1
            order = {"run_id": run_id, "seed": None if seed is None else seed.to_dict()}
            self.task, is_new = put(self.session, Order(order, {}, [], None), self.number)
            assert is_new
            self._take()
        assert self.claim is not None
        self.is_begun = True
        return self.claim.ledger.host([]).open(run_id, checkpointer, seed, header)

    def left(self) -> CheckpointData | None:
        """Return what the next life goes on from: a checkpoint, or the lines that it finds where it claims the task of a dead one."""
        self._end()
        if self.claim is None:
            return self.saved
        recorded = recorded_of(self.claim.ledger.lines)
        return None if recorded is None else seed_of(recorded, RUN, INTERRUPTED, "")

    def recorded(self) -> Recorded:
        """Return what stands in the tables."""
        rows = self.session.execute(
            f"SELECT checkpoint_name, state FROM absurd.c_{QUEUE} WHERE task_id = %s".encode(), (self.task,)
        ).fetchall()
        lines = {int(name.removeprefix(LINE).removeprefix("#") or 1): state for name, state in rows}
        found = recorded_of([lines[number] for number in sorted(lines)])
        assert found is not None
        return found

    def texts(self) -> str:
        """Return everything that the tables have."""
        tables = [f"SELECT row_to_json(x) FROM absurd.{kind}_{QUEUE} x" for kind in "trc"]
        return json.dumps([self.session.execute(query.encode()).fetchall() for query in tables])

    def close(self) -> None:
        """Let go of what is claimed."""
        if self.claim is not None:
            self._give_back()

    def _end(self) -> None:
        """End the life: with the checkpoint that it has come to, or by death; then the task is claimed anew."""
        if self.claim is None or not self.is_begun:
            return
        data, self.kept.data = self.kept.data, None
        if data is not None:
            self.claim.output, self.saved = {"checkpoint": data.to_dict()}, None
        self._give_back()
        if data is None:
            self._pass_time(LEASE_S + 1)
            self._take()
        else:
            snapshot = self.client.fetch_task_result(self.task)
            assert snapshot is not None
            self.saved = CheckpointData.from_dict(snapshot.result["checkpoint"])  # type: ignore[index, call-overload]

    def _take(self) -> None:
        self.thread = threading.Thread(target=self.client.work_batch, args=("test", LEASE_S))
        self.thread.start()
        self.claim, self.is_begun = self.claims.get(timeout=30), False

    def _give_back(self) -> None:
        assert self.claim is not None
        assert self.thread is not None
        self.claim.done.set()
        self.thread.join()
        self.claim = None

    def _lend(self, order: Any, context: TaskContext) -> Any:
        claim = Claim(context)
        self.claims.put(claim)
        claim.done.wait()
        if claim.output is None:
            raise SuspendTask  # nothing is written: as if the process were gone
        return claim.output

    def _pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.session.execute("SELECT set_config('absurd.fake_now', %s, false)", (self.now.isoformat(),))


@pytest.fixture(scope="module")
def absurd(new_postgres: Callable[[], str]) -> str:
    """A database with Absurd's tables."""
    url = new_postgres()
    with psycopg.connect(url, autocommit=True) as session:
        prepare(session)
    return url


class TestOnAbsurd(RunnerContract):
    """All of the contract."""

    houses: list[AbsurdHouse]
    session: psycopg.Connection[Any]

    @pytest.fixture(autouse=True)
    def _connected(self, absurd: str) -> Iterator[None]:
        self.houses = []
        with psycopg.connect(absurd, autocommit=True) as self.session:
            yield
            for house in self.houses:
                house.close()

    def house(self, tmp_path: Path, seed: int = 0) -> House:
        """Return empty tables."""
        for house in self.houses:
            house.close()
        self.houses.append(AbsurdHouse(self.session))
        return self.houses[-1]
