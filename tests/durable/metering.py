"""What measures calls to providers: at the turns that workers take, and at a receiver."""

from __future__ import annotations

import asyncio
import json
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import anyio
import psycopg
import pytest

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.counters import Counter
from agentloom.durable.dbos.place import Place, place_of
from agentloom.durable.dbos.tables import prepare
from agentloom.durable.dbos.turns import AllTurns
from agentloom.providers.rates import Limit
from tests.wire.server import Exchange, ok


class Meter:
    """Counts calls: how many there are at once, and when each began."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.began: list[float] = []
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.began.append(time.monotonic())

    def end(self) -> None:
        with self._lock:
            self.now -= 1


def most_within(times: Sequence[float], seconds: float) -> int:
    """Return how many of some moments lie in the fullest window of that length."""
    return max(sum(start <= moment < start + seconds for moment in times) for start in times)


class Lateness:
    """Measures how late a thread of this process wakes up at the worst while it is entered: what comes is seen that much too late."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        began = time.monotonic()
        while not self._over.wait(0.01):
            self.worst_s = max(self.worst_s, time.monotonic() - began - 0.01)
            began = time.monotonic()


@pytest.fixture
def database(new_postgres: Callable[[], str]) -> Place:
    """A database with our tables."""
    place = place_of(new_postgres())
    with psycopg.connect(place.url, autocommit=True) as session:
        session.execute("CREATE SCHEMA agentloom")
    prepare(place)
    return place


@pytest.fixture
def open_turns() -> Iterator[Callable[[Counter], AllTurns]]:
    """Return a function that makes the turns of one worker."""
    with ExitStack() as stack:

        def make(counter: Counter) -> AllTurns:
            turns = AllTurns(counter)
            stack.callback(turns.close)
            return turns

        yield make


def calls(turns: AllTurns, limit: Limit, count: int, seconds: float, meter: Meter, tokens: int = 0) -> None:
    """Make so many calls at the same time, as a run does."""

    async def one() -> None:
        leave = await turns.of("one", limit).enter(tokens)
        meter.begin()
        await anyio.sleep(seconds)
        meter.end()
        leave(0)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(one)

    anyio.run(main)


def together(*tasks: Callable[[], None]) -> None:
    """Do it in threads, one each."""
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Slow:
    """A receiver's mode: measures what reaches it, and answers after a while. What a client left that died isn't counted."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.most = 0
        self.began: list[float] = []
        self._open: set[int] = set()

    def now(self) -> int:
        """Return how many wait for an answer."""
        self._open = {handle for handle in self._open if not hung_up(handle)}
        return len(self._open)

    async def __call__(self, exchange: Exchange) -> None:
        handle = exchange.writer.get_extra_info("socket").fileno()
        self.now()
        self._open.add(handle)
        self.most = max(self.most, len(self._open))
        self.began.append(time.monotonic())
        try:
            await asyncio.sleep(self.seconds)
            self._open.discard(handle)
            await ok(exchange)
        finally:
            self._open.discard(handle)


def hung_up(handle: int) -> bool:
    """Tell whether the other end of a connection is closed."""
    poll = select.poll()
    poll.register(handle, select.POLLRDHUP)
    return bool(poll.poll(0))


def project(folder: Path, url: str, steps: int, **limits: int) -> Path:
    """Write a project whose provider is a server, with limits, and a workflow of steps that may all go at once."""
    lines = [f"{name} = {value}" for name, value in limits.items()]
    (folder / "agentloom.toml").write_text(
        "\n".join(["[providers.box]", f'base_url = "{url}"', 'api_key_env = "BOX_KEY"', *lines]), encoding="utf-8"
    )
    file = folder / "asks.loom.yaml"
    asked = [{"id": f"s{number}", "type": "llm_call", "prompt": "Say something."} for number in range(steps)]
    config = {"provider": "box", "model": "m", "max_concurrent_steps": steps}
    file.write_text(json.dumps({"name": "asks", "config": config, "steps": asked}), encoding="utf-8")
    return file


def results(archive: Archive, segments: list[str]) -> list[Any]:
    """Wait for segments and return how their runs ended."""
    for segment in segments:
        archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
    return [archive.ended(segment).result for segment in segments]
