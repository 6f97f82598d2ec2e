"""The router: the first condition that is true decides which step runs next. Pure: it reads the state and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentloom.core.failures import failed
from agentloom.core.kinds import EVERYTHING, Executor
from agentloom.core.results import JSON, StepResult
from agentloom.errors import ExpressionError, StepError
from agentloom.language.expression import evaluate

if TYPE_CHECKING:
    from agentloom.model.steps import RouterStep


def decide(step: RouterStep, state: Mapping[str, JSON]) -> StepResult:
    """Return the result, whose output is the id of the chosen step; every failure is permanent."""
    try:
        return StepResult(step.id, "success", output=choose(step, state))
    except Exception as error:
        return failed(step.id, error, ())


def choose(step: RouterStep, state: Mapping[str, JSON]) -> str:
    """Return the target of the first condition that is true, else the default.

    Raises ``ExpressionError`` for a condition that is forbidden, malformed or fails, ``StepError`` when nothing is chosen.
    """
    for condition in step.conditions:
        try:
            found = bool(evaluate(condition.expression, state))
        except ExpressionError as error:
            text = " ".join(condition.expression.split())
            shown = text if len(text) <= 80 else text[:79] + "…"
            raise ExpressionError(f"condition `{shown}`: {error}", start=error.start, end=error.end) from error
        if found:
            return condition.target
    if step.default is None:
        raise StepError("no condition is true; give the router a `default`")
    return step.default


EXECUTOR = Executor(type="router", reads=lambda step: EVERYTHING, decide=decide)
