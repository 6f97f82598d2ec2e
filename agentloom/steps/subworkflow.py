"""Another workflow as one step: hand it a state, run it, take back its final state."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from agentloom.core.kinds import EVERYTHING, Attempt, ChildResult, Executor, Reads, Services
from agentloom.core.results import Classification, StepResult
from agentloom.core.runner import Halt, Op
from agentloom.core.state import STEPS
from agentloom.errors import StepError
from agentloom.language.arguments import render_deep
from agentloom.steps.tool import references

if TYPE_CHECKING:
    from agentloom.model.workflow import SubworkflowStep


def reads(step: SubworkflowStep) -> Reads:
    """Return what `input` reads for an isolated child, else everything."""
    return references(step.input) if step.isolated_state else EVERYTHING


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Perform one attempt: run the child from its first step. Raises ``TemplateError`` for an `input` that can't be resolved."""
    step = cast("SubworkflowStep", op.step)
    handed = render_deep(step.input, op.inputs, warn=attempt.warn)
    if STEPS in handed:
        raise StepError("`input.steps` is reserved for step results; use another key")
    child = await services.run_child(op, handed if step.isolated_state else {**op.inputs, **handed}, attempt)
    if child.halt is Halt.PAUSED:
        return StepResult(step.id, "paused")
    if child.error is not None:
        return StepResult(
            step.id,
            "failed",
            error=f"workflow `{child.workflow}`: {child.error}",
            error_classification=_classification(child),
        )
    state = child.final_state
    output = state if step.return_keys is None else {key: state[key] for key in step.return_keys if key in state}
    return StepResult(step.id, "success", output=output)


def _classification(child: ChildResult) -> Classification:
    """Tell whether running the child again may help: not if its money is gone, or if any of its steps failed for good."""
    if child.halt is not None:
        return "transient" if child.halt is Halt.TIMEOUT else "permanent"
    for_good = any(result.error_classification == "permanent" for result in child.step_results.values())
    return "permanent" if for_good else "transient"


EXECUTOR = Executor(type="subworkflow", reads=reads, run=run, kind="child")
