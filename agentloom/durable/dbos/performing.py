"""How one segment is performed: what it was asked to do is checked, its workflow loaded, and the engine run, which writes into the feed."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import anyio

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent, StepStarted
from agentloom.core.kinds import Tools
from agentloom.core.loader import load_data
from agentloom.core.preparation import prepare
from agentloom.core.references import Hidden, put, read_references, resolve
from agentloom.core.results import JSON
from agentloom.core.secrets import redaction_for
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.clock import Clock
from agentloom.durable.dbos.feed import Feed, Kept, StreamHost
from agentloom.durable.dbos.orders import INPUT_VERSION, Order, run_of
from agentloom.durable.dbos.packing import Ways
from agentloom.durable.dbos.received import begun_from, is_segment, order_of, recorded_in
from agentloom.durable.dbos.refusals import refused
from agentloom.durable.dbos.sessions import is_away
from agentloom.durable.dbos.turns import AllTurns
from agentloom.durable.dbos.unpacking import document_of
from agentloom.durable.dbos.wire import event_to_wire, result_to_wire
from agentloom.errors import AgentLoomError, WorkflowError
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.setup import stated_limits

log = logging.getLogger(__name__)

AGAIN_S = 0.5
"""After what time a database that is away is asked again for what earlier lives of a segment wrote down, in seconds."""

Equip = Callable[[WorkflowDocument], tuple[ProviderGateway, Tools | None]]
"""Returns what a workflow works with on this machine: its providers and its tools."""


class Life:
    """One segment that is performed in this process. ``over`` is set when that has ended."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.over = threading.Event()
        self.feed: Feed | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None

    def enter(self, scope: anyio.CancelScope) -> None:
        """Tell what to cancel."""
        self._loop, self._scope = asyncio.get_running_loop(), scope
        if self.is_cancelled:
            scope.cancel()

    def cancel(self) -> None:
        """Stop what is running; from any thread."""
        self.is_cancelled = True
        if self.feed is not None:
            self.feed.hurry()
        if self._loop is not None and self._scope is not None:
            try:
                self._loop.call_soon_threadsafe(self._scope.cancel)
            except RuntimeError:
                log.debug("It has ended just now")


class Performer:
    """Performs segments of a place on this machine. ``equip`` is asked for each of them; ``own`` are the orders that this process gave itself,
    by the id of the segment; ``ways`` and ``variables`` are what `Worker` says; ``turns`` the limits that workers share.
    """

    def __init__(
        self,
        archive: Archive,
        equip: Equip,
        clock: Clock,
        own: dict[str, Order],
        ways: Ways,
        variables: frozenset[str],
        turns: AllTurns | None,
    ) -> None:
        self._archive = archive
        self._equip = equip
        self._clock = clock
        self._own = own
        self._ways = ways
        self._variables = variables
        self._turns = turns

    async def perform(self, segment: str, order: object, feed: Feed, life: Life) -> dict[str, JSON] | None:
        """Perform a segment and return what it gives back; None when it was cancelled. ``order`` may be anything that stands in the database."""
        output: dict[str, JSON] | None = None
        with anyio.CancelScope() as scope:
            life.enter(scope)
            try:
                checked = order_of(order, segment)
                with self._document(segment, checked) as document:
                    output = await self._run(segment, checked, feed, document)
            except AgentLoomError as error:
                output = feed.hidden.value(refused(error))
            except Exception as error:
                if not feed.hidden:
                    raise
                raise RuntimeError(feed.hidden.value(f"{type(error).__name__}: {error}")) from None
        return output

    def _document(self, segment: str, order: Mapping[str, Any]) -> AbstractContextManager[WorkflowDocument]:
        """Return the workflow of a segment. Raises ``AgentLoomError`` for one that can't be run."""
        own = self._own.get(segment)
        if own is not None and own.document is not None:
            return nullcontext(own.document)
        if self._archive.place.file is not None:  # it was asked for on this machine
            return nullcontext(load_data(order["definition"], order["source"] or f"<run {order['run_id']}>"))
        if isinstance(of := order.get("files_of"), str) and is_segment(of) and run_of(of)[0] == order["run_id"]:
            order = {**order, "files": self._archive.order(of).get("files")}
        return document_of(order, self._ways)

    async def _run(
        self, segment: str, order: Mapping[str, Any], feed: Feed, document: WorkflowDocument
    ) -> dict[str, JSON]:
        run_id = str(order["run_id"])
        own = self._own.pop(segment, None)
        state = self._state(order, own, document, feed)
        gateway, tools = self._equip(document)
        if self._turns is not None:
            gateway.share(stated_limits(gateway, document.context.settings.providers), self._turns.of)

        async def tell(event: RunEvent) -> None:
            if isinstance(event, StepStarted) and not feed.is_safe():
                await asyncio.to_thread(feed.flush)  # what the step depends on; the others go on meanwhile
            feed.event({**event_to_wire(event), "time": self._clock.now().isoformat()})

        written = await self._written(segment)
        recorded = recorded_in([*order["lines"], *written], segment)
        seed = begun_from(order, recorded, segment)
        sources = {None if document.path is None else str(document.path): order["source"]}
        kept = Kept(sources)
        try:
            engine = WorkflowEngine(
                document,
                gateway,
                tools,
                kept,
                run_id,
                tell,
                order["until"],
                host=StreamHost(feed, recorded, self._clock.now, sources),
            )
            if seed is not None:
                engine.go_on(seed, order["decisions"])
            result = await engine.run(state)
        finally:
            with anyio.CancelScope(shield=True):
                await gateway.close()
        output: dict[str, JSON] = {
            "version": INPUT_VERSION,
            "status": result.status,
            "result": result_to_wire(result),
            "checkpoint": None if kept.data is None else kept.data.to_dict(),
        }
        return feed.hidden.value(output) if feed.hidden else output

    def _state(
        self, order: Mapping[str, Any], own: Order | None, document: WorkflowDocument, feed: Feed
    ) -> dict[str, JSON]:
        """Return the state that a segment begins with, secrets included, and see to it that those by reference are written nowhere.

        Raises ``WorkflowError`` for a reference that this worker doesn't follow.
        """
        state = {**order["state"], **(own.secrets if own is not None else {})}
        references = read_references(order.get("environment") or [])
        if not references:
            return state
        redaction = redaction_for(prepare(document), os.environ)
        for reference in references:
            if not redaction.names(reference.path):
                raise WorkflowError(f"`{reference.place}` isn't marked secret, so no variable may stand there")
        values = resolve(references, os.environ, lambda name: own is not None or name in self._variables)
        feed.hidden = Hidden(values)
        return put(state, ((reference.path, value) for reference, value in zip(references, values, strict=True)))

    async def _written(self, segment: str) -> list[str]:
        """Return what earlier lives of a segment wrote down. A database that is away just now is waited for."""
        while True:
            try:
                return await asyncio.to_thread(self._archive.lines, segment)
            except Exception as error:
                if not is_away(error):
                    raise
                await anyio.sleep(AGAIN_S)
