"""The plan of a run: which steps lie in which layer, what gates them, where they write. Pure; made from the typed workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from agentloom.analysis.graph import build_graph, find_cycles
from agentloom.core.results import StepResult
from agentloom.core.state import STEPS
from agentloom.errors import UsageError, WorkflowError
from agentloom.language.paths import Part, PathFault, parse_output_path
from agentloom.records import record
from agentloom.similar import closest

if TYPE_CHECKING:
    from agentloom.model.workflow import Step, Workflow

Policy = Literal["skip_downstream", "continue"]


@record()
class Plan:
    """What is known of a run before it starts.

    ``layers`` hold steps in the order of the file; the runner starts those of a layer in alphabetical order of their ids. ``outputs``
    is where each step with an `output` writes, ``conversations`` where each with a `conversation` keeps that. ``routers`` are the ids of the routers, each with true.
    """

    workflow: str
    policy: Policy
    layers: tuple[tuple[Step, ...], ...]
    needs: Mapping[str, tuple[str, ...]]
    routers: Mapping[str, bool]
    outputs: Mapping[str, tuple[Part, ...]]
    conversations: Mapping[str, tuple[Part, ...]]
    max_concurrent_steps: int
    max_retries: int
    budget_usd: float | None
    timeout: float | None


@record()
class Skip:
    """Why a step doesn't run. ``cause`` is the closest failed step before it, ``distance`` how many dependencies away.

    Without a cause, a router chose another branch.
    """

    cause: str | None = None
    distance: int = 0

    @property
    def error(self) -> str | None:
        """The text of the step's result."""
        return None if self.cause is None else f"skipped due to upstream failure: {self.cause}"


def refuse_tangles(needs: Mapping[str, Sequence[str]]) -> None:
    """Raise ``WorkflowError`` for dependencies that make no graph: on steps that don't exist, on themselves, in a circle."""
    for name, wanted in needs.items():
        for need in wanted:
            if need not in needs:
                raise WorkflowError(f"step `{name}` depends on `{need}`, which is not defined")
            if need == name:
                raise WorkflowError(f"step `{name}` depends on itself")
    if loops := find_cycles(needs):
        raise WorkflowError(f"steps depend on each other: {' -> '.join([*loops[0], loops[0][0]])}")


def make_plan(workflow: Workflow) -> Plan:
    """Return the plan of a workflow.

    Raises ``WorkflowError`` for what the analysis of a file reports as errors: ids that repeat, dependencies and targets that don't
    exist, cycles, output paths that are none. A workflow built in Python may come here without that analysis.
    """
    order: dict[str, int] = {}
    steps = workflow.steps
    for index, step in enumerate(steps):
        if step.id in order:
            raise WorkflowError(f"step id `{step.id}` stands twice, in steps {order[step.id]} and {index}")
        order[step.id] = index
    needs = {step.id: tuple(dict.fromkeys(step.depends_on)) for step in steps}
    refuse_tangles(needs)
    for step in steps:
        if step.type == "router":
            for target in [*(condition.target for condition in step.conditions), step.default]:
                if target is not None and target not in order:
                    raise WorkflowError(f"router `{step.id}` leads to `{target}`, which is not defined")
    if STEPS in workflow.state:
        raise WorkflowError("state key `steps` is reserved for step results; use another key")
    layers = [sorted(order[name] for name in layer) for layer in build_graph(needs).layers]
    return Plan(
        workflow=workflow.name,
        policy=workflow.config.on_step_failure,
        layers=tuple(tuple(steps[index] for index in layer) for layer in layers),
        needs=needs,
        routers={step.id: True for step in steps if step.type == "router"},
        outputs={step.id: _path(step.id, "output", step.output) for step in steps if step.output is not None},
        conversations={
            step.id: _path(step.id, "conversation", step.conversation)
            for step in steps
            if (step.type == "llm_call" or step.type == "agent") and step.conversation is not None
        },
        max_concurrent_steps=workflow.config.max_concurrent_steps,
        max_retries=workflow.config.max_retries,
        budget_usd=workflow.config.budget_usd,
        timeout=workflow.config.timeout,
    )


def up_to(plan: Plan, step_id: str) -> Plan:
    """Return the plan of a run that ends with a step: what it waits for, directly or not, and the step itself.

    Raises ``UsageError`` for a step that isn't there.
    """
    if step_id not in plan.needs:
        near = closest(step_id, tuple(plan.needs))
        raise UsageError(f"step `{step_id}` is not defined" + (f"; did you mean `{near}`?" if near else ""))
    wanted = {step_id: True}
    todo = [step_id]
    while todo:
        for need in plan.needs[todo.pop()]:
            if need not in wanted:
                wanted[need] = True
                todo.append(need)
    layers = (tuple(step for step in layer if step.id in wanted) for layer in plan.layers)
    return replace(plan, layers=tuple(layer for layer in layers if layer))


def _path(step_id: str, field: str, text: str) -> tuple[Part, ...]:
    path = parse_output_path(text)
    if isinstance(path, PathFault):
        raise WorkflowError(f"step `{step_id}`: `{field}: {text}` is no path in the state; {path.message}")
    if path.parts[0] == STEPS:
        raise WorkflowError(f"step `{step_id}`: `{field}: {text}` is reserved for step results; use another key")
    return path.parts


def skip_of(step_id: str, plan: Plan, results: Mapping[str, StepResult], skips: Mapping[str, Skip]) -> Skip | None:
    """Return why a step is skipped, or None if it runs. ``results`` and ``skips`` tell how the steps before it ended.

    A step runs if every router that it depends on chose it and nothing that it depends on was skipped; a failed step lets it run only
    under `continue`, a failed router never.
    """
    found: Skip | None = None
    for need in plan.needs[step_id]:
        result = results[need]
        if result.status == "success":
            if not plan.routers.get(need) or result.output == step_id:
                continue
            reason = Skip()
        elif need in skips:
            before = skips[need]
            reason = Skip() if before.cause is None else Skip(before.cause, before.distance + 1)
        elif plan.policy == "skip_downstream" or plan.routers.get(need):
            reason = Skip(need, 1)
        else:
            continue
        if found is None or (reason.cause is not None and (found.cause is None or reason.distance < found.distance)):
            found = reason
    return found
