"""Runs that are kept, as the tests of keeping and resuming begin, break off and go on with them; each under the id `r`."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import journal_of, load_run
from agentloom.core.loader import load_data
from agentloom.core.results import WorkflowResult
from agentloom.errors import ProviderError
from agentloom.providers.base import Request, Response, Usage
from agentloom.providers.gateway import ProviderGateway
from tests.engine.virtual import run_virtual
from tests.engine.world import Script


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it, nothing is tidied up."""


def kill(run_of: Callable[[], Awaitable[Any]]) -> None:
    """Run until the process is killed."""
    try:
        run_virtual(run_of)
    except Killed:
        return
    except BaseExceptionGroup as group:
        if group.split(Killed)[1] is None:
            return
        raise
    pytest.fail("nothing was killed")


def gateway_for(provider: Script) -> ProviderGateway:
    gateway = ProviderGateway()
    gateway.register(provider, max_rpm=None, max_tpm=None, circuit_fail_threshold=10**9)
    return gateway


async def run(
    store: FileCheckpointer, data: Mapping[str, Any], answers: Mapping[str, Any] | None = None, **options: Any
) -> tuple[WorkflowResult, Script]:
    """Run a workflow from its beginning, kept under the id `r`."""
    provider = Script(answers)
    engine = WorkflowEngine(load_data(data), gateway_for(provider), checkpointer=store, run_id="r", **options)
    return await engine.run(), provider


async def resume(
    store: FileCheckpointer,
    answers: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    **changes: Any,
) -> tuple[WorkflowResult, Script]:
    """Go on with the run `r`; ``changes`` go into its `config`."""
    provider = Script(answers)
    saved = load_run(store, "r")
    saved.workflow_definition["config"].update(changes)
    engine = await WorkflowEngine.from_checkpoint(saved, store, provider_gateway=gateway_for(provider))
    return await engine.run(state), provider


def asked(provider: Script) -> list[str]:
    return [request.step_id for request in provider.requests]


def priced(price: float) -> Any:
    async def reply(request: Request, on_delta: object) -> Response:
        return Response(f"from {request.step_id}", "m", "mock", Usage(1, 1, 2), price)

    return reply


NO = ProviderError("no", status_code=400)


async def die(request: Request, on_delta: object) -> str:
    """Answer by the end of the process."""
    raise Killed


def ended(data: Mapping[str, Any], store: FileCheckpointer, answers: Mapping[str, Any]) -> WorkflowResult:
    """Run a workflow to its end."""
    return run_virtual(lambda: run(store, data, answers))[0]


def resumed(store: FileCheckpointer, *args: Any, **changes: Any) -> tuple[WorkflowResult, Script]:
    """Go on with the run to its end."""
    return run_virtual(lambda: resume(store, *args, **changes))


def leave(
    store: FileCheckpointer, data: Mapping[str, Any], how: str, at: str, answers: Mapping[str, Any] | None = None
) -> None:
    """Run a workflow up to the step ``at``, which fails for good, or in which the process is killed (``how`` is `killed`)."""
    if how == "killed":
        kill(lambda: run(store, data, {**(answers or {}), at: die}))
    else:
        ended(data, store, {**(answers or {}), at: NO})


@contextmanager
def locked_for(store: FileCheckpointer, seconds: float) -> Iterator[None]:
    """Hold the lock of the run's journal for so many seconds of the machine's clock."""
    handle = os.open(journal_of(store, "r"), os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    timer = threading.Timer(seconds, os.close, [handle])
    timer.start()
    try:
        yield
    finally:
        timer.join()
