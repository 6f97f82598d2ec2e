"""Limits of providers over all workers of a database: calls at once, calls and tokens a minute, by its locks and its clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import psycopg
import pytest

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.counters import Counter, InDatabase, InMemory
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import Place, place_of
from agentloom.durable.dbos.turns import AllTurns
from agentloom.errors import RateLimitError
from agentloom.providers.rates import Limit
from tests.durable.crew import Workers
from tests.durable.metering import Lateness, Meter, Slow, calls, most_within, project, results, together
from tests.durable.metering import database as database
from tests.durable.metering import open_turns as open_turns
from tests.wire.server import KEY, WireServer


def test_workers_share_slots(database: Place, open_turns: Callable[[Counter], AllTurns]) -> None:
    """Never more than three calls at once over three workers, though each has more to do: all get some, and all slots are free afterwards."""
    meters = [Meter(), Meter(), Meter()]
    whole = Meter()

    class Both(Meter):
        def __init__(self, own: Meter) -> None:
            self.own = own

        def begin(self) -> None:
            self.own.begin()
            whole.begin()

        def end(self) -> None:
            self.own.end()
            whole.end()

    limit = Limit(concurrent=3)
    workers = [open_turns(InDatabase(database)) for _ in meters]
    for turns in workers:
        calls(turns, limit, 1, 0.0, Meter())  # they connect
    together(
        *(
            lambda turns=turns, meter=meter: calls(turns, limit, 20, 0.05, Both(meter))  # type: ignore[misc]
            for turns, meter in zip(workers, meters, strict=True)
        )
    )
    assert whole.most == 3
    assert [len(meter.began) for meter in meters] == [20] * 3
    half = sorted(whole.began)[30]
    assert min(sum(moment < half for moment in meter.began) for meter in meters) >= 3
    calls(workers[0], limit, 3, 0.0, whole)  # nothing was kept


@pytest.mark.parametrize("kind", ["database", "memory"])
def test_calls_are_spread_evenly(kind: str, database: Place, open_turns: Callable[[Counter], AllTurns]) -> None:
    """1,200 a minute are 20 a second, over two workers: 2 may come together, and none more often than that."""
    meter = Meter()
    if kind == "database":
        workers = [open_turns(InDatabase(database)) for _ in range(2)]
    else:
        workers = [open_turns(InMemory())] * 2
    limit = Limit(requests=1200)
    with Lateness() as late:
        together(*(lambda turns=turns: calls(turns, limit, 15, 0.0, meter) for turns in workers))  # type: ignore[misc]
    assert len(meter.began) == 30
    assert max(meter.began) - min(meter.began) > (30 - 3) / 20
    # Threads that are woken late may come together with the next ones.
    assert most_within(meter.began, 0.5) <= (0.5 + late.worst_s) * 20 + 2 + 2


def test_tokens_of_requests_and_replies_count(database: Place, open_turns: Callable[[Counter], AllTurns]) -> None:
    """A request's tokens keep later ones away, and so do a reply's; one that is larger than a minute's is refused at once."""
    turns = open_turns(InDatabase(database)).of("one", Limit(tokens=6000))

    async def main() -> list[float]:
        times = [anyio.current_time()]
        leave = await turns.enter(20)  # 0.2 seconds' worth
        leave(30)
        await anyio.sleep(0.05)
        (await turns.enter(1))(0)
        times.append(anyio.current_time())
        with pytest.raises(RateLimitError, match="about 6,001 tokens, more than the 6,000 a minute"):
            await turns.enter(6001)
        return times

    began, second = anyio.run(main)
    assert second - began >= 0.38


def test_a_wait_that_is_called_off_takes_nothing(database: Place, open_turns: Callable[[Counter], AllTurns]) -> None:
    """Neither a slot nor a share of the rate; a call that is called off gives its slot back."""
    turns = open_turns(InDatabase(database)).of("one", Limit(requests=60_000, concurrent=1))

    async def main() -> None:
        leave = await turns.enter(0)
        for _ in range(5):
            with anyio.move_on_after(0.03):
                await turns.enter(0)
        leave(0)

        async def call() -> None:
            ended = await turns.enter(0)
            try:
                await anyio.sleep(1000)
            finally:
                ended(0)

        with anyio.move_on_after(0.3):
            await call()
        (await turns.enter(0))(0)

    anyio.run(main)
    with psycopg.connect(database.url) as session:
        rows = session.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1").fetchone()
        assert rows == (0,)


def test_a_provider_sees_its_limits(tmp_path: Path, workers: Workers) -> None:
    """Two workers with two runs of five steps each: the provider never has more than two calls at once."""
    slow = Slow(0.2)
    workers.environment["BOX_KEY"] = KEY
    with WireServer(slow) as box:
        document = load_workflow(project(tmp_path, box.url, 5, max_concurrent=2))
        workers.begin(2)
        with closing(Archive(place_of(workers.url))) as archive:
            segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(2)]
            assert [result.status for result in results(archive, segments)] == ["success"] * 2
        assert len(box.requests) == 10
        assert slow.most == 2
