"""Performing an operation: attempts, each within its time, waits between them, and a value out of whatever comes of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from math import inf

import anyio

from agentloom.backoff import Backoff
from agentloom.core.cancelling import is_cancelled
from agentloom.core.events import EventStream, StepRetrying
from agentloom.core.failures import failed
from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.limits import Limits, add_usage
from agentloom.core.results import NO_USAGE, StepResult
from agentloom.core.runner import AttemptLog, Halt, Op
from agentloom.errors import ProviderError, StepError
from agentloom.providers.surroundings import in_attempt

_UNTIMED = nullcontext()
"""In place of the scope of an attempt that may take as long as it likes."""

log = logging.getLogger(__name__)


def _random() -> float:
    from random import random  # only where a step is tried again

    return random()


async def perform(
    executor: Executor,
    op: Op,
    services: Services,
    stream: EventStream,
    limits: Limits,
    max_retries: int,
    attempts_log: AttemptLog,
    chance: Callable[[], float] = _random,
) -> StepResult:
    """Return the outcome of an operation; never raises but when it is cancelled.

    ``max_retries`` holds for steps without a number of their own. Costs and tokens of all attempts count in the result, the warnings
    are those of the last one.
    """
    retry = op.step.retry
    attempts = 1 + (max_retries if retry.max_retries is None else retry.max_retries)
    began = anyio.current_time()
    cost, usage = 0.0, NO_USAGE
    number = 1
    while True:
        counted = attempts_log.next_attempt(op.path)
        attempts_log.started(op.path, counted)
        attempt = Attempt(op.path, number, stream, counted, services.is_secret(op.step.id), attempts_log.spent_in)
        with in_attempt(op.path, counted):
            outcome, error = await _once(executor, op, services, limits, attempt)
        own_cost, own_tokens = attempt.cost, attempt.usage.total_tokens
        cost += attempt.whole_cost
        usage = add_usage(usage, attempt.whole_usage) if number > 1 else attempt.whole_usage
        if not _again(outcome, number, attempts, limits):
            break
        attempts_log.failed(op.path, counted, own_cost, own_tokens)
        asked = error.retry_after if isinstance(error, ProviderError) else None
        wait = Backoff(retry.backoff_base, retry.backoff_max, retry.jitter).delay(number, chance(), asked)
        log.warning(
            "Step '%s' failed (attempt %d/%d), retrying in %.1fs: %s",
            op.path, number, attempts, wait, outcome.error,
        )  # fmt: skip
        await stream.emit(
            StepRetrying(step=op.path, attempt=number, attempts=attempts, wait_s=wait, error=outcome.error or "")
        )
        with anyio.CancelScope(deadline=limits.deadline) as scope:
            await anyio.sleep(wait)
        if scope.cancelled_caught:
            outcome = _out_of_time(op, limits)
            own_cost, own_tokens = 0.0, 0  # noted with the attempt that failed
            break
        number += 1
    took = (anyio.current_time() - began) * 1000
    return outcome.ended(
        duration_ms=took,
        warnings=tuple(attempt.warnings),
        attempts=number,
        last_cost_usd=own_cost,
        last_tokens=own_tokens,
        cost_usd=cost,
        token_usage=usage,
    )


def _again(outcome: StepResult, number: int, attempts: int, limits: Limits) -> bool:
    """Tell whether another attempt follows."""
    if not outcome.failed or number >= attempts or outcome.error_classification != "transient":
        return False
    return limits.ledger.exceeded is None and anyio.current_time() < limits.deadline


async def _once(
    executor: Executor, op: Op, services: Services, limits: Limits, attempt: Attempt
) -> tuple[StepResult, Exception | None]:
    """Perform one attempt within the step's time and the run's; return its outcome, and what it raised."""
    assert executor.run is not None
    own = anyio.current_time() + op.step.timeout if op.step.timeout else inf
    raised: Exception | None = None
    outcome: StepResult | None = None
    try:
        deadline = min(own, limits.deadline)
        with anyio.CancelScope(deadline=deadline) if deadline < inf else _UNTIMED as scope:
            try:
                outcome = await executor.run(op, services, attempt)
            except Exception as error:
                raised = error
            except SystemExit as error:
                raised = StepError(f"it tried to end the program: exit code {error.code}", transient=True)
            except anyio.get_cancelled_exc_class():
                if is_cancelled():
                    raise
                raised = StepError("it was cancelled from inside", transient=True)
            if raised is not None:
                outcome = failed(op.step.id, raised, op.step.retry.retryable_status_codes)
    finally:
        # Also of an attempt that is stopped because the run is: what it spent was spent. The steps of a child have counted theirs.
        limits.ledger.add(attempt.cost, attempt.usage)
    if outcome is None or (scope is not None and scope.cancelled_caught):
        raised = None
        if limits.deadline <= own:
            outcome = _out_of_time(op, limits)
        else:
            text = f"Step timed out after {float(op.step.timeout or 0)}s"
            outcome = StepResult(op.step.id, "timeout", error=text, error_classification="transient")
    return outcome, raised


def _out_of_time(op: Op, limits: Limits) -> StepResult:
    """Return the result of a step that was running when the run's time was over."""
    return StepResult(op.step.id, "timeout", error=limits.error(Halt.TIMEOUT), error_classification="permanent")
