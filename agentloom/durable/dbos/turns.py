"""Turns at providers that the runs of a worker, and all workers of a database, share: who waits, who calls, who has ended.

One thread asks the counter for all runs of the worker, so that no run's event loop waits for the database, and one session does for all.
Nothing is reserved ahead: a call takes its turn when it can begin, so one that is called off while it waits has taken nothing from others.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections import deque
from functools import partial
from itertools import islice

import anyio

from agentloom.durable.dbos.counters import Counter
from agentloom.durable.dbos.tables import FULL
from agentloom.providers.rates import Leave, Limit, refuse_larger

log = logging.getLogger(__name__)

LOOK_S = 0.025
"""How often a worker looks for a free slot while calls wait for one, in seconds: sooner or later by half, by chance.

Who gives a slot back leaves it to others that wait, and looks again when all of them have.
"""

CHECK_S = 0.5
"""How often it makes sure that it still holds its slots."""

GRACE_S = 2.0
"""After a broken connection so long nobody takes a turn: others, whose connections broke too, take their slots again first."""

RETRY_S = 0.25
"""How long to wait before the next try to connect."""

AT_ONCE = 64
"""How many calls are asked for at most in one go."""


class _Call:
    """A call that waits, or goes on with its ``slot``."""

    __slots__ = ("_granted", "_loop", "is_granted", "slot", "tokens")

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.slot: int | None = None
        self.is_granted = False
        self._loop = asyncio.get_running_loop()
        self._granted = anyio.Event()

    async def wait(self) -> None:
        await self._granted.wait()

    def grant(self) -> None:
        """Let it begin; from any thread."""
        self.is_granted = True
        try:
            self._loop.call_soon_threadsafe(self._granted.set)
        except RuntimeError:
            log.debug("Its run has ended just now")


class _Line:
    """Those who wait for one provider, the slots that are held, and what is to be given back."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.waiting: deque[_Call] = deque()
        self.held: dict[int, _Call] = {}
        self.free: list[int] = []
        self.said = 0
        self.is_told = False
        self.next_look = 0.0


class SharedTurns:
    """The turns of one provider."""

    def __init__(self, all_turns: AllTurns, name: str, limit: Limit) -> None:
        self._all = all_turns
        self._name = name
        self._limit = limit

    async def enter(self, tokens: int) -> Leave:
        """Wait for a turn."""
        refuse_larger(self._name, self._limit, tokens)
        call = _Call(tokens)
        self._all.ask(self._name, self._limit, call)
        try:
            await call.wait()
        except BaseException:
            self._all.leave(self._name, call, 0)
            raise
        return partial(self._all.leave, self._name, call)


class AllTurns:
    """The turns of a worker at all providers. The thread begins with the first call that needs one."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._lines: dict[str, _Line] = {}
        self._change = threading.Condition()
        self._changed = False
        self._is_open = False
        self._was_open = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def of(self, name: str, limit: Limit) -> SharedTurns:
        """Return the turns of a provider."""
        return SharedTurns(self, name, limit)

    def ask(self, name: str, limit: Limit, call: _Call) -> None:
        """Put a call in line."""
        with self._change:
            line = self._lines.setdefault(name, _Line(limit))
            line.limit = limit
            line.waiting.append(call)
            self._wake()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="agentloom-turns", daemon=True)
                self._thread.start()

    def leave(self, name: str, call: _Call, said: int) -> None:
        """End a call, or take one that waits out of the line."""
        with self._change:
            line = self._lines[name]
            if not call.is_granted:
                line.waiting.remove(call)
                return
            line.said += said
            if call.slot is not None and line.held.get(call.slot) is call:
                del line.held[call.slot]
                line.free.append(call.slot)
            if line.free or (line.said and line.limit.tokens is not None):
                self._wake()

    def close(self) -> None:
        """End, and give everything back."""
        with self._change:
            self._closed = True
            self._wake()
        if self._thread is not None:
            self._thread.join(5)

    def _wake(self) -> None:
        self._changed = True
        self._change.notify_all()

    def _serve(self) -> None:
        pause: float | None = 0.0
        while True:
            with self._change:
                self._change.wait_for(lambda: self._changed or self._closed, pause)
                self._changed = False
                if self._closed:
                    break
            try:
                pause = self._look()
            except Exception as error:  # the database is away: calls wait until it is there again
                log.debug("Turns can't be counted", exc_info=error)
                self._is_open = False
                pause = RETRY_S
        self._counter.close()

    def _look(self) -> float | None:
        """Give back, and take what can be taken; return in how many seconds to look again, None for when something changes."""
        if not self._is_open:
            self._begin()
        now = time.monotonic()
        pauses: list[float] = []
        for name, line in list(self._lines.items()):
            self._give_back(name, line)
            if line.waiting and line.next_look <= now:
                self._take(name, line)
            if line.is_told and not line.waiting:
                line.is_told = False
                self._counter.wait_no_more(name)
            if line.waiting:
                pauses.append(max(0.0, line.next_look - time.monotonic()))
            elif line.held:
                pauses.append(CHECK_S)
        if pauses and min(pauses) >= CHECK_S:
            self._counter.check()
            return CHECK_S
        return min(pauses, default=None)

    def _begin(self) -> None:
        """Connect. After the first time, take the slots again that calls under way hold, and let others do so too."""
        with self._change:
            held = {name: set(line.held) for name, line in self._lines.items() if line.held}
        found = self._counter.open(held)
        with self._change:
            for name, line in self._lines.items():
                lost = held.get(name, set()) - found.get(name, set())
                for slot in lost & line.held.keys():
                    del line.held[slot]
                line.is_told = False
                if self._was_open and line.limit.concurrent is not None:
                    line.next_look = time.monotonic() + GRACE_S
        self._is_open = self._was_open = True

    def _give_back(self, name: str, line: _Line) -> None:
        with self._change:
            free, said = line.free, line.said
            line.free, line.said = [], 0
        if free or said:
            others_wait = self._counter.give_back(name, line.limit, free, said)
            line.next_look = time.monotonic() + 2 * LOOK_S if others_wait else 0.0 if free else line.next_look

    def _take(self, name: str, line: _Line) -> None:
        with self._change:
            asked = [call.tokens for call in islice(line.waiting, AT_ONCE)]
            held = list(line.held)
        taken = self._counter.take(name, line.limit, held, asked, line.is_told)
        with self._change:
            line.is_told = taken.is_told
            slots = list(taken.slots)
            for _ in range(min(taken.calls, len(line.waiting))):
                call = line.waiting.popleft()
                if slots:
                    call.slot = slots.pop(0)
                    line.held[call.slot] = call
                call.grant()
            line.free += slots  # calls were called off meanwhile
            if taken.wait_s == FULL:
                wait = LOOK_S * (0.5 + random.random())
            else:
                wait = min(taken.wait_s + random.random() * LOOK_S, CHECK_S) if line.waiting else 0.0
            line.next_look = time.monotonic() + wait
            if line.free:
                self._wake()
