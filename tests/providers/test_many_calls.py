"""A thousand model calls at once: all are under way together, and nothing of them is left."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data
from agentloom.errors import ProviderError
from agentloom.providers import connections
from agentloom.providers.base import Message, Request
from agentloom.providers.connections import CALLS_A_CLIENT
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.ollama import OllamaProvider
from agentloom.providers.openai import OpenAIProvider
from agentloom.providers.table import BY_NAME
from tests.wire.server import OLLAMA, REPLY, WireServer

pytestmark = pytest.mark.anyio

ASKED = Request("m", [Message("user", "hi")])
DESCRIPTORS = Path("/proc/self/fd")


@pytest.fixture(autouse=True)
def _room() -> Iterator[None]:
    """A thousand connections have two ends in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def descriptors() -> int:
    """Return how many files and sockets the process has open, whatever the system calls them."""
    folder = DESCRIPTORS if DESCRIPTORS.exists() else Path("/dev/fd")
    return len(os.listdir(folder))


def provider_of(server: WireServer) -> OpenAIProvider:
    return OpenAIProvider(server.url, name="generic_openai", spec=BY_NAME["generic_openai"])


@pytest.mark.parametrize(("count", "stream"), [(1000, False), (200, True)])
async def test_many_steps_at_once_leave_nothing_behind(count: int, stream: bool) -> None:
    """The server answers only when all have asked. Then neither sockets nor tasks are left, here and there."""
    steps: list[dict[str, Any]] = [{"id": f"s{at}", "type": "llm_call", "prompt": f"{at}"} for at in range(count)]
    config = {"provider": "generic_openai", "model": "m", "max_concurrent_steps": count, "stream": stream}
    with WireServer("slow", key=None, own=False) as server:
        before = descriptors()
        tasks = len(asyncio.all_tasks())
        gateway = ProviderGateway()
        gateway.register(provider_of(server), max_rpm=None, max_tpm=None)
        engine = WorkflowEngine(load_data({"name": "t", "config": config, "steps": steps}), gateway)
        most = 0

        async def watch() -> None:
            nonlocal most
            await anyio.to_thread.run_sync(server.wait_for, count, 60)
            most = descriptors()
            server.let_go()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            result = await engine.run()
        assert result.status == "success"
        assert {step.output for step in result.step_results.values()} == {REPLY}
        assert (len(server.requests), server.connections) == (count, count)
        assert most >= before + count
        await gateway.close()
        assert len(asyncio.all_tasks()) == tasks
    gc.collect()
    await anyio.lowlevel.checkpoint()
    assert descriptors() <= before  # the server's own are gone as well


async def test_calls_that_are_called_off_leave_nothing_behind() -> None:
    """A hundred calls are cancelled while the server is silent; their places are free again."""
    with WireServer("slow", key=None, own=False) as server:
        provider = provider_of(server)
        before = descriptors()
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(provider.complete, ASKED)
            await anyio.to_thread.run_sync(server.wait_for, 100)
            group.cancel_scope.cancel()
        assert all(lane.calls == 0 for lane in provider._http._connections._lanes)
        await provider.close()
        server.let_go()
    assert descriptors() <= before


async def test_failures_give_their_places_back() -> None:
    """Whatever goes wrong with a call, the next one finds the first client free."""
    modes = ["reset", "close", "cut-body", "503", "malformed", "not-http", "ok"]
    with WireServer(*modes, key=None, own=False) as server:
        provider = provider_of(server)
        for _ in modes[:-1]:
            with pytest.raises(ProviderError):
                await provider.complete(ASKED)
        assert (await provider.complete(ASKED)).content == REPLY
        assert [lane.calls for lane in provider._http._connections._lanes] == [0]
        await provider.close()


async def test_clients_that_are_not_needed_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst needs many; those that wait longer than connections are kept go when a later call ends."""
    burst = 3 * CALLS_A_CLIENT
    with WireServer("slow", key=None, format=OLLAMA) as server:
        provider = OllamaProvider(server.url)
        async with anyio.create_task_group() as group:
            for _ in range(burst):
                group.start_soon(provider.complete, ASKED)
            await anyio.to_thread.run_sync(server.wait_for, burst)
            server.let_go()
        lanes = provider._http._connections
        assert len(lanes._lanes) == 3
        await provider.complete(ASKED)
        assert (len(lanes._lanes), server.connections) == (3, burst)
        monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
        await provider.complete(ASKED)
        assert len(lanes._lanes) <= 1
        await provider.close()
