"""The contract of runners over the durable stream: what a segment writes is what the next life of the run goes on from."""

from __future__ import annotations

import contextvars
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS
from dbos import error as dbos_error

from agentloom.checkpointing import BaseCheckpointer, CheckpointData
from agentloom.core.keeping import INTERRUPTED
from agentloom.core.keeping.host import Host
from agentloom.core.keeping.keeper import Keeper
from agentloom.core.keeping.runs import seed_of
from agentloom.durable.dbos.feed import Feed, Kept, StreamHost, recorded_of
from agentloom.durable.dbos.orders import HERE, Order, run_of
from agentloom.durable.dbos.place import place_of
from agentloom.durable.dbos.worker import Worker
from agentloom.durable.recorded import Recorded
from tests.runner_contract import RUN, House, RunnerContract


class Loan:
    """A segment that DBOS performs in a thread of its own, and whose feed a test writes to."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.order = order
        self.feed: Feed | None = None
        self.output: dict[str, Any] | None = None
        self.begun, self.done = threading.Event(), threading.Event()


class LendingWorker(Worker):
    """A worker whose segments are performed by tests, on a clock of theirs."""

    def __init__(self, url: str) -> None:
        super().__init__(place_of(url), lambda document: pytest.fail("nothing runs here"), alone=True)
        self.loans: dict[str, Loan] = {}

    def live(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Lend the feed of a segment until it is given back."""
        loan = self.loans[str(DBOS.workflow_id)]
        loan.feed = Feed(contextvars.copy_context())
        loan.begun.set()
        loan.done.wait()
        loan.feed.close()
        if loan.output is None:
            raise dbos_error.DBOSWorkflowCancelledError("its process died")
        return loan.output


class DurableHouse(House, Host):
    """The run in the database; each life is a segment."""

    def __init__(self, worker: LendingWorker) -> None:
        self.worker = worker
        self.archive = worker.archive
        self.kept = self.store = Kept()
        self.host = self
        self.loan: Loan | None = None
        self.segment = ""
        for run_id in self.archive.ids():
            for status in self.archive.client.list_workflows(workflow_id_prefix=f"{run_id}~"):
                self.archive.client.delete_workflow(status.workflow_id)

    def open(
        self, run_id: str, checkpointer: BaseCheckpointer | None, seed: CheckpointData | None, header: Mapping[str, Any]
    ) -> Keeper:
        """Ask for the next segment, and write to its stream."""
        number, lines = 1, []
        if seed is not None:
            found = self.archive.find(run_id)
            number, lines = run_of(found.segment)[1] + 1, found.lines
        order = {"run_id": run_id, "definition": header["workflow_definition"], "source": None, "lines": lines}
        order["seed"] = seed.to_dict() if seed is not None and not lines else None
        self.loan = Loan(order)
        self.segment = f"{run_id}~{number}"
        self.worker.loans[self.segment] = self.loan
        self.archive.put(Order(order, {}, [], None), number, HERE)
        assert self.loan.begun.wait(30)
        assert self.loan.feed is not None
        return StreamHost(self.loan.feed, recorded_of(lines)).open(run_id, checkpointer, seed, header)

    def left(self) -> CheckpointData | None:
        """Return what `agentloom resume --on` would go on from."""
        self._end()
        try:
            found = self.archive.find(RUN)
        except KeyError:
            return None
        recorded = recorded_of(found.lines)
        return found.data if recorded is None else seed_of(recorded, RUN, INTERRUPTED, found.data.updated_at)

    def recorded(self) -> Recorded:
        """Return what the stream holds."""
        assert self.loan is not None
        assert self.loan.feed is not None
        self.loan.feed.flush()
        found = recorded_of([*self.loan.order["lines"], *self.archive.lines(self.segment)])
        assert found is not None
        return found

    def texts(self) -> str:
        """Return everything that the database has of the run."""
        if self.loan is not None and self.loan.feed is not None and not self.loan.done.is_set():
            self.loan.feed.flush()
        found: list[Any] = []
        for status in self.archive.client.list_workflows():
            found += [status.input, status.output, self.archive.client.list_workflow_steps(status.workflow_id)]
            found += [self.archive.lines(status.workflow_id)]
        return json.dumps(found, default=str)

    def _end(self) -> None:
        """End the segment: with the checkpoint that the life has come to, or as one that died."""
        loan, self.loan = self.loan, None
        if loan is None:
            return
        data, self.kept.data = self.kept.data, None
        if data is not None:
            loan.output = {"checkpoint": data.to_dict()}
        loan.done.set()
        if data is not None:
            self.archive.client.retrieve_workflow(self.segment).get_result(polling_interval_sec=0.01)
        else:
            assert loan.feed is not None
            loan.feed.close()
            self.archive.cancel(self.segment)


class DurableContract(RunnerContract):
    """The contract, with a database."""

    worker: LendingWorker

    def house(self, tmp_path: Path, seed: int = 0) -> House:
        """Return the database, empty."""
        return DurableHouse(self.worker)


@pytest.fixture(scope="class")
def lent_sqlite(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A lending worker on a file, for the tests of a class."""
    yield from _lent(request, f"sqlite:///{tmp_path_factory.mktemp('durable') / 'runs.db'}")


@pytest.fixture(scope="class")
def lent_postgres(request: pytest.FixtureRequest, new_postgres: Callable[[], str]) -> Iterator[None]:
    """A lending worker on a server, for the tests of a class."""
    yield from _lent(request, new_postgres())


def _lent(request: pytest.FixtureRequest, url: str) -> Iterator[None]:
    worker = LendingWorker(url)
    worker.start()
    request.cls.worker = worker
    try:
        yield
    finally:
        for segment, loan in worker.loans.items():
            if not loan.done.is_set():
                worker.archive.cancel(segment)
            loan.done.set()
        worker.stop()


@pytest.mark.usefixtures("lent_sqlite")
class TestOnSqlite(DurableContract):
    """A file."""


@pytest.mark.usefixtures("lent_postgres")
class TestOnPostgres(DurableContract):
    """A server."""
