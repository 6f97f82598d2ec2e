"""The interpreter: plan, batch, perform, merge, layer by layer. It decides everything about a run and does nothing itself.

It reads no clock, no environment and no randomness, does no input or output, and iterates over no set; a test reads this file for
that. So the same workflow, state and outcomes always make the same decisions, on whatever runner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from agentloom.core.events import StepFinished, StepSkipped, StepStarted
from agentloom.core.kinds import EVERYTHING, Executor
from agentloom.core.plan import Plan, Skip, skip_of
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Halt, Op, Runner, Verdict
from agentloom.core.state import STEPS, State
from agentloom.errors import StateWriteError
from agentloom.language.paths import MISSING, Part, format_path

if TYPE_CHECKING:
    from agentloom.model.workflow import Step


class Guard(Protocol):
    """Says when a run has to end early."""

    def before(self) -> Halt | None:
        """Tell why a step may not start."""
        ...

    def after(self) -> Halt | None:
        """Tell why the run has to stop after a step ended."""
        ...


class Unlimited:
    """No limits at all."""

    def before(self) -> Halt | None:
        """Every step may start."""
        return None

    def after(self) -> Halt | None:
        """No run has to stop."""
        return None


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Progress:
    """How far a run is: the results so far, in the order in which they were decided, and why steps were skipped."""

    results: dict[str, StepResult] = field(default_factory=dict)
    skips: dict[str, Skip] = field(default_factory=dict)
    halt: Halt | None = None


async def interpret(
    plan: Plan,
    state: State,
    runner: Runner,
    executors: Mapping[str, Executor],
    prefix: str = "",
    limits: Guard | None = None,
    kept: Mapping[str, StepResult] | None = None,
    progress: Progress | None = None,
) -> Progress:
    """Run a plan on ``state``, which is changed; paths begin with ``prefix``.

    A layer reads the state as it stood when the layer began. What its steps give is merged when all of them have ended, in the order
    of the file. ``limits`` says when the run's money or time is over; nothing starts then, but what is recorded already still counts.
    ``kept`` are results of an earlier life of the run, which the state holds already. ``progress`` is filled in as the run goes on, for whoever needs it when the run is cancelled.
    """
    progress = progress or Progress()
    progress.results.update(
        {step.id: kept[step.id] for layer in plan.layers for step in layer if kept and step.id in kept}
    )
    for number, layer in enumerate(plan.layers, 1):
        if progress.halt is None:
            await _layer(number, layer, plan, progress, state, runner, executors, prefix, limits or Unlimited())
            continue
        # It was halted sooner than in an earlier life: what that has paid for is no less done.
        for step in layer:
            known = None if step.id in progress.results else runner.recorded(prefix + step.id)
            if known is not None:
                progress.results[step.id] = _merge(step, known, plan, state, executors)
    return progress


async def _layer(
    number: int,
    layer: tuple[Step, ...],
    plan: Plan,
    progress: Progress,
    state: State,
    runner: Runner,
    executors: Mapping[str, Executor],
    prefix: str,
    limits: Guard,
) -> None:
    """Decide about each step of a layer, have the batch performed, and merge what comes back."""
    arrived: dict[str, StepResult] = {}
    batch: list[Op] = []
    overlapping = _overlapping(layer, plan)
    for step in layer:
        if step.id in progress.results:
            continue
        skip = skip_of(step.id, plan, progress.results, progress.skips)
        if skip is not None:
            progress.skips[step.id] = skip
            progress.results[step.id] = StepResult(step.id, "skipped", error=skip.error, attempts=0)
            await runner.emit(StepSkipped(step=prefix + step.id, error=skip.error))
            continue
        known = runner.recorded(prefix + step.id)
        if known is None:
            progress.halt = progress.halt or limits.before()
        if progress.halt is not None:
            if known is not None:
                arrived[step.id] = known
            continue
        executor = executors[step.type]
        # A path that the state is going to refuse anyway fails the step before it costs anything. Where a sibling may still change
        # what lies on the path, only the merge can tell.
        refused = None if step.id in overlapping else _refused(step, plan, state)
        if refused is not None or executor.decide is not None:
            if known is not None:
                arrived[step.id] = known
                continue
            await runner.emit(StepStarted(step=prefix + step.id, type=step.type, layer=number))
            result = refused or (executor.decide(step, state.root) if executor.decide else None)
            assert result is not None
            arrived[step.id] = result
            runner.note(prefix + step.id, result)
            await runner.emit(finished(prefix + step.id, result))
        else:
            reads = executor.reads(step)
            paths = [()] if reads is EVERYTHING else list(reads)
            inputs = state.share() if () in paths else project(state.root, paths)
            batch.append(Op(executor.kind, prefix + step.id, step, inputs, number))

    def settle(op: Op, outcome: StepResult) -> Verdict:
        arrived[op.step.id] = outcome
        halt = limits.after()
        if halt is Halt.BUDGET:
            progress.halt = halt
            return Verdict.STOP
        if halt is Halt.UNKEPT or (halt is Halt.TIMEOUT and outcome.status == "timeout"):
            progress.halt = progress.halt or halt
            return Verdict.DRAIN
        return Verdict.GO

    if batch and progress.halt is None:
        try:
            await runner.perform(batch, settle)
        except BaseException:  # cancelled: what has arrived counts all the same
            for step in layer:
                if step.id in arrived:
                    progress.results[step.id] = _merge(step, arrived[step.id], plan, state, executors)
            raise
        if any(op.step.id not in arrived for op in batch):
            progress.halt = progress.halt or limits.before()
    elif batch:
        known_ones = ((op, runner.recorded(op.path)) for op in batch)
        arrived.update({op.step.id: known for op, known in known_ones if known is not None})
    for step in layer:
        outcome = arrived.get(step.id)
        if outcome is None:
            continue
        merged = _merge(step, outcome, plan, state, executors)
        progress.results[step.id] = merged
        if merged is not outcome:
            await runner.emit(finished(prefix + step.id, merged))
        if merged.status == "paused":
            progress.halt = Halt.PAUSED  # outranks what else may end the run


def _merge(step: Step, outcome: StepResult, plan: Plan, state: State, executors: Mapping[str, Executor]) -> StepResult:
    """Write what a step gave to the state; return its result, which is a failure if the state refuses the path."""
    if outcome.status != "success":
        return outcome
    writes = [(path, value) for path, value in _writes(step, outcome, plan) if value is not MISSING]
    try:
        for path, _ in writes[
            1:
        ]:  # the first write looks for itself; nothing is written if a later one is going to be refused
            state.check(path)
        for path, value in writes:
            state.write(path, value)
    except StateWriteError as error:
        return replace(
            outcome,
            status="failed",
            output=None,
            value=MISSING,
            conversation=MISSING,
            error=str(error),
            error_classification="permanent",
        )
    state.record(step.id, executors[step.type].noted(outcome))
    return outcome


def _writes(step: Step, outcome: StepResult | None, plan: Plan) -> Iterator[tuple[tuple[Part, ...], JSON]]:
    """Yield where a step writes to the state, and what."""
    if step.id in plan.conversations:
        yield plan.conversations[step.id], MISSING if outcome is None else outcome.conversation
    if step.id in plan.outputs:
        yield plan.outputs[step.id], MISSING if outcome is None else outcome.written


def _refused(step: Step, plan: Plan, state: State) -> StepResult | None:
    """Return the result of a step whose paths the state refuses, or exclude each other; None if it may write there."""
    try:
        talk, output = plan.conversations.get(step.id), plan.outputs.get(step.id)
        if talk and output and all(one == other for one, other in zip(talk, output, strict=False)):
            raise StateWriteError(
                f"output path `{format_path(output)}` and conversation `{format_path(talk)}` are one place; use another key"
            )
        for path, _ in _writes(step, None, plan):
            state.check(path)
    except StateWriteError as error:
        return StepResult(step.id, "failed", error=str(error), error_classification="permanent", attempts=0)
    return None


def _overlapping(layer: tuple[Step, ...], plan: Plan) -> Mapping[str, bool]:
    """Return the ids of the steps, each with true, that write below a top-level key below which a sibling writes, too."""
    if len(layer) < 2:
        return {}
    writers: dict[Part, dict[str, bool]] = {}
    for step in layer:
        if step.output is not None or step.id in plan.conversations:
            for path, _ in _writes(step, None, plan):
                writers.setdefault(path[0], {})[step.id] = True
    return {name: True for names in writers.values() if len(names) > 1 for name in names}


def project(root: Mapping[str, JSON], paths: Iterable[tuple[Part, ...]]) -> dict[str, JSON]:
    """Return the part of the state that some paths lie in: whole top-level keys, and of ``steps`` only the steps that are named.

    None of the paths is the empty one, which stands for the whole state.
    """
    found: dict[str, JSON] = {}
    for path in paths:
        key = path[0] if path else None
        if not isinstance(key, str) or key not in root:
            continue
        if key != STEPS or len(path) == 1:
            found[key] = root[key]
            continue
        name, results = path[1], root[STEPS]
        chosen = found.setdefault(STEPS, {})
        if chosen is not results and isinstance(name, str) and name in results:
            chosen[name] = results[name]
    return found


def finished(path: str, result: StepResult) -> StepFinished:
    """Return the event that tells of a result."""
    return StepFinished(
        step=path,
        status=result.status,
        output=result.output,
        value=result.value,
        error=result.error,
        duration_ms=result.duration_ms,
        cost_usd=result.cost_usd,
        tokens=result.token_usage.total_tokens,
        model=result.model,
        provider=result.provider,
        warnings=result.warnings,
        webhook=result.webhook,
    )
