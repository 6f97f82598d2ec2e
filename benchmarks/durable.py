"""What keeping a run costs, and what protects its providers: run by `run.py` as a process of its own, prints a JSON object of times.

All times are medians, in seconds. ``save`` and ``load`` are those of a checkpoint of 1,000 steps and 10 MB of state; ``file_mb`` is its size. A ``call``
goes to a provider that answers at once: straight, through a gateway without limits, and through one with both limits on.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

from agentloom.checkpointing import CheckpointData, FileCheckpointer
from agentloom.core.results import StepResult
from agentloom.providers.base import BaseProvider, Message, OnDelta, Request, Response
from agentloom.providers.gateway import ProviderGateway

STEPS = 1000
STATE_BYTES = 10_000_000
CALLS = 2000


class Prompt(BaseProvider):
    """A provider that answers at once."""

    name = "prompt"

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Answer."""
        return ANSWER


ANSWER = Response("ok", "m", "prompt")
REQUEST = Request("m", [Message("user", "Say hello.")], step_id="s")


def checkpoint() -> CheckpointData:
    """Return a checkpoint of many steps and much state."""
    text = "A line of what a model may have said, with a number: 12345.\n"
    share = text * (STATE_BYTES // STEPS // len(text) + 1)
    results = {
        f"s{at:05d}": StepResult(f"s{at:05d}", "success", output=f"done {at}", duration_ms=1.5, model="m").to_dict()
        for at in range(STEPS)
    }
    steps = [{"id": name, "type": "llm_call", "prompt": "Say {state.word}", "output": f"o{name}"} for name in results]
    state = {f"o{name}": share for name in results}
    return CheckpointData(
        "measured", "r", {"name": "measured", "steps": steps}, state, results, "success", list(results)
    )


async def median(function: Callable[[], Awaitable[Any]], times: int) -> float:
    """Return how long a call takes, in seconds."""
    found = []
    for _ in range(times):
        began = perf_counter()
        await function()
        found.append(perf_counter() - began)
    return statistics.median(found)


async def calls(complete: Callable[[Request], Awaitable[Response]]) -> None:
    """Make many calls, one after the other."""
    for _ in range(CALLS):
        await complete(REQUEST)


async def measured() -> dict[str, float]:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        store, data = FileCheckpointer(folder), checkpoint()
        found = {"save": await median(lambda: store.save(data), 7), "load": await median(lambda: store.load("r"), 7)}
        found["file_mb"] = (Path(folder) / "r.json").stat().st_size / 1e6
    straight, free, limited = Prompt(), ProviderGateway(), ProviderGateway()
    free.register(straight, max_rpm=None, max_tpm=None)
    limited.register(straight, max_rpm=10**9, max_tpm=10**12)
    ways = {"straight": straight.complete, "free": free.complete, "limited": limited.complete}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(9):  # in turns, so that a busy machine slows all alike
        for name, complete in ways.items():
            times[name].append(await median(lambda complete=complete: calls(complete), 1) / CALLS)  # type: ignore[misc]
    return {**found, **{f"call_{name}": statistics.median(values) for name, values in times.items()}}


if __name__ == "__main__":
    print(json.dumps(anyio.run(measured)))
