"""Model calls beside plain httpx, against a server that answers at once: throughput, and what is added to the first token.

Both ask for the same and read the same; they take turns. ``python benchmarks/load.py`` prints these figures alone.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data
from agentloom.providers.base import Message, Request
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.openai import OpenAIProvider
from agentloom.providers.table import BY_NAME

PROMPT = "Say something about the quick brown fox, please."
BODY: dict[str, Any] = {"model": "load", "messages": [{"role": "user", "content": PROMPT}]}
Row = Callable[..., None]


@contextmanager
def server() -> Iterator[str]:
    """Run the fast server; its base address."""
    command = [sys.executable, str(Path(__file__).with_name("fast_server.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()


def provider_of(url: str) -> OpenAIProvider:
    """Return our client of the server."""
    return OpenAIProvider(url, name="generic_openai", spec=BY_NAME["generic_openai"])


def workflow(calls: int, at_once: int) -> Any:
    """Return a workflow of so many model calls that don't depend on each other."""
    steps = [{"id": f"s{at}", "type": "llm_call", "prompt": PROMPT} for at in range(calls)]
    config = {"provider": "generic_openai", "model": "load", "max_concurrent_steps": at_once}
    return load_data({"name": "load", "config": config, "steps": steps})


async def ours(url: str, document: Any) -> float:
    """Return the seconds that a run takes, connections included."""
    gateway = ProviderGateway()
    gateway.register(provider_of(url), max_rpm=None, max_tpm=None)
    engine = WorkflowEngine(document, gateway)
    engine.check()
    began = time.perf_counter()
    result = await engine.run()
    took = time.perf_counter() - began
    assert result.status == "success", result.error
    await gateway.close()
    return took


async def plain(url: str, calls: int, at_once: int) -> float:
    """Return the seconds that the same calls take with httpx, read as far as the text; its limits are out of the way."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    todo = iter(range(calls))
    async with httpx.AsyncClient(limits=limits, timeout=120) as client:

        async def work() -> None:
            for _ in todo:
                response = await client.post(f"{url}/chat/completions", json=BODY)
                response.raise_for_status()
                assert response.json()["choices"][0]["message"]["content"]

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())
        return time.perf_counter() - began


async def first_tokens(url: str, count: int) -> tuple[float, float]:
    """Return the milliseconds to the first token, ours and with httpx: medians of calls in turns, on open connections."""
    provider = provider_of(url)
    request = Request("load", [Message("user", PROMPT)], stream=True)
    one: list[float] = []
    other: list[float] = []

    async def show(text: str) -> None:
        if began is not None and len(one) < len(other):
            one.append((time.perf_counter() - began) * 1000)

    async with httpx.AsyncClient(timeout=120) as client:
        for _ in range(count):
            began = time.perf_counter()
            async with client.stream("POST", f"{url}/chat/completions", json={**BODY, "stream": True}) as response:
                seen = False
                async for line in response.aiter_lines():
                    if line.startswith("data: {") and not seen:
                        seen = bool(json.loads(line[6:])["choices"][0]["delta"].get("content"))
                        other.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            await provider.complete(request, show)
    await provider.close()
    return statistics.median(one[1:]), statistics.median(other[1:])


def load(row: Row) -> None:
    """Print the figures, a line each."""
    with server() as url:
        for calls, at_once, turns in ((1000, 1, 3), (1000, 16, 3), (1000, 100, 3), (1000, 1000, 1)):
            document = workflow(calls, at_once)
            pairs = [(anyio.run(ours, url, document), asyncio.run(plain(url, calls, at_once))) for _ in range(turns)]
            mine, beside = (statistics.median(times) for times in zip(*pairs, strict=True))
            what = (
                f"{calls:,} model calls, {at_once:,} at once" if at_once > 1 else f"{calls:,} model calls, one by one"
            )
            row(what, f"{calls / mine:.0f}/s", f"httpx: {calls / beside:.0f}/s", f"{beside / mine:.2f}x", ">= 0.7x")
        first, beside = anyio.run(first_tokens, url, 100)
        row(
            "time to first token, streamed",
            f"{first:.1f} ms",
            f"httpx: {beside:.1f} ms",
            f"+{first - beside:.1f} ms",
            "<= 5 ms",
        )


if __name__ == "__main__":
    from run import row

    load(row)
