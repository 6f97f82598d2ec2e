"""The engine: takes a workflow, refuses what it can't run before anything happens, and runs the rest to a result."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from agentloom.analysis.document import WorkflowDocument
from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData, now
from agentloom.checkpointing.files import is_run_id
from agentloom.core.attempt import perform
from agentloom.core.definition import definition_below, definition_of, without_secrets
from agentloom.core.events import EventStream, OnEvent, RunFinished, RunStarted
from agentloom.core.hooks import Hooks, StepHook
from agentloom.core.interpreter import Progress, interpret
from agentloom.core.keeping.host import Guard, Host
from agentloom.core.keeping.keeper import Ended, Keeper, kept_of
from agentloom.core.keeping.underway import Done, Run
from agentloom.core.kinds import Attempt, ChildResult, Services, Tools
from agentloom.core.limits import Ledger, limits_of
from agentloom.core.loader import load_data
from agentloom.core.outcome import outcome_of
from agentloom.core.plain import plain
from agentloom.core.plan import Plan, up_to
from agentloom.core.preparation import Prepared, prepare
from agentloom.core.redaction import Redaction, redaction_of
from agentloom.core.results import JSON, StepResult, WorkflowResult
from agentloom.core.runner import Halt, Op
from agentloom.core.secrets import keys_for, places_of, redaction_for, told, untold_steps, with_secrets, without_secret
from agentloom.core.state import STEPS, State
from agentloom.durable.recorded import Spend
from agentloom.errors import UsageError, WorkflowError
from agentloom.files import in_plain_words
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.surroundings import with_secrets as discreet
from agentloom.steps.table import BY_TYPE
from agentloom.tools.builtin import register_builtins
from agentloom.tools.policy import current_policy, enforced, narrowed
from agentloom.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from agentloom.model.workflow import Workflow

log = logging.getLogger(__name__)

CALLBACK_URL = "AGENTLOOM_CALLBACK_URL"
"""The environment variable that tells where decisions are taken over HTTP."""


class WorkflowEngine:
    """Runs one workflow, as often as it is asked to.

    ``workflow`` is a document without errors, or a typed workflow built in Python. Without ``provider_gateway`` no provider serves any
    model; without ``tool_registry`` there are the built-in tools. ``run_id`` names the run; without one each run gets twelve hexadecimal
    digits. ``on_event`` is awaited for every event, one after the other. ``until`` names the step that a run ends with: only what that step
    waits for runs, and itself. ``hooks`` are told of every step that is performed. ``host`` is where the run lives, this process if nothing else
    is said.
    """

    def __init__(
        self,
        workflow: WorkflowDocument | Workflow,
        provider_gateway: ProviderGateway | None = None,
        tool_registry: Tools | None = None,
        checkpointer: BaseCheckpointer | None = None,
        run_id: str | None = None,
        on_event: OnEvent | None = None,
        until: str | None = None,
        hooks: Sequence[StepHook] = (),
        host: Host | None = None,
    ) -> None:
        if run_id is not None and not is_run_id(run_id):
            raise UsageError(f"run id `{run_id}` can't be used; take letters, digits, `.`, `_` and `-`")
        self.run_id = run_id or new_run_id()
        self._fixed_id = run_id is not None
        self._workflow = workflow
        self._gateway = provider_gateway or ProviderGateway()
        self._tools = tool_registry if tool_registry is not None else _builtin_tools(workflow)
        self._checkpointer = checkpointer
        self._on_event = on_event
        self._until = until
        self._hooks = tuple(hooks)
        self._host = host or Host()
        self._prepared: Prepared | None = None
        self._runs = 0
        self._seed: CheckpointData | None = None
        self._decisions: dict[str, str] = {}
        self._source = str(workflow.path) if isinstance(workflow, WorkflowDocument) and workflow.path else None

    @classmethod
    async def from_checkpoint(
        cls,
        data: CheckpointData,
        checkpointer: BaseCheckpointer | None = None,
        provider_gateway: ProviderGateway | None = None,
        tool_registry: Tools | None = None,
        approval_decisions: Mapping[str, str] | None = None,
        on_event: OnEvent | None = None,
        hooks: Sequence[StepHook] = (),
        host: Host | None = None,
    ) -> WorkflowEngine:
        """Return an engine that goes on with a run: the workflow of its checkpoint, with the results of the steps that succeeded.

        Raises ``InvalidWorkflow`` when the definition was changed into one that the format refuses.
        """
        document = load_data(data.workflow_definition, data.source or f"<checkpoint {data.run_id}>")
        engine = cls(
            document, provider_gateway, tool_registry, checkpointer, data.run_id, on_event, hooks=hooks, host=host
        )
        engine.go_on(data, approval_decisions)
        return engine

    def go_on(self, data: CheckpointData, decisions: Mapping[str, str] | None = None) -> None:
        """Go on with the run of a checkpoint: under its id, with the results of the steps that succeeded.

        ``decisions`` are those about gates that wait, by their paths: `approved` or `rejected`.
        """
        self._decisions = dict(decisions or {})
        self.run_id, self._fixed_id = data.run_id, True
        self._seed = data
        self._source = data.source

    def wrap_tools(self, wrapped: Callable[[Tools], Tools]) -> None:
        """Put something around the tools, such as what records their calls."""
        self._tools = wrapped(self._tools)

    def check(self) -> Prepared:
        """Return what a run needs to know beforehand; ``run`` calls it before its first event.

        Raises ``InvalidWorkflow`` for a document with errors, ``WorkflowError`` for a typed workflow that doesn't hold together, and
        ``UsageError`` for an unknown ``until``.
        """
        if self._prepared is None:
            prepared = prepare(self._workflow)
            if self._until is not None:
                prepared = replace(prepared, plan=up_to(prepared.plan, self._until))
            self._prepared = prepared
        return self._prepared

    async def run(self, state: Mapping[str, Any] | None = None) -> WorkflowResult:
        """Run the workflow; ``state`` overrides keys of its own `state:`.

        A step that fails is part of the result. Raises what ``check`` raises, and ``UsageError`` for a state that can't be used.
        """
        prepared = self.check()
        if not isinstance(state, Mapping | None):
            raise UsageError(f"`state` must be a mapping, not a `{type(state).__name__}`")
        given = plain(dict(state or {}), "state")
        if STEPS in given:
            raise UsageError("state key `steps` is reserved for step results; use another key")
        if self._runs and not self._fixed_id:
            self.run_id = new_run_id()
        self._runs += 1
        stream = EventStream(self.run_id, self._on_event)
        plan = prepared.plan
        redaction = redaction_for(prepared, os.environ, keys_for(self._workflow, os.environ))
        started_from = {**plain(self._seed.state if self._seed else prepared.state, "state"), **given}
        started_from.pop(STEPS, None)
        kept = kept_of(self._seed)
        definition = self._definition(redaction)
        keeper = self._open_keeper(plan, started_from, redaction, definition)
        limits = limits_of(plan.budget_usd, plan.timeout, *keeper.spent)
        run = Run(prepared, stream, limits, keeper, redaction, definition=definition)
        began = anyio.current_time()
        try:
            await stream.emit(
                RunStarted(workflow=plan.workflow, steps=sum(map(len, plan.layers)), layers=len(plan.layers))
            )
            with discreet(run.secrets):
                done = await self._interpret(run, started_from, "", kept)
            return await self._finish(run, done, (anyio.current_time() - began) * 1000)
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
            with anyio.CancelScope(shield=True):
                try:
                    await self._save(run, "cancelled")
                except Exception as failure:
                    log.warning("The checkpoint can't be written: %s", in_plain_words(failure))
            raise
        finally:
            keeper.close()

    def _open_keeper(
        self, plan: Plan, state: Mapping[str, JSON], redaction: Redaction, definition: Mapping[str, JSON]
    ) -> Keeper:
        """Return what keeps the run. Raises ``RunIsBusy`` when another process runs it, ``WorkflowError`` when nothing can be written."""
        seed = self._seed
        header = {
            "run_id": self.run_id,
            "workflow_name": plan.workflow,
            "workflow_definition": definition,
            "state": redaction.state(state, places_of(plan, redaction)),
            "source": self._source,
            "step_results": seed.step_results if seed else {},
            "completed_steps": seed.completed_steps if seed else [],
            "attempts": seed.attempts if seed else {},
            "inside": seed.inside if seed else {},
            "paused_since": seed.paused_since if seed else {},
            "spent_inside": seed.spent_inside if seed else {},
            "decisions": self._decisions,
            "total_cost_usd": seed.total_cost_usd if seed else 0.0,
            "total_tokens": seed.total_tokens if seed else 0,
            "created_at": seed.created_at if seed else now(),
        }
        try:
            return self._host.open(self.run_id, self._checkpointer, seed, header)
        except OSError as error:
            raise WorkflowError(
                f"the run can't be kept: {error.strerror or error}: {error.filename or ''}".rstrip(": ")
            ) from None

    def _definition(self, redaction: Redaction) -> dict[str, JSON]:
        return without_secrets(definition_of(self._workflow), redaction) if self._checkpointer is not None else {}

    async def _save(self, run: Run, status: str) -> str | None:
        """Write the checkpoint of a run, as far as it has come, and return its file, if it is one."""
        state = run.states[""].root if "" in run.states else {}
        return await run.keeper.save(self._ended(run, run.definition, state, run.results(""), status), run.paused_at())

    async def _save_part(self, run: Run, path: str, done: Done, status: str) -> None:
        """Write the checkpoint of a child workflow, unless it was cut short with its parent, whose own one then holds it."""
        if self._checkpointer is None or run.keeper.broken is not None or run.cut_short():
            return
        below = definition_below(run.definition, path)
        await run.keeper.save_part(
            path, self._ended(run, below, done.state, done.results, status), run.secrets.scrubbed
        )

    def _ended(
        self,
        run: Run,
        definition: Mapping[str, JSON],
        state: Mapping[str, JSON],
        results: Mapping[str, StepResult],
        status: str,
    ) -> Ended:
        spent = _spend_of(run.limits.ledger)
        return Ended(run.prepared.plan, definition, self._source, state, results, status, spent, run.redaction)

    async def _finish(self, run: Run, done: Done, took: float) -> WorkflowResult:
        """Keep how a run ended, tell it, and return it, without secrets."""
        plan, limits, redaction = run.prepared.plan, run.limits, run.redaction
        status, error = outcome_of(done.results, done.halt, limits)
        checkpoint = None
        if run.keeper.broken is not None:  # what was written until then is what a resume goes on with
            status, error = "failed", f"the journal can't be written: {in_plain_words(run.keeper.broken)}"
        else:
            try:
                checkpoint = await self._save(run, status)
            except Exception as failure:  # also of a store of somebody's own; what the run came to isn't lost for that
                log.debug("The checkpoint could not be written", exc_info=failure)
                status, error = "failed", f"the checkpoint can't be written: {in_plain_words(failure)}"
        usage, cost = limits.ledger.usage, limits.ledger.spent
        await run.stream.emit(
            RunFinished(
                status=status,
                total_cost_usd=cost,
                total_tokens=usage.total_tokens,
                duration_ms=took,
                error=error,
                checkpoint=checkpoint,
            )
        )
        return WorkflowResult(
            workflow_name=plan.workflow,
            status=status,
            step_results={name: without_secret(result, plan, redaction) for name, result in done.results.items()},
            final_state=redaction.state(done.state, places_of(plan, redaction)) if redaction else done.state,
            total_duration_ms=took,
            total_tokens=usage.total_tokens,
            total_cost_usd=cost,
            error=error,
            run_id=self.run_id,
        )

    async def _interpret(
        self, run: Run, given: Mapping[str, JSON], prefix: str, kept: Mapping[str, StepResult]
    ) -> Done:
        """Run a workflow, or a child of one under ``prefix``."""
        prepared, stream, limits, keeper = run.prepared, run.stream, run.limits, run.keeper
        plan = prepared.plan
        policy = narrowed(prepared.policy, current_policy())  # a tool of a confined workflow may run another one

        async def run_child(op: Op, state: Mapping[str, JSON], attempt: Attempt) -> ChildResult:
            child = prepared.children[op.step.id]
            below = Run(
                child,
                stream,
                limits.below(child.plan.budget_usd, child.plan.timeout, *keeper.spent_below(op.path)),
                keeper,
                redaction_of(child.schema, {}, run.redaction),
                run.states,
                run.progress,
                run.definition,
                run.secrets,
            )
            attempt.below = below.limits.ledger
            # Its own `state:` fills in what it isn't given.
            done = await self._interpret(below, {**plain(child.state, "state"), **state}, f"{op.path}.", {})
            status, error = outcome_of(done.results, done.halt, below.limits)
            await self._save_part(below, op.path, done, status)
            ledger = below.limits.ledger
            no_money = done.halt is Halt.BUDGET and (ledger.exceeded or ledger.reached) is not ledger
            if no_money or (done.halt is Halt.TIMEOUT and below.cut_short()):
                keeper.cut_short(op.path)
            return ChildResult(child.plan.workflow, done.results, done.state, error, done.halt)

        hooks = Hooks(self._hooks, self.run_id, plan.workflow)

        async def perform_one(op: Op) -> StepResult:
            await hooks.before(op)
            with enforced(policy):
                result = await perform(BY_TYPE[op.step.type], op, services, stream, limits, plan.max_retries, keeper)
            if run.secrets and result.status == "success":
                run.secrets.learn(op.path, BY_TYPE[op.step.type].noted(result))
            await hooks.after(op, result)
            return result

        places, untold = places_of(plan, run.redaction), untold_steps(prepared, run.redaction)
        services = Services(
            workflow=plan.workflow,
            provider=prepared.provider,
            model=prepared.model,
            stream=prepared.stream,
            gateway=self._gateway,
            tools=self._tools,
            run_child=run_child,
            decisions={**keeper.decisions, **self._decisions},
            paused_since=keeper.paused_since,
            clock=keeper.clock,
            sandbox=prepared.sandbox,
            policy=policy,
            redact=lambda state: run.redaction.state(state, places),
            is_secret=lambda step_id: step_id in untold,
            max_retries=plan.max_retries,
            capture_prompts=prepared.capture_prompts,
            agents=prepared.agents,
            project=_project_of(self._workflow),
            callback_url=os.environ.get(CALLBACK_URL, "").strip().rstrip("/") or None,
            folder=prepared.folder,
        )
        run.secrets.enter(prefix, plan, run.redaction, given)
        state = run.states[prefix] = State(given)
        kept = {name: with_secrets(result, plan, given, prefix, run.redaction) for name, result in kept.items()}
        if kept:
            executors = {step.id: BY_TYPE[step.type] for layer in plan.layers for step in layer}
            for name, result in kept.items():
                state.record(name, executors[name].noted(result) if name in executors else result.output)
        progress = run.progress[prefix] = Progress()
        guard = Guard(limits, keeper)
        runner = self._host.runner(
            stream,
            perform_one,
            plan.max_concurrent_steps,
            keeper.outcomes(lambda result: with_secrets(result, plan, given, prefix, run.redaction)),
            may_start=lambda: guard.before() is None,
            keep=keeper.keeper_for(plan, run.redaction),
            sync=keeper.sync,
            told=lambda path, output, value: told(output, value, places.get(path[len(prefix) :]), run.redaction),
        )
        await interpret(plan, state, runner, BY_TYPE, prefix, guard, kept, progress)
        halt = progress.halt or (Halt.BUDGET if limits.ledger.exceeded is not None else None)
        if halt is Halt.BUDGET and limits.ledger.exceeded not in (None, limits.ledger):
            # The child as a whole crossed the limit of a workflow above it, and keeps its result if it is done.
            halt = None if len(progress.results) == len(plan.needs) else halt
        return Done(run.results(prefix), state.root, halt)


def _spend_of(ledger: Ledger) -> Spend:
    return Spend(ledger.spent, ledger.usage.total_tokens)


def new_run_id() -> str:
    """Return twelve random hexadecimal digits."""
    return os.urandom(6).hex()


def _project_of(workflow: WorkflowDocument | Workflow) -> str | None:
    """Return where the Python modules of a workflow's project lie: beside its settings, else beside its file."""
    if not isinstance(workflow, WorkflowDocument):
        return None
    folder = workflow.context.settings.folder or (workflow.path.parent if workflow.path is not None else None)
    return None if folder is None else str(folder)


def _builtin_tools(workflow: WorkflowDocument | Workflow) -> ToolRegistry:
    """Return the built-in tools; their relative paths start at the workflow's file, or at the working directory without one."""
    path = workflow.path if isinstance(workflow, WorkflowDocument) else None
    registry = ToolRegistry()
    register_builtins(registry, folder=None if path is None else path.parent)
    return registry
