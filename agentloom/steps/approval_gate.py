"""The approval gate: pauses the run until somebody decides, and passes the decision on as its output."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Op
from agentloom.errors import StepError
from agentloom.language.paths import Part
from agentloom.steps.telling import body_reads, tell

if TYPE_CHECKING:
    from agentloom.model.steps import ApprovalGateStep

STATE_KEY = "_approval"
"""The state key under which a decision may be given: `_approval.<step id>`."""

DECISIONS = ("approved", "rejected")
_BY_TIMEOUT = {"approve": "approved", "reject": "rejected"}


def reads(step: ApprovalGateStep) -> Iterator[tuple[Part, ...]]:
    """Yield where the state may hold the decision, and what the body of the webhook reads."""
    yield (STATE_KEY, step.id)
    if step.notify is not None:
        yield from body_reads(step.notify)


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Pass a decision on, or pause. Raises ``StepError``, permanent, for a decision that is none, and for a gate that expired."""
    step = cast("ApprovalGateStep", op.step)
    decision = services.decisions.get(op.path) or _in_state(op.inputs.get(STATE_KEY), step.id)
    if decision is not None:
        if decision not in DECISIONS:
            raise StepError(f"`{decision}` is no decision; a gate takes `approved` or `rejected`")
        return StepResult(step.id, "success", output=decision)
    since = services.paused_since.get(op.path)
    if since is not None and step.timeout_seconds and services.clock() >= _over(since, step.timeout_seconds):
        if step.on_timeout is None:
            raise StepError(f"nobody decided within {step.timeout_seconds} s")
        attempt.warn(f"nobody decided within {step.timeout_seconds} s; `on_timeout: {step.on_timeout}` holds")
        return StepResult(step.id, "success", output=_BY_TIMEOUT[step.on_timeout])
    told = await tell(step, op, services, attempt) if step.notify is not None else None
    return StepResult(step.id, "paused", webhook=told)


def _in_state(value: JSON, step_id: str) -> JSON:
    return value.get(step_id) if isinstance(value, dict) else None


def _over(since: str, seconds: int) -> datetime:
    """Return when a gate has waited long enough that waits since a time (ISO 8601)."""
    return datetime.fromisoformat(since) + timedelta(seconds=seconds)


EXECUTOR = Executor(type="approval_gate", reads=reads, run=run, kind="gate")
