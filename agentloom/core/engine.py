"""The engine: takes a workflow, refuses what it can't run before anything happens, and runs the rest to a result."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.attempt import perform
from agentloom.core.events import EventStream, OnEvent, RunFinished, RunStarted
from agentloom.core.interpreter import interpret
from agentloom.core.kinds import ChildResult, Services, Tools
from agentloom.core.limits import Limits, limits_of
from agentloom.core.local import LocalRunner
from agentloom.core.plain import plain
from agentloom.core.preparation import Prepared, prepare
from agentloom.core.results import JSON, RunStatus, StepResult, WorkflowResult
from agentloom.core.runner import Halt, Op
from agentloom.core.state import STEPS, State
from agentloom.errors import UnsupportedFeature, UsageError
from agentloom.providers.gateway import ProviderGateway
from agentloom.steps.table import BY_TYPE
from agentloom.tools.builtin import register_builtins
from agentloom.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from agentloom.model.workflow import Workflow

_RUN_ID = re.compile(r"[A-Za-z0-9._-]+")
_REDACTION_ENV = "AGENTLOOM_REDACT_STATE_KEYS"


class WorkflowEngine:
    """Runs one workflow, as often as it is asked to.

    ``workflow`` is a document without errors, or a typed workflow built in Python. Without ``provider_gateway`` no provider serves any
    model; without ``tool_registry`` there are the built-in tools. ``run_id`` names the run; without one each run gets twelve hexadecimal
    digits. ``on_event`` is awaited for every event, one after the other.
    """

    def __init__(
        self,
        workflow: WorkflowDocument | Workflow,
        provider_gateway: ProviderGateway | None = None,
        tool_registry: Tools | None = None,
        checkpointer: Any = None,
        run_id: str | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        if run_id is not None and not _RUN_ID.fullmatch(run_id):
            raise UsageError(f"run id `{run_id}` can't be used; take letters, digits, `.`, `_` and `-`")
        self.run_id = run_id or new_run_id()
        self._fixed_id = run_id is not None
        self._workflow = workflow
        self._gateway = provider_gateway or ProviderGateway()
        self._tools = tool_registry if tool_registry is not None else _builtin_tools(workflow)
        self._checkpointer = checkpointer
        self._on_event = on_event
        self._prepared: Prepared | None = None
        self._runs = 0

    def check(self) -> Prepared:
        """Return what a run needs to know beforehand; ``run`` calls it before its first event.

        Raises ``InvalidWorkflow`` for a document with errors, ``WorkflowError`` for a typed workflow that doesn't hold together, and
        ``UnsupportedFeature`` for what this version doesn't run yet, naming every such step and field.
        """
        if self._checkpointer is not None:
            raise UnsupportedFeature("checkpoints are not supported by this version yet; leave `checkpointer` out")
        if os.environ.get(_REDACTION_ENV, "").strip():
            raise UnsupportedFeature(f"redaction is not supported by this version yet; unset `{_REDACTION_ENV}`")
        if self._prepared is None:
            self._prepared = prepare(self._workflow, BY_TYPE)
        return self._prepared

    async def run(self, state: Mapping[str, Any] | None = None) -> WorkflowResult:
        """Run the workflow; ``state`` overrides keys of its own `state:`.

        A step that fails is part of the result. Raises what ``check`` raises, and ``UsageError`` for a state that can't be used.
        """
        prepared = self.check()
        given = plain(dict(state or {}), "state")
        if STEPS in given:
            raise UsageError("state key `steps` is reserved for step results; use another key")
        if self._runs and not self._fixed_id:
            self.run_id = new_run_id()
        self._runs += 1
        stream = EventStream(self.run_id, self._on_event)
        plan = prepared.plan
        began = anyio.current_time()
        await stream.emit(RunStarted(workflow=plan.workflow, steps=sum(map(len, plan.layers)), layers=len(plan.layers)))
        limits = limits_of(plan.budget_usd, plan.timeout)
        results, final_state, halt = await self._interpret(prepared, given, stream, "", limits)
        status, error = outcome_of(results, halt, limits)
        usage, cost = limits.ledger.usage, limits.ledger.spent
        took = (anyio.current_time() - began) * 1000
        await stream.emit(
            RunFinished(
                status=status,
                total_cost_usd=cost,
                total_tokens=usage.total_tokens,
                duration_ms=took,
                error=error,
            )
        )
        return WorkflowResult(
            workflow_name=plan.workflow,
            status=status,
            step_results=results,
            final_state=final_state,
            total_duration_ms=took,
            total_tokens=usage.total_tokens,
            total_cost_usd=cost,
            error=error,
            run_id=self.run_id,
        )

    async def _interpret(
        self, prepared: Prepared, given: Mapping[str, JSON], stream: EventStream, prefix: str, limits: Limits
    ) -> tuple[dict[str, StepResult], Mapping[str, JSON], Halt | None]:
        """Run a workflow, or a child of one under ``prefix``.

        Return the results in the order of the file, the final state, and why the run ended early if it did.
        """
        plan = prepared.plan

        async def run_child(op: Op, state: Mapping[str, JSON]) -> ChildResult:
            child = prepared.children[op.step.id]
            below = limits.below(child.plan.budget_usd, child.plan.timeout)
            results, final_state, halt = await self._interpret(child, state, stream, f"{op.path}.", below)
            error = outcome_of(results, halt, below)[1]
            ledger = below.ledger
            return ChildResult(child.plan.workflow, results, final_state, error, halt, ledger.spent, ledger.usage)

        async def perform_one(op: Op) -> StepResult:
            return await perform(BY_TYPE[op.step.type], op, services, stream, limits, plan.max_retries)

        services = Services(
            workflow=plan.workflow,
            provider=prepared.provider,
            model=prepared.model,
            stream=prepared.stream,
            gateway=self._gateway,
            tools=self._tools,
            run_child=run_child,
        )
        # The workflow's own values are copied: it may run again, and the state is its result's.
        state = State({**plain(prepared.state, "state"), **given})
        runner = LocalRunner(stream, perform_one, plan.max_concurrent_steps, may_start=lambda: limits.before() is None)
        progress = await interpret(plan, state, runner, BY_TYPE, prefix, limits)
        results = {name: progress.results[name] for name in plan.needs if name in progress.results}
        return results, state.root, progress.halt


def outcome_of(results: Mapping[str, StepResult], halt: Halt | None, limits: Limits) -> tuple[RunStatus, str | None]:
    """Return how a run with these results ended, and what went wrong in one line.

    Going over the budget outranks running out of time, and that outranks failing.
    """
    if halt is Halt.BUDGET:
        return "budget_exceeded", limits.error(halt)
    if halt is Halt.TIMEOUT:
        return "timeout", limits.error(halt)
    bad = [result for result in results.values() if result.failed]
    if not bad:
        return "success", None
    if len(bad) == 1:
        return "failed", f"step `{bad[0].step_id}` failed: {bad[0].error}"
    names = ", ".join(f"`{result.step_id}`" for result in bad[:5])
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    return "failed", f"{len(bad)} steps failed: {names}{more}"


def new_run_id() -> str:
    """Return twelve random hexadecimal digits."""
    return os.urandom(6).hex()


def _builtin_tools(workflow: WorkflowDocument | Workflow) -> ToolRegistry:
    """Return the built-in tools; their relative paths start at the workflow's file, or at the working directory without one."""
    path = workflow.path if isinstance(workflow, WorkflowDocument) else None
    registry = ToolRegistry()
    register_builtins(registry, folder=None if path is None else path.parent)
    return registry
