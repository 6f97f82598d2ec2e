"""Small random workflows, and what their steps really read on every route: the real interpreter, run over all decisions and failures."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any, cast

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.settings import Settings
from agentloom.core.events import RunEvent
from agentloom.core.interpreter import interpret
from agentloom.core.kinds import Attempt, ChildResult, Executor, Services
from agentloom.core.plan import Plan, make_plan
from agentloom.core.results import StepResult
from agentloom.core.runner import Op, Settle
from agentloom.core.state import State
from agentloom.language.paths import MISSING, Part, get
from agentloom.steps import subworkflow
from agentloom.steps.table import BY_TYPE
from tests.analysis.checking import check

Place = tuple[str, tuple[Part, ...]]
"""A step's path in the run (`sub.s1`), and what it reads."""

KEYS = ("a", "b", "c.x", "c.y")
READS = (*KEYS, "c", "c.z", "d")


def workflow(random: Random, size: int = 6, child: bool = True) -> dict[str, Any]:
    """Return a small workflow in plain data: some routers, some subworkflows, steps that write and read a few keys."""
    names = [f"s{n}" for n in range(random.randint(2, size))]
    random.shuffle(names)
    steps: list[dict[str, Any]] = []
    routers = 0
    for at, name in enumerate(names):
        earlier = names[:at]
        needs = random.sample(earlier, min(len(earlier), random.choice((0, 1, 1, 1, 2))))
        deciding = [step["id"] for step in steps if step["type"] == "router"]
        if deciding and random.random() < 0.4:
            needs = [random.choice(deciding)]
        kind = random.random()
        if kind < 0.35 and routers < 3 and at < len(names) - 1:
            routers += 1
            steps.append({"id": name, "type": "router", "depends_on": needs, "decides": f"d{random.randint(0, 2)}"})
        elif kind < 0.5 and child:
            steps.append(_subworkflow(random, name, needs))
        else:
            step: dict[str, Any] = {
                "id": name,
                "type": "llm_call",
                "depends_on": needs,
                "prompt": _prompt(random, names),
            }
            if random.random() < 0.7:
                step["output"] = random.choice(KEYS)
            steps.append(step)
    for step in steps:
        if step["type"] == "router":
            _ways(random, step, steps)
    random.shuffle(steps)
    policy = random.choice(("skip_downstream", "skip_downstream", "continue"))
    state = {"d": "given"} if random.random() < 0.3 else {}
    return {"name": "w", "config": {"on_step_failure": policy}, "state": state, "steps": steps}


def joined(random: Random) -> dict[str, Any]:
    """Return a small workflow in which branches of one or two routers write, and a step that waits for none of them reads."""
    steps: list[dict[str, Any]] = []
    key = random.choice(("d0", "d1", "d2"))
    routers = [("r", [], key)]
    if random.random() < 0.4:
        routers.append(("q", [random.choice(("m0", "m1"))], random.choice((key, "d0", "d1"))))
    for name, needs, decides in routers:
        size = random.randint(2, 3)
        branches = [f"{name}{number}" for number in range(size)]
        step: dict[str, Any] = {"id": name, "type": "router", "depends_on": needs}
        numbers = range(1 if decides == "d0" else 2)
        step["conditions"] = [
            {"expression": f"state.{decides} == {number}", "target": random.choice(branches)} for number in numbers
        ]
        if decides != "d2":
            step["default"] = random.choice(branches)
        steps.append(step)
        for branch in branches:
            above = name if random.random() < 0.8 or branch == branches[0] else branches[0]
            found: dict[str, Any] = {"id": branch, "type": "llm_call", "depends_on": [above]}
            if random.random() < 0.8:
                found["output"] = random.choice(("a", "a", "c.x"))
            steps.append({**found, "prompt": _prompt(random, ["r", *branches])})
    for number in range(4):
        needs = [f"m{number - 1}"] if number else []
        steps.append(
            {"id": f"m{number}", "type": "llm_call", "depends_on": needs, "prompt": "{state.a} {state.c.x} {state.c}"}
        )
    policy = random.choice(("skip_downstream", "continue"))
    random.shuffle(steps)
    return {"name": "w", "config": {"on_step_failure": policy}, "state": {}, "steps": steps}


def _ways(random: Random, step: dict[str, Any], steps: Sequence[Mapping[str, Any]]) -> None:
    behind = [other["id"] for other in steps if step["id"] in other["depends_on"]]
    others = [other["id"] for other in steps]
    key = step.pop("decides")
    # Routers over one key have the same conditions, so that they decide alike.
    targets = [random.choice([*behind, *behind, *others]) for _ in range(1 if key == "d0" else 2)]
    step["conditions"] = [
        {"expression": f"state.{key} == {number}", "target": target} for number, target in enumerate(targets)
    ]
    if key != "d2":
        step["default"] = random.choice([*behind, *behind, *others])
    if random.random() < 0.3:
        step["output"] = random.choice(KEYS)


def _subworkflow(random: Random, name: str, needs: list[str]) -> dict[str, Any]:
    inner = workflow(random, 3, child=False)
    inner["config"] = {"on_step_failure": random.choice(("skip_downstream", "continue"))}
    step: dict[str, Any] = {"id": name, "type": "subworkflow", "depends_on": needs, "workflow_inline": inner}
    step["output"] = random.choice(("o", "p"))
    if random.random() < 0.5:
        step["isolated_state"] = True
    if random.random() < 0.5:
        step["input"] = {random.choice(("a", "b", "d")): "handed"}
    if random.random() < 0.4:
        step["return_keys"] = random.sample(("a", "b", "c", "d"), 2)
    return step


def _prompt(random: Random, names: Sequence[str]) -> str:
    found = [f"{{state.{random.choice(READS)}}}" for _ in range(2)]
    found.append(f"{{state.steps.{random.choice(names)}.output}}")
    below = random.choice(("a", "c.x", "d", "c", "steps"))
    found.append(f"{{state.{random.choice(('o', 'p'))}.{below}}}")
    return " ".join(found)


@dataclass
class Route:
    """One run: the decision of each key, and the paths of the steps that fail. ``seen`` tells for each read whether it found a value."""

    decisions: Mapping[str, int]
    fails: frozenset[str]
    seen: dict[Place, bool] = field(default_factory=dict)
    failed: bool = False
    """Whether a step failed, be it a router that found no way out."""


class World:
    """A document, and every route through it."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.document: WorkflowDocument = check(json.dumps(data), Settings())
        self.plans: dict[str, Plan] = {}
        self.reads: dict[str, tuple[tuple[Part, ...], ...]] = {}
        self.fallible: list[str] = []  # but for those whose end changes nothing for others
        self.keys: dict[str, int] = {}
        self._learn(self.document, data, "")

    def _learn(self, document: WorkflowDocument, data: Mapping[str, Any], prefix: str) -> None:
        self.plans[prefix] = make_plan(document.view)
        for step, plain in zip(document.steps, data["steps"], strict=True):
            path = f"{prefix}{step.id}"
            self.reads[path] = tuple(
                dict.fromkeys(o.parts for o in step.facts.reads if not str(o.parts[0]).startswith("d"))
            )
            if step.type == "router":
                for condition in plain["conditions"]:
                    words = condition["expression"].removeprefix("state.").split()
                    self.keys[words[0]] = max(self.keys.get(words[0], 0), int(words[2]) + 1)
            elif step.type == "subworkflow":
                child = document.children[step.id or ""].document
                assert child is not None
                self._learn(child, plain["workflow_inline"], f"{path}.")
            if step.type != "subworkflow" and not (step.id or "").startswith("m"):
                self.fallible.append(path)

    @property
    def count(self) -> int:
        """How many routes there are."""
        total = 2 ** len(self.fallible)
        for most in self.keys.values():
            total *= most + 1
        return total

    def routes(self) -> Iterator[Route]:
        """Yield every route, run."""
        names = sorted(self.keys)
        for values in product(*(range(self.keys[name] + 1) for name in names)):
            for bits in range(2 ** len(self.fallible)):
                fails = frozenset(path for n, path in enumerate(self.fallible) if bits >> n & 1)
                yield self.run(dict(zip(names, values, strict=True)), fails)

    def run(self, decisions: Mapping[str, int], fails: frozenset[str]) -> Route:
        """Return one route, run by the real interpreter."""
        route = Route(decisions, fails)
        _drive(self._interpret("", dict(decisions), route, self.document))
        return route

    async def _interpret(
        self, prefix: str, given: Mapping[str, Any], route: Route, document: WorkflowDocument
    ) -> tuple[dict[str, StepResult], Mapping[str, Any]]:
        world = self

        def look(path: str, state: Mapping[str, Any]) -> None:
            for parts in world.reads[path]:
                route.seen[path, parts] = get(state, parts) is not MISSING

        def decide(step: Any, state: Mapping[str, Any]) -> StepResult:
            look(prefix + step.id, state)
            real = BY_TYPE["router"].decide
            assert real is not None
            if prefix + step.id in route.fails:
                found = StepResult(step.id, "failed", error="no")
            else:
                found = real(step, state)
            route.failed |= found.failed
            return found

        class Runner:
            run_id = "run"

            async def perform(self, ops: Sequence[Op], settle: Settle) -> None:
                for op in ops:
                    look(op.path, op.inputs)
                    if op.step.type == "subworkflow":
                        settle(op, await self.child(op))
                    elif op.path in route.fails:
                        route.failed = True
                        settle(op, StepResult(op.step.id, "failed", error="no"))
                    else:
                        settle(op, StepResult(op.step.id, "success", output="text"))

            async def child(self, op: Op) -> StepResult:
                below = document.children[op.step.id].document
                assert below is not None

                async def run_child(op: Op, state: Mapping[str, Any], attempt: Attempt) -> ChildResult:
                    results, final = await world._interpret(f"{op.path}.", {**route.decisions, **state}, route, below)
                    bad = [result for result in results.values() if result.failed]
                    return ChildResult("child", results, final, "failed" if bad else None)

                services = cast("Services", _Services(run_child))
                return await subworkflow.run(op, services, cast("Attempt", _Silent()))

            def recorded(self, path: str) -> None:
                return None

            def note(self, path: str, outcome: StepResult) -> None:
                pass

            async def emit(self, event: RunEvent) -> None:
                pass

        executors: dict[str, Executor] = dict(BY_TYPE)
        executors["router"] = replace(BY_TYPE["router"], decide=decide)
        state = State({**document.view.state, **given})
        progress = await interpret(self.plans[prefix], state, Runner(), executors, prefix)
        return progress.results, state.root


@dataclass
class _Services:
    run_child: Any


class _Silent:
    def warn(self, message: str) -> None:
        """Say nothing."""


def _drive(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits for something")
