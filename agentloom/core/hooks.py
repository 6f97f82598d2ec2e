"""Hooks: code of a program's own that is told of every step that is performed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Op
from agentloom.records import record

log = logging.getLogger(__name__)


@record(repr=True)
class HookedStep:
    """A step about to run, or done. ``path`` is unique in the run (`child.step` below a subworkflow step).

    ``inputs`` is what the step may read of the state, with secrets: a hook runs in the same process. Don't change it.
    """

    run_id: str
    workflow: str
    path: str
    type: str
    inputs: Mapping[str, JSON]


class StepHook:
    """Derive from it and define what you need. Hooks watch: they can't change what runs, and an error in one is only logged.

    Routers are decisions, not performed, and finished steps of a resumed run aren't performed again: no hook is told of them.
    The engine waits for a hook, so that what it does comes before the step, or before the steps that depend on it.
    """

    async def before_step(self, step: HookedStep) -> None:
        """Called before the first attempt of a step."""

    async def after_step(self, step: HookedStep, result: StepResult) -> None:
        """Called after the last attempt of a step, whatever came of it; not for a step that was cancelled."""


class Hooks:
    """The hooks of a run, called in their order."""

    def __init__(self, hooks: Sequence[StepHook], run_id: str, workflow: str) -> None:
        self._hooks = hooks
        self._run_id = run_id
        self._workflow = workflow

    async def before(self, op: Op) -> None:
        """Tell all hooks that a step is about to run."""
        for hook in self._hooks:
            try:
                await hook.before_step(self._told(op))
            except Exception:
                log.exception("A hook failed before step '%s'", op.path)

    async def after(self, op: Op, result: StepResult) -> None:
        """Tell all hooks how a step ended."""
        for hook in self._hooks:
            try:
                await hook.after_step(self._told(op), result)
            except Exception:
                log.exception("A hook failed after step '%s'", op.path)

    def _told(self, op: Op) -> HookedStep:
        return HookedStep(self._run_id, self._workflow, op.path, op.step.type, op.inputs)
