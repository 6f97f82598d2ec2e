"""When documents are checked: bursts become one check, stale results go nowhere, one check at a time. Time is a made-up clock's."""

from __future__ import annotations

import asyncio
import heapq
from asyncio import Future
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from agentloom_lsp.scheduler import BURST, PATIENCE, PAUSE, QUICK, Scheduler, delay_of


class Call:
    """A planned call of the made-up clock."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self._calls: list[tuple[float, int, Call]] = []
        self._numbers = count()

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Call:
        call = Call(lambda: callback(*args))
        heapq.heappush(self._calls, (self.now + delay, next(self._numbers), call))
        return call

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self._calls and self._calls[0][0] <= end:
            self.now, _, call = heapq.heappop(self._calls)
            if call.callback is not None:
                call.callback()
        self.now = end


class Bench:
    """A scheduler whose checks end when the test says so. A document's text is a number."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = Clock()
        self.loop = loop
        self.texts: dict[str, int] = {}
        self.running: list[tuple[Callable[[], int], Future[int]]] = []
        self.started = 0
        self.delivered: list[tuple[str, int]] = []
        self.scheduler: Scheduler[int] = Scheduler(
            clock=self.clock,
            prepare=self._prepare,
            submit=self._submit,
            deliver=lambda key, result: self.delivered.append((key, result)),
        )

    def _prepare(self, key: str) -> Callable[[], int] | None:
        if key not in self.texts:
            return None
        text = self.texts[key]
        return lambda: text

    def _submit(self, work: Callable[[], int]) -> Future[int]:
        future: Future[int] = self.loop.create_future()
        self.running.append((work, future))
        self.started += 1
        return future

    def edit(self, key: str = "a") -> None:
        self.texts[key] = self.texts.get(key, 0) + 1
        self.scheduler.changed(key)

    def open(self, key: str = "a") -> None:
        self.texts[key] = self.texts.get(key, 0) + 1
        self.scheduler.opened(key)

    async def finish(self, error: Exception | None = None) -> None:
        """Let every check that runs end, and those that follow from it begin."""
        running, self.running = self.running, []
        for work, future in running:
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(work())
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
def run() -> Callable[..., None]:
    """Run a test's coroutine on a bench."""

    def runner(test: Callable[[Bench], Any]) -> None:
        async def main() -> None:
            await test(Bench(asyncio.get_running_loop()))

        asyncio.run(main())

    return runner


Run = Callable[[Callable[[Bench], Any]], None]


def test_twenty_keystrokes_are_one_check(run: Run) -> None:
    """Editor case: no debounce; 20 changes in 0.6 s give one result, for the last version."""

    async def test(bench: Bench) -> None:
        bench.open()
        await bench.finish()
        bench.clock.pass_time(5)
        for _ in range(20):
            bench.edit()
            bench.clock.pass_time(0.03)
            await bench.finish()
        bench.clock.pass_time(BURST)
        await bench.finish()
        assert bench.delivered == [("a", 1), ("a", 21)]

    run(test)


@pytest.mark.parametrize("spacing", [0.005, 0.03, 0.045, 0.1, 0.12])
def test_a_burst_gives_two_results_at_most(run: Run, spacing: float) -> None:
    """However the keystrokes of 0.6 s are spaced: the first may be shown, and the last is."""

    async def test(bench: Bench) -> None:
        bench.open()
        await bench.finish()
        bench.delivered.clear()
        bench.clock.pass_time(5)
        for _ in range(int(0.6 / spacing)):
            bench.edit()
            bench.clock.pass_time(spacing)
            await bench.finish()
        bench.clock.pass_time(BURST)
        await bench.finish()
        assert 1 <= len(bench.delivered) <= 2
        assert bench.delivered[-1] == ("a", bench.texts["a"])

    run(test)


def test_a_change_after_a_pause_is_checked_quickly(run: Run) -> None:
    """One change by itself doesn't wait for a burst's end."""

    async def test(bench: Bench) -> None:
        bench.open()
        await bench.finish()
        bench.clock.pass_time(PAUSE)
        bench.edit()
        bench.clock.pass_time(QUICK)
        await bench.finish()
        assert bench.delivered == [("a", 1), ("a", 2)]

    run(test)


def test_endless_typing_is_checked_now_and_then(run: Run) -> None:
    """Somebody who types without a pause sees results all the same."""

    async def test(bench: Bench) -> None:
        bench.open()
        await bench.finish()
        bench.clock.pass_time(5)
        for _ in range(200):
            bench.edit()
            bench.clock.pass_time(0.03)
            await bench.finish()
        assert len(bench.delivered) >= 6 / PATIENCE / 2

    run(test)


def test_a_stale_result_goes_nowhere(run: Run) -> None:
    """A check that a change overtook delivers nothing; the newest version follows."""

    async def test(bench: Bench) -> None:
        bench.open()
        bench.edit()
        await bench.finish()
        assert bench.delivered == []
        bench.clock.pass_time(1)
        await bench.finish()
        assert bench.delivered == [("a", 2)]

    run(test)


def test_one_check_at_a_time_and_the_newest_wins(run: Run) -> None:
    """While a check runs nothing else is started for that document; afterwards only the newest version is checked."""

    async def test(bench: Bench) -> None:
        bench.open()
        for _ in range(5):
            bench.edit()
            bench.clock.pass_time(1)
        assert bench.started == 1
        await bench.finish()
        assert bench.started == 2
        await bench.finish()
        assert bench.started == 2
        assert bench.delivered == [("a", 6)]

    run(test)


def test_documents_do_not_wait_for_each_other(run: Run) -> None:
    """Two documents are two jobs."""

    async def test(bench: Bench) -> None:
        bench.open("a")
        bench.open("b")
        assert bench.started == 2
        await bench.finish()
        assert bench.delivered == [("a", 1), ("b", 1)]

    run(test)


def test_a_closed_document_is_forgotten(run: Run) -> None:
    """Neither a running nor a planned check of a closed document delivers; waiters are released."""

    async def test(bench: Bench) -> None:
        bench.open("a")
        bench.open("b")
        await bench.finish()
        bench.delivered.clear()
        bench.edit("b")
        bench.open("a")
        waiter = asyncio.ensure_future(bench.scheduler.now("a"))
        await asyncio.sleep(0)
        bench.scheduler.closed("a")
        bench.scheduler.closed("b")
        await bench.finish()
        bench.clock.pass_time(1)
        assert (bench.delivered, bench.running) == ([], [])
        with pytest.raises(asyncio.CancelledError):
            await waiter
        with pytest.raises(KeyError):
            await bench.scheduler.next("a")

    run(test)


def test_who_asks_now_does_not_wait_for_the_pause(run: Run) -> None:
    """A request that needs the newest version starts its check; one that can wait shares it."""

    async def test(bench: Bench) -> None:
        bench.open()
        await bench.finish()
        bench.clock.pass_time(5)
        bench.edit()
        patient = asyncio.ensure_future(bench.scheduler.next("a"))
        await asyncio.sleep(0)
        assert bench.running == []
        hurried = asyncio.ensure_future(bench.scheduler.now("a"))
        await asyncio.sleep(0)
        await bench.finish()
        assert (await patient, await hurried) == (2, 2)
        assert await bench.scheduler.now("a") == 2
        assert bench.started == 2

    run(test)


def test_asking_while_typing_shows_nothing_early(run: Run) -> None:
    """Editor case: hover or completion in a burst is answered at once, and still only its end is shown; nothing is checked twice."""

    async def test(bench: Bench) -> None:
        bench.open()
        await bench.finish()
        bench.clock.pass_time(5)
        for number in range(20):
            bench.edit()
            if number % 3 == 1:
                asked = asyncio.ensure_future(bench.scheduler.now("a"))
                await asyncio.sleep(0)
                await bench.finish()
                assert await asked == bench.texts["a"]
            bench.clock.pass_time(0.03)
        asked = asyncio.ensure_future(bench.scheduler.now("a"))
        await asyncio.sleep(0)
        await bench.finish()
        assert bench.delivered == [("a", 1)]
        checks = bench.started
        bench.clock.pass_time(BURST)
        await bench.finish()
        assert bench.delivered == [("a", 1), ("a", 21)]
        assert (await asked, bench.started) == (21, checks)

    run(test)


def test_who_asks_now_waits_for_one_check_at_most(run: Run) -> None:
    """When a check of an older text runs, the newest one is checked right after it, in the middle of a burst, too."""

    async def test(bench: Bench) -> None:
        bench.open()
        bench.edit()
        asked = asyncio.ensure_future(bench.scheduler.now("a"))
        await asyncio.sleep(0)
        await bench.finish()
        await bench.finish()
        assert await asked == 2

    run(test)


def test_who_is_content_with_what_there_was_does_not_wait_for_the_end_of_typing(run: Run) -> None:
    """Whatever is typed after the question: the first result for that version or a newer one is the answer."""

    async def test(bench: Bench) -> None:
        bench.open()
        bench.edit()
        asked = asyncio.ensure_future(bench.scheduler.since_now("a"))
        for _ in range(2):  # the check that runs is older than the question, the next one isn't
            await asyncio.sleep(0)
            assert not asked.done()
            bench.edit()
            await bench.finish()
        assert await asked == 3
        assert bench.started == 2
        assert bench.delivered == []
        bench.edit()
        closed = asyncio.ensure_future(bench.scheduler.since_now("a"))
        await asyncio.sleep(0)
        bench.scheduler.closed("a")
        with pytest.raises(asyncio.CancelledError):
            await closed

    run(test)


def test_who_waits_gets_the_newest_version(run: Run) -> None:
    """A document that changes while somebody waits gives them the newer result, not the stale one."""

    async def test(bench: Bench) -> None:
        bench.open()
        waiter = asyncio.ensure_future(bench.scheduler.next("a"))
        await asyncio.sleep(0)
        bench.edit()
        await bench.finish()
        assert not waiter.done()
        bench.clock.pass_time(1)
        await bench.finish()
        assert await waiter == 2

    run(test)


def test_a_failing_check_ends_the_waiting_and_the_next_one_works(run: Run) -> None:
    """An exception reaches who waits; the document is checked again after the next change."""

    async def test(bench: Bench) -> None:
        bench.open()
        waiter = asyncio.ensure_future(bench.scheduler.now("a"))
        await asyncio.sleep(0)
        await bench.finish(RuntimeError("boom"))
        with pytest.raises(RuntimeError, match="boom"):
            await waiter
        bench.edit()
        bench.clock.pass_time(1)
        await bench.finish()
        assert bench.delivered == [("a", 2)]

    run(test)


def test_the_delay_can_be_switched_off(run: Run) -> None:
    """`debounce` 0 checks each change when the loop gets to it."""

    async def test(bench: Bench) -> None:
        bench.open()
        await bench.finish()
        bench.scheduler.debounce = 0.0
        bench.edit()
        bench.edit()
        bench.clock.pass_time(0)
        await bench.finish()
        assert bench.delivered == [("a", 1), ("a", 3)]

    run(test)


@pytest.mark.parametrize(
    ("before", "burst", "cost", "delay"),
    [
        (-1e9, 0.0, 0.0, QUICK),
        (9.9, 9.9, 0.01, BURST),
        (9.9, 9.9, 0.2, 0.2),
        (9.9, 9.9, 60.0, 2 * BURST),
        (9.9, 10 - PATIENCE, 0.01, 0.0),
        (9.9, 1.0, 0.01, 0.0),
    ],
)
def test_delays(before: float, burst: float, cost: float, delay: float) -> None:
    """The table of delays, at second 10."""
    assert delay_of(10.0, before, burst, cost) == pytest.approx(delay)
