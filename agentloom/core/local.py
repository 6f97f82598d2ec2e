"""The runner in this process and in memory: workers take operations in alphabetical order, as many at once as the workflow allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import anyio

from agentloom.core.events import EventStream, RunEvent, StepFinished, StepStarted
from agentloom.core.interpreter import finished
from agentloom.core.results import JSON
from agentloom.core.runner import Op, Outcome, Settle, Verdict

Perform = Callable[[Op], Awaitable[Outcome]]


class LocalRunner:
    """Performs the batches of one workflow. ``perform_one`` never raises but when it is cancelled.

    ``recorded`` are outcomes that exist already, by path; their operations are settled first and don't run. ``may_start`` is asked before
    each operation, ``keep`` gets each new outcome before it is settled, and ``sync`` is called when a batch is done. ``told`` returns a step's output
    and value, given by its path, as events may tell them.
    """

    def __init__(
        self,
        stream: EventStream,
        perform_one: Perform,
        limit: int,
        recorded: Mapping[str, Outcome] | None = None,
        may_start: Callable[[], bool] = lambda: True,
        keep: Callable[[str, Outcome], None] = lambda path, outcome: None,
        sync: Callable[[], None] = lambda: None,
        told: Callable[[str, JSON, JSON], tuple[JSON, JSON]] = lambda path, output, value: (output, value),
    ) -> None:
        self.run_id = stream.run_id
        self._stream = stream
        self._perform_one = perform_one
        self._limit = limit
        self._may_start = may_start
        self._keep = keep
        self._sync = sync
        self._told = told
        self._drained = False
        self._stopped = False
        self._recorded: Mapping[str, Outcome] = {} if recorded is None else recorded

    def recorded(self, path: str) -> Outcome | None:
        """Return the outcome of a step that exists already."""
        return self._recorded.get(path)

    def note(self, path: str, outcome: Outcome) -> None:
        """Keep a router's decision."""
        self._keep(path, outcome)

    async def emit(self, event: RunEvent) -> None:
        """Hand an event to the run's stream; what a step gave is told without secrets."""
        if isinstance(event, StepFinished):
            output, value = self._told(event.step, event.output, event.value)
            same = output is event.output and value is event.value
            event = event if same else replace(event, output=output, value=value)
        await self._stream.emit(event)

    async def perform(self, ops: Sequence[Op], settle: Settle) -> None:
        """Perform a batch; see ``Runner``."""
        try:
            await self._perform(ops, settle)
        finally:
            self._sync()

    async def _perform(self, ops: Sequence[Op], settle: Settle) -> None:
        waiting: list[Op] = []
        goes = True
        for op in ops:
            outcome = self._recorded.get(op.path)
            if outcome is None:
                waiting.append(op)
            else:
                goes = settle(op, outcome) is Verdict.GO and goes
        if not goes:
            return
        self._drained = False
        waiting.sort(key=lambda op: op.path)
        workers = min(self._limit, len(waiting))
        todo = iter(waiting)
        if workers <= 1:
            await self._work(todo, settle, None)
            return
        async with anyio.create_task_group() as group:
            for _ in range(workers):
                group.start_soon(self._work, todo, settle, group.cancel_scope)

    async def _work(self, todo: Iterator[Op], settle: Settle, scope: anyio.CancelScope | None) -> None:
        """Perform operations until none is left or the run stops."""
        watched = self._stream.watched
        for op in todo:
            await anyio.lowlevel.checkpoint()
            if self._drained or not self._may_start():
                return
            if watched:
                await self._stream.emit(StepStarted(step=op.path, type=op.step.type, layer=op.layer))
            outcome = await self._perform_one(op)
            if self._stopped or (scope is not None and scope.cancel_called):
                return
            self._keep(op.path, outcome)
            verdict = settle(op, outcome)
            if verdict is Verdict.STOP and scope is not None:
                self._stopped = self._drained = True
                # Replies that have arrived by this moment are paid for: those who wait for them take note of that before they are stopped.
                await anyio.lowlevel.cancel_shielded_checkpoint()
                scope.cancel()
            if watched:
                event = finished(op.path, outcome)
                if verdict is Verdict.STOP:
                    # The result counts, so it is told, also when its own verdict has just cancelled this task.
                    with anyio.CancelScope(shield=True):
                        await self.emit(event)
                else:
                    await self.emit(event)
            if verdict is not Verdict.GO:
                self._drained = True
                return
