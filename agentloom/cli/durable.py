"""Runs that live in a database (``--on``): what the commands do with them. Only these commands import DBOS."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agentloom.analysis.document import WorkflowDocument
from agentloom.checkpointing.base import CheckpointData
from agentloom.cli import collect_garbage
from agentloom.cli.chronicle import Chronicle
from agentloom.cli.logs import logging_to_stderr
from agentloom.cli.running import Output, Told, leave
from agentloom.cli.signals import heed_signals, stop_signals, tell_manager, terminable
from agentloom.cli.stores import LATEST, refuse_nothing
from agentloom.cli.worlds import World, lacking, tools_of
from agentloom.core.engine import new_run_id
from agentloom.core.keeping.runs import RUNNING, redacted_among
from agentloom.core.keeping.waiting import Decisions, environment_of_runs
from agentloom.core.kinds import Tools
from agentloom.core.loader import load_data
from agentloom.core.references import put, read_references
from agentloom.core.results import WorkflowResult
from agentloom.durable.dbos.archive import QUEUED, Archive, Found
from agentloom.durable.dbos.decisions import PATIENCE_S as PATIENCE_OF_A_DECISION_S
from agentloom.durable.dbos.decisions import in_database
from agentloom.durable.dbos.feed import recorded_of
from agentloom.durable.dbos.orders import HERE, QUEUE, Order, order_for, run_of, segment_id
from agentloom.durable.dbos.packing import NO_WAYS, Ways, packed
from agentloom.durable.dbos.place import Busy, Place
from agentloom.durable.dbos.staff import why_it_waits
from agentloom.durable.dbos.unpacking import kept_document
from agentloom.durable.dbos.worker import HEED_S, Worker
from agentloom.durable.journal import RunIsBusy
from agentloom.errors import UsageError, WorkflowError
from agentloom.providers.gateway import ProviderGateway
from agentloom.similar import closest

PATIENCE_S = 2.0
"""How long a second Ctrl-C may take to cancel a run, in seconds."""

INTERRUPTED = 130

WAITS_S = 2.0
"""How often to look why a run waits, in seconds."""

log = logging.getLogger(__name__)


def equip(document: WorkflowDocument) -> tuple[ProviderGateway, Tools | None]:
    """Return what a workflow works with on this machine."""
    return World().gateway(document), tools_of(document)


def ways_of(shared: str | None, blobs: str | None) -> Ways:
    """Return the folders that are the same for whoever asks for runs and whoever performs them."""
    return Ways(*(None if name is None else Path(os.path.abspath(name)) for name in (shared, blobs)))


class Desk:
    """Where runs are asked for: a database, and this process as its worker if it is a SQLite file that nobody works on."""

    def __init__(self, place: Place, archive: Archive, worker: Worker | None, ways: Ways = NO_WAYS) -> None:
        self.place = place
        self.archive = archive
        self.worker = worker
        self._ways = ways

    def put(self, order: Order, number: int) -> str:
        """Ask for a segment and return its id.

        Raises ``RunIsBusy``, and ``WorkflowError`` for secrets that would have to go through the database, and for files that can't.
        """
        if self.worker is not None:
            self.worker.own[segment_id(str(order.input["run_id"]), number)] = order
            return self.archive.put(order, number, HERE)
        named = [*(f"state.{name}" for name in order.secrets), *order.written]
        if named:
            listed = ", ".join(f"`{name}`" for name in named)
            raise WorkflowError(
                f"{listed} is secret and would have to go through the database; give a key of the state as `--state KEY=env:NAME`,"
                " and the variable to the workers with `--env NAME`"
            )
        if self.place.file is None and number == 1:
            order = packed(order, self._ways)
        return self.archive.put(order, number, QUEUE)


@contextmanager
def desk_of(place: Place, detached: bool = False, ways: Ways = NO_WAYS) -> Iterator[Desk]:
    """Open a place; ``ways`` are the folders that the workers have too. Raises ``Busy`` when another run works on a SQLite file, ``WorkflowError`` for a database that can't be used."""
    worker: Worker | None = None
    if place.file is not None and not detached:
        worker = Worker(place, equip, alone=True)
        try:
            worker.start()
        except Busy as busy:
            if not busy.is_worker:
                raise
            worker = None
    if worker is not None:
        try:
            yield Desk(place, worker.archive, worker)
        finally:
            worker.stop()
        return
    with Archive(place, migrate=place.file is not None) as archive:
        yield Desk(place, archive, None, ways)


def run_on(
    place: Place,
    document: WorkflowDocument,
    state: Mapping[str, Any],
    output: Output,
    run_id: str | None = None,
    until: str | None = None,
    chronicle: Chronicle | None = None,
    detached: bool = False,
    ways: Ways = NO_WAYS,
) -> WorkflowResult | None:
    """Have a document run and return the result; None when nobody waits for it. ``ways`` are the folders that the workers have too.

    Raises what ``run_to_the_end`` raises.
    """
    order = order_for(document, state, run_id or new_run_id(), until)
    with terminable(), desk_of(place, detached, ways) as desk:
        segment = desk.put(order, 1)
        print(f"Run ID: {order.input['run_id']}", file=output.told, flush=True)
        return None if detached else _followed(desk, segment, output, chronicle)


def resume_on(
    place: Place,
    word: str,
    output: Output,
    decision: str | None,
    changes: Mapping[str, Any],
    given: Callable[[dict[str, Any]], Mapping[str, Any]],
    tell_redacted: Callable[[list[str], CheckpointData], None],
    history: bool,
) -> WorkflowResult:
    """Go on with a run and return the result. ``changes`` are keys of its `config`, ``given`` returns its state with what was given anew.

    Raises ``RunIsBusy`` when it is under way, or another one was faster.
    """
    with terminable(), desk_of(place) as desk:
        found = found_run(desk.archive, word)
        data = found.data
        if data.status in (RUNNING, QUEUED):
            raise RunIsBusy(f"run `{data.run_id}` is under way; `agentloom cancel {data.run_id}` stops it")
        if decision is not None and (data.status != "paused" or data.paused_step_id is None):
            option = "--approve" if decision == "approved" else "--reject"
            raise WorkflowError(
                f"run `{data.run_id}` doesn't wait at a gate, it is {data.status}; leave `{option}` out"
            )
        decisions = {data.paused_step_id: decision} if decision is not None and data.paused_step_id is not None else {}
        data.workflow_definition["config"] = {**(data.workflow_definition.get("config") or {}), **changes}
        referred = read_references(desk.archive.asked(found.segment).get("environment") or [])
        state = given(put(data.state, ((each.path, f"env:{each.variable}") for each in referred)))
        recorded = recorded_of(found.lines)
        results = {**data.step_results, **data.inside, **(recorded.outcomes if recorded is not None else {})}
        tell_redacted(redacted_among(results, data, state), data)
        load = load_data if place.file is not None else kept_document
        document = load(data.workflow_definition, data.source or f"<run {data.run_id}>")
        order = order_for(document, state, data.run_id, seed=data, decisions=decisions, lines=found.lines)
        order.input.setdefault("environment", [])
        if found.is_open:
            desk.archive.cancel(found.segment)  # whoever performed it is gone
        segment = desk.put(order, run_of(found.segment)[1] + 1)
        from agentloom.cli.chronicle import chronicle_of

        print(f"Run ID: {data.run_id}", file=output.told, flush=True)
        return _followed(desk, segment, output, chronicle_of(document, resumed=True) if history else None)


def cancel_on(place: Place, word: str) -> str:
    """Cancel a run that is under way or waits, and return its id. Raises ``WorkflowError`` for one that has ended, ``RunIsBusy`` for one
    that has just gone on.
    """
    with Archive(place) as archive:
        found = found_run(archive, word)
        if found.data.status == "paused":
            archive.cancel_waiting(found.segment, found.data)
        elif not found.is_open:
            raise WorkflowError(f"run `{found.data.run_id}` isn't under way, it is {found.data.status}")
        else:
            archive.cancel(found.segment)
        return found.data.run_id


@contextmanager
def decisions_on(
    place: Place, concurrency: int, drain_s: float
) -> Iterator[Callable[[TaskGroup, str | None], Decisions]]:
    """Open a place for decisions; see ``in_database``. Raises ``WorkflowError`` for a database that can't be used."""
    with Archive(place, migrate=place.file is not None, patience_s=PATIENCE_OF_A_DECISION_S) as archive:
        yield in_database(archive, environment_of_runs, concurrency, drain_s)


def found_run(archive: Archive, word: str) -> Found:
    """Return the run that a word names: its id, the beginning of it, or `latest`. Raises ``WorkflowError``, which says what there is."""
    refuse_nothing(word)
    with suppress(KeyError):
        return archive.find(word)
    ids = archive.ids()
    if word == LATEST and ids:
        return archive.find(ids[0])
    fitting = [name for name in ids if name.startswith(word)]
    if len(fitting) == 1:
        return archive.find(fitting[0])
    if fitting:
        names = ", ".join(f"`{name}`" for name in fitting[:5])
        raise WorkflowError(f"`{word}` begins the ids of {len(fitting)} runs: {names}; write more of it")
    near = closest(word, ids)
    cure = f"did you mean `{near}`?" if near else "`agentloom runs` lists them"
    raise WorkflowError(f"there is no run `{word}` in `{archive.place.name}`; {cure}")


def prepare_on(place: Place) -> None:
    """Make the tables of a database, or bring them up to date."""
    Archive(place, migrate=True).close()
    print(f"{place.name} is prepared", flush=True)


def work_on(
    place: Place,
    concurrency: int,
    drain_s: float,
    with_parent: bool = False,
    ways: Ways = NO_WAYS,
    variables: Collection[str] = (),
) -> None:
    """Perform runs until a signal says stop; then give those that are under way ``drain_s`` seconds.

    ``with_parent`` tells that standard input is a pipe of the process that started this one: when it is closed, that has ended, which is a signal.
    ``ways`` are the folders that whoever asks for runs has too, ``variables`` those of the environment that runs may refer to.
    """
    with terminable(), logging_to_stderr():
        os.environ.pop("AGENTLOOM_ON", None)  # its password is nothing for tools, which inherit the environment
        worker = Worker(
            place,
            equip,
            alone=False,
            concurrency=concurrency,
            ways=ways,
            variables=variables,
            lacking=partial(lacking, folder=Path(), shared=ways.shared),
        )
        worker.start()
        collect_garbage()
        with suppress(KeyboardInterrupt):  # who reads that it is ready may stop it at once
            print(f"takes runs from {place.name}, {concurrency} at once; Ctrl-C stops it", flush=True)
            tell_manager("READY=1")
            if with_parent:
                threading.Thread(target=_end_with_parent, name="agentloom-parent", daemon=True).start()
            while True:
                time.sleep(HEED_S)
        with suppress(KeyboardInterrupt):  # who reads that it stops may have it end at once
            print(f"stops when what is under way has ended, in {drain_s:g} seconds at the latest", flush=True)
            tell_manager("STOPPING=1")
            worker.stop(drain_s)
        from agentloom.tools.shell_command import kill_commands

        kill_commands()
        sys.stdout.flush()
        os._exit(0)  # DBOS's threads wait for what goes on elsewhere


def _end_with_parent() -> None:
    """Wait for the end of standard input, and stop as by a signal."""
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _followed(desk: Desk, segment: str, output: Output, chronicle: Chronicle | None) -> WorkflowResult:
    """Tell what happens in a segment and return the result. Raises ``KeyboardInterrupt`` when a signal ended that."""
    collect_garbage()
    with logging_to_stderr() as log:
        told = Told(output, log, chronicle)
        stopped = False
        try:
            with closing(told):
                stopped = anyio.run(_follow, desk, segment, told)
            if stopped:
                raise KeyboardInterrupt
            ended = desk.archive.ended(segment)
        except KeyboardInterrupt:
            stopped = True
            raise
        finally:
            if chronicle is not None and stopped:
                chronicle.end(run_of(segment)[0], None)
        if ended.code == INTERRUPTED:
            raise KeyboardInterrupt
        if ended.result is None:
            text = str(ended.error)
            raise UsageError(text) if ended.code == UsageError.exit_code else WorkflowError(text)
        if chronicle is not None:
            chronicle.end(ended.result.run_id, ended.result)
        return ended.result


async def _tell_why_it_waits(archive: Archive, segment: str) -> None:
    """Tell, as long as nobody performs a segment, when no worker that lives can."""
    told: str | None = None
    while True:
        await anyio.sleep(WAITS_S)
        try:
            why = await anyio.to_thread.run_sync(why_it_waits, archive, segment)
        except Exception as error:  # who follows the run tells that the database is away
            log.debug("Why a run waits can't be found out", exc_info=error)
            continue
        if why is not None and why != told:
            log.warning("run `%s` waits: %s", run_of(segment)[0], why)
        told = why


async def _follow(desk: Desk, segment: str, told: Told) -> bool:
    """Hand the events of a segment on until it ends; tell whether a signal ended that."""
    signalled = 0
    async with anyio.create_task_group() as group:

        async def heed(*, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
            nonlocal signalled
            try:
                with anyio.open_signal_receiver(signal.SIGINT, *stop_signals()) as signals:
                    task_status.started()
                    async for number in signals:
                        signalled += 1
                        if signalled > (2 if desk.worker is None else 1):
                            leave(told)
                        elif signalled == 2 or desk.worker is not None:
                            cancel = desk.archive.cancel if desk.worker is None else desk.worker.cancel
                            group.start_soon(anyio.to_thread.run_sync, cancel, segment)
                        else:
                            if number == signal.SIGINT:
                                print("the run goes on without this terminal; Ctrl-C again cancels it", file=sys.stderr)
                            group.start_soon(detach, 0.0 if number != signal.SIGINT else PATIENCE_S)
            finally:
                heed_signals()

        async def detach(seconds: float) -> None:
            await anyio.sleep(seconds)
            if signalled < 2:
                group.cancel_scope.cancel()
                soon = threading.Timer(PATIENCE_S, desk.archive.abandon)  # what waits for a database that is away
                soon.daemon = True
                soon.start()

        await group.start(heed)
        if desk.worker is None:
            group.start_soon(_tell_why_it_waits, desk.archive, segment)
        async for event in desk.archive.follow(segment):
            await told.event(event)
        group.cancel_scope.cancel()
    return signalled > 0
