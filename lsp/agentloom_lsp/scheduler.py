"""When a document is checked: soon after a pause, once per burst of typing, never twice at a time, the newest version only."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

logger = logging.getLogger(__name__)

R = TypeVar("R")
PAUSE = 0.3
"""Seconds without a change after which the next one doesn't belong to a burst."""
QUICK = 0.04
"""Seconds between the first change after a pause and its check."""
BURST = 0.13
"""Seconds of quiet that end a burst."""
PATIENCE = 1.5
"""Seconds after which a burst that goes on is checked all the same."""


class Handle(Protocol):
    """Something planned that can be called off."""

    def cancel(self) -> None:
        """Call it off."""


class Clock(Protocol):
    """Where time comes from; an event loop is one."""

    def time(self) -> float:
        """Return the time in seconds."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Handle:
        """Plan a call."""


@dataclass(slots=True, eq=False)
class _Job(Generic[R]):
    """What is known of one document. ``tick`` counts what happened to it; a result for an older tick is stale.

    ``hurried``: somebody waits for the newest result and not for a pause. ``content`` are those who wait for the result of this tick
    or of a later one.
    """

    tick: int = 0
    timer: Handle | None = None
    running: bool = False
    begun: bool = False
    hurried: bool = False
    changed: float = float("-inf")
    burst: float = 0.0
    cost: float = 0.0
    latest: tuple[int, R] | None = None
    waiting: list[Future[R]] = field(default_factory=list)
    content: list[tuple[int, Future[R]]] = field(default_factory=list)


class Scheduler(Generic[R]):
    """Checks documents when it is time, and hands results on if they are still the newest.

    ``prepare`` is called in the loop with a document's key and returns the work (or None: it is gone); ``submit`` has work done
    elsewhere; ``deliver`` gets each result that isn't stale. ``debounce`` is a fixed delay in seconds, None for the adaptive one.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        prepare: Callable[[str], Callable[[], R] | None],
        submit: Callable[[Callable[[], R]], Future[R]],
        deliver: Callable[[str, R], None],
    ) -> None:
        self._clock = clock
        self._prepare = prepare
        self._submit = submit
        self._deliver = deliver
        self._jobs: dict[str, _Job[R]] = {}
        self.debounce: float | None = None

    def opened(self, key: str) -> None:
        """Check a document at once: it was opened, or something it depends on changed."""
        job = self._jobs.setdefault(key, _Job())
        job.tick += 1
        self._due(key, job)

    def changed(self, key: str) -> None:
        """Check a document soon: it was edited."""
        job = self._jobs.setdefault(key, _Job())
        job.tick += 1
        now = self._clock.time()
        if now - job.changed >= PAUSE:
            job.burst = now
        delay = delay_of(now, job.changed, job.burst, job.cost) if self.debounce is None else self.debounce
        job.changed = now
        if job.timer is not None:
            job.timer.cancel()
        job.timer = self._clock.call_later(delay, self._due, key, job)

    def closed(self, key: str) -> None:
        """Forget a document; who still waits for it waits no longer."""
        job = self._jobs.pop(key, None)
        if job is not None:
            job.tick += 1
            if job.timer is not None:
                job.timer.cancel()
            for future in (*job.waiting, *(future for _, future in job.content)):
                future.cancel()

    async def next(self, key: str) -> R:
        """Return the result for the newest version, checked when its time has come. Raises ``KeyError`` for unknown documents."""
        job = self._jobs[key]
        if job.latest is not None and job.latest[0] == job.tick:
            return job.latest[1]
        future: Future[R] = asyncio.get_running_loop().create_future()
        job.waiting.append(future)
        if job.timer is None:
            self._check(key, job)
        return await future

    async def now(self, key: str) -> R:
        """Return the result for the newest version without waiting for a pause. Raises ``KeyError`` for unknown documents.

        It isn't handed on before the pause for that: who asks while typing doesn't want the diagnostics to flicker.
        """
        job = self._jobs[key]
        if job.latest is None or job.latest[0] != job.tick:
            job.hurried = True
            self._check(key, job)
        return await self.next(key)

    async def since_now(self, key: str) -> R:
        """Return the result for the version that there is now, or for a newer one: what is there first, whatever is typed meanwhile.

        Raises ``KeyError`` for unknown documents.
        """
        job = self._jobs[key]
        if job.latest is not None and job.latest[0] == job.tick:
            return job.latest[1]
        future: Future[R] = asyncio.get_running_loop().create_future()
        job.content.append((job.tick, future))
        self._check(key, job)
        return await future

    def running(self, key: str) -> bool:
        """Tell whether a document is being checked right now, and not only waits for its turn."""
        job = self._jobs.get(key)
        return job is not None and job.running and job.begun

    def latest(self, key: str) -> R | None:
        """Return the last result there is, stale or not."""
        job = self._jobs.get(key)
        return job.latest[1] if job is not None and job.latest is not None else None

    def _due(self, key: str, job: _Job[R]) -> None:
        """The time has come to show a result: check, unless somebody who was in a hurry had that done already."""
        if job.timer is not None:
            job.timer.cancel()
            job.timer = None
        if job.latest is not None and job.latest[0] == job.tick:
            self._deliver(key, job.latest[1])
        else:
            self._check(key, job)

    def _check(self, key: str, job: _Job[R]) -> None:
        if job.running or self._jobs.get(key) is not job:
            return  # one at a time: when the running one is done, the newest version follows
        work = self._prepare(key)
        if work is None:
            return
        job.running, job.begun = True, False
        tick, began = job.tick, self._clock.time()

        def begin() -> R:
            job.begun = True
            return work()

        self._submit(begin).add_done_callback(lambda future: self._done(key, job, tick, began, future))

    def _done(self, key: str, job: _Job[R], tick: int, began: float, future: Future[R]) -> None:
        job.running = False
        job.cost = self._clock.time() - began
        if self._jobs.get(key) is not job or future.cancelled():
            return
        error = future.exception()
        if error is not None:
            logger.error("a check of %s failed", key, exc_info=error)
        else:
            job.latest = (tick, future.result())
        content = [future for wanted, future in job.content if wanted <= tick]
        job.content = [(wanted, future) for wanted, future in job.content if wanted > tick]
        self._settle(job, content, error)
        if tick != job.tick:
            if job.timer is None or job.hurried or job.content:
                self._check(key, job)
            return
        job.hurried = False
        waiting, job.waiting = job.waiting, []
        self._settle(job, waiting, error)
        if error is None and job.latest is not None and job.timer is None:
            self._deliver(key, job.latest[1])

    def _settle(self, job: _Job[R], waiting: list[Future[R]], error: BaseException | None) -> None:
        for waiter in waiting:
            if waiter.done():
                continue
            if error is not None:
                waiter.set_exception(error)
            elif job.latest is not None:
                waiter.set_result(job.latest[1])


def delay_of(now: float, before: float, burst: float, cost: float) -> float:
    """Return how long to wait after a change: seconds; ``before`` is when the last one came, ``cost`` how long a check takes.

    A change after a pause waits a moment, in case it is the first of many. In a burst the wait is for its end, longer for
    documents that take long to check, but not beyond ``PATIENCE`` from the burst's beginning.
    """
    if now - before >= PAUSE:
        return QUICK
    return max(0.0, min(max(BURST, min(cost, 2 * BURST)), burst + PATIENCE - now))
