"""One attempt of an operation: run its executor, and make a value of whatever comes out."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from agentloom.core.events import EventStream
from agentloom.core.failures import failed
from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.results import StepResult
from agentloom.core.runner import Op


async def attempt_once(executor: Executor, op: Op, services: Services, stream: EventStream) -> StepResult:
    """Return the outcome of an operation; never raises but when it is cancelled.

    There is one attempt: this version refuses workflows that ask for more, so that none is silently left out.
    """
    assert executor.run is not None
    attempt = Attempt(op.path, 1, stream)
    began = perf_counter()
    try:
        outcome = await executor.run(op, services, attempt)
    except Exception as error:
        outcome = failed(op.step.id, error, op.step.retry.retryable_status_codes)
    took = (perf_counter() - began) * 1000
    return replace(outcome, duration_ms=took, warnings=tuple(attempt.warnings))
