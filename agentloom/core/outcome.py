"""How a run ended, read off the results of its steps and off what ended it early."""

from __future__ import annotations

from collections.abc import Mapping

from agentloom.core.limits import Limits
from agentloom.core.results import RunStatus, StepResult
from agentloom.core.runner import Halt


def outcome_of(results: Mapping[str, StepResult], halt: Halt | None, limits: Limits) -> tuple[RunStatus, str | None]:
    """Return how a run with these results ended, and what went wrong in one line.

    Waiting for a decision outranks going over the budget, that outranks running out of time, and that outranks failing.
    """
    if halt is Halt.PAUSED:
        return "paused", None
    if halt is Halt.BUDGET:
        return "budget_exceeded", limits.error(halt)
    if halt is Halt.TIMEOUT:
        return "timeout", limits.error(halt)
    if halt is Halt.UNKEPT:
        return "failed", "the journal can't be written"
    bad = [result for result in results.values() if result.failed]
    if not bad:
        return "success", None
    if len(bad) == 1:
        return "failed", f"step `{bad[0].step_id}` failed: {bad[0].error}"
    names = ", ".join(f"`{result.step_id}`" for result in bad[:5])
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    return "failed", f"{len(bad)} steps failed: {names}{more}"
