"""The seam: the interpreter is pure, any runner that keeps the promises gives the same run (R1 … R7)."""

from __future__ import annotations

import ast
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from agentloom.core import interpreter
from agentloom.core.events import EventStream, RunEvent, StepFinished
from agentloom.core.interpreter import interpret, project
from agentloom.core.local import LocalRunner
from agentloom.core.plan import make_plan
from agentloom.core.results import StepResult
from agentloom.core.runner import Op, Outcome, Runner, Settle, Verdict
from agentloom.core.state import State
from agentloom.model.workflow import build_workflow
from agentloom.steps.table import BY_TYPE
from tests.engine.world import ask, flow, route, sub, use

IMPURE = {
    "anyio",
    "asyncio",
    "datetime",
    "io",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "sys",
    "threading",
    "time",
    "uuid",
}
MODULES = ("interpreter", "plan", "state", "runner", "results")


def impurities(source: str) -> list[str]:
    """Return what a module does that an interpreter must not: import the outside world, open files, print, build sets."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in IMPURE]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in IMPURE:
            found.append(node.module)
        elif isinstance(node, ast.Set | ast.SetComp):
            found.append("a set")
        elif isinstance(node, ast.Name) and node.id in ("set", "frozenset", "open", "print", "input", "hash", "id"):
            found.append(node.id)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_the_interpreter_is_pure(module: str) -> None:
    """R1: no input or output, no clock, no environment, no randomness, no order that Python doesn't promise."""
    path = Path(interpreter.__file__).with_name(f"{module}.py")
    # The state tells its own containers from others by identity; it never orders anything by it.
    allowed = {"id"} if module == "state" else set()
    assert [found for found in impurities(path.read_text(encoding="utf-8")) if found not in allowed] == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from os import environ",
        "def f():\n  import random",
        "for x in {1, 2}: ...",
        "set(x)",
        "print(1)",
    ],
)
def test_the_test_of_purity_can_fail(source: str) -> None:
    """Each way to be impure is found."""
    assert impurities(source) != []


def ops(*paths: str) -> list[Op]:
    """Return operations that read nothing."""
    step = build_workflow(flow(ask("a"))).steps[0]
    return [Op("step", path, step, {}, 1) for path in paths]


async def perform(
    batch: Sequence[Op],
    one: Callable[[Op], Awaitable[Outcome]],
    stop_at: str = "",
    limit: int = 2,
    recorded: Mapping[str, Outcome] | None = None,
) -> tuple[list[str], list[RunEvent]]:
    """Perform a batch on the local runner; return the order in which it settled, and the events."""
    settled: list[str] = []
    events: list[RunEvent] = []

    async def keep(event: RunEvent) -> None:
        await anyio.lowlevel.checkpoint()
        events.append(event)

    def settle(op: Op, outcome: Outcome) -> Verdict:
        settled.append(op.path)
        return Verdict.STOP if op.path == stop_at else Verdict.GO

    runner = LocalRunner(EventStream("r", keep), one, limit, recorded)
    await runner.perform(batch, settle)
    return settled, events


async def done(op: Op) -> Outcome:
    """End well at once."""
    return StepResult(op.path, "success")


def test_operations_start_in_alphabetical_order_and_settle_as_they_arrive() -> None:
    """R2, SC-4: `a` starts first and arrives last."""
    gate = anyio.Event()
    started: list[str] = []

    async def one(op: Op) -> Outcome:
        started.append(op.path)
        if op.path == "a":
            await gate.wait()
        if op.path == "d":
            gate.set()
        return await done(op)

    settled, _ = anyio.run(perform, ops("c", "a", "d", "b"), one)
    assert started == ["a", "b", "c", "d"]
    assert settled == ["b", "c", "d", "a"]


def test_recorded_outcomes_are_settled_first_and_do_not_run_again() -> None:
    """R5: in the order of the batch."""
    ran: list[str] = []

    async def one(op: Op) -> Outcome:
        ran.append(op.path)
        return await done(op)

    recorded = {path: StepResult(path, "success") for path in ("b", "d")}

    async def main() -> tuple[list[str], list[RunEvent]]:
        return await perform(ops("d", "a", "b", "c"), one, recorded=recorded)

    settled, _ = anyio.run(main)
    assert (settled, ran) == (["d", "b", "a", "c"], ["a", "c"])


def test_a_recorded_outcome_that_stops_lets_nothing_start() -> None:
    """R5: a budget that is used up already pays for nothing more."""

    async def one(op: Op) -> Outcome:
        raise AssertionError(op.path)

    async def main() -> tuple[list[str], list[RunEvent]]:
        return await perform(ops("a", "b"), one, stop_at="b", recorded={"b": StepResult("b", "success")})

    assert anyio.run(main) == (["b"], [])


@pytest.mark.parametrize("limit", [1, 3])
def test_stop_cancels_what_runs_and_starts_nothing_more(limit: int) -> None:
    """R-verdict: `b` stops the run; `a` and `c` end without an outcome, `d` never starts; `b`'s own result is told."""
    cancelled: list[str] = []
    started: list[str] = []

    async def one(op: Op) -> Outcome:
        started.append(op.path)
        if op.path != "b":
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                cancelled.append(op.path)
                raise
        else:
            while len(started) < limit:
                await anyio.lowlevel.checkpoint()
        return await done(op)

    async def main() -> tuple[list[str], list[RunEvent]]:
        paths = ("a", "b", "c", "d") if limit > 1 else ("b", "c", "d")
        return await perform(ops(*paths), one, stop_at="b", limit=limit)

    settled, events = anyio.run(main)
    assert settled == ["b"]
    assert sorted(cancelled) == (["a", "c"] if limit > 1 else [])
    assert "d" not in started
    assert [event.step for event in events if isinstance(event, StepFinished)] == ["b"]


def test_what_ends_after_stop_has_no_outcome() -> None:
    """R-verdict: also when it could not be cancelled in time."""

    async def one(op: Op) -> Outcome:
        if op.path == "a":
            with anyio.CancelScope(shield=True):
                await stopped.wait()
        elif op.path == "b":
            stopped.set()
        return await done(op)

    stopped = anyio.Event()
    settled, events = anyio.run(lambda: perform(ops("a", "b"), one, stop_at="b"))
    assert settled == ["b"]
    assert [event.step for event in events if isinstance(event, StepFinished)] == ["b"]


def test_an_operation_reads_only_what_its_step_names() -> None:
    """R7 and the seam: top-level keys as a whole, and of `steps` only those that are named."""
    root = {"a": {"x": [1]}, "b": 2, "steps": {"s": {"output": 1}, "t": {"output": 2}}}
    assert project(root, [("a", "x", 0), ("missing",), ()]) == {"a": {"x": [1]}}
    assert project(root, [("steps", "s", "output"), ("steps", "none")]) == {"steps": {"s": {"output": 1}}}
    assert project(root, [("steps", "s", "output"), ("steps",)])["steps"] == root["steps"]
    assert project(root, [("steps",), ("steps", "s", "output")])["steps"] == root["steps"]


WORKFLOW = flow(
    ask("a", prompt="A {state.n}", output="x.a"),
    ask("b", prompt="B {state.n}", output="x.b"),
    ask("c", output="same"),
    ask("d", output="same"),
    use("t", "tool", output="same.deep"),
    route("r", "a", "b", p="state.x.a == 'a'", default="q"),
    ask("p", "r", prompt="{state.same}"),
    ask("q", "r"),
    ask("bad"),
    ask("after", "bad"),
    ask("end", "p", "c", prompt="{state.x.b} {state.steps.p.output}", output="n"),
    state={"n": 1},
)


class Shuffled:
    """A runner that performs each batch in an order of its own, and hands every operation and outcome through JSON."""

    run_id = "shuffled"

    def __init__(self, seed: int, answers: Mapping[str, Outcome]) -> None:
        self.random = Random(seed)
        self.answers = answers
        self.batches: list[list[str]] = []

    async def perform(self, batch: Sequence[Op], settle: Settle) -> None:
        self.batches.append([op.path for op in batch])
        shuffled = list(batch)
        self.random.shuffle(shuffled)
        for op in shuffled:
            assert json.loads(json.dumps(op.inputs)) == op.inputs
            assert settle(op, self.answers[op.path]) is Verdict.GO

    def recorded(self, path: str) -> Outcome | None:
        """Begin with nothing."""
        return None

    def note(self, path: str, outcome: Outcome) -> None:
        """Keep nothing."""

    async def emit(self, event: RunEvent) -> None:
        """Keep nothing."""


async def play_on(runner: Runner, data: Mapping[str, Any]) -> tuple[Any, Any]:
    """Interpret a workflow on a runner; return results and state as JSON text, order included."""
    workflow = build_workflow(data)
    state = State(workflow.state)
    progress = await interpret(make_plan(workflow), state, runner, BY_TYPE)
    results = {name: result.to_dict() for name, result in progress.results.items()}
    return json.dumps(results), json.dumps(state.root)


ANSWERS = {
    name: StepResult(name, "failed", error="no", error_classification="permanent")
    if name == "bad"
    else StepResult(name, "success", output=name)
    for name in ("a", "b", "c", "d", "t", "p", "q", "bad", "after", "end")
}


def test_the_order_of_performing_does_not_matter() -> None:
    """R2: results, state and the order of everything in them are the same on the local runner and on thirty shuffled ones."""

    async def one(op: Op) -> Outcome:
        return ANSWERS[op.path]

    async def main() -> None:
        expected = await play_on(LocalRunner(EventStream("r", None), one, 3), WORKFLOW)
        assert json.loads(expected[1])["x"] == {"a": "a", "b": "b"}
        assert json.loads(expected[0])["t"]["status"] == "failed", "`same` is a text by then"
        for seed in range(30):
            runner = Shuffled(seed, ANSWERS)
            assert await play_on(runner, WORKFLOW) == expected
            assert runner.batches == [["a", "b", "c", "d", "t", "bad"], ["p"], ["end"]], "in the order of the file"

    anyio.run(main)


def test_a_subworkflow_is_an_operation_of_its_own_kind() -> None:
    """R4: with a path that its steps' paths begin with."""

    async def main() -> None:
        seen: list[tuple[str, str]] = []

        async def one(op: Op) -> Outcome:
            seen.append((op.kind, op.path))
            return StepResult(op.step.id, "success", output={})

        await play_on(LocalRunner(EventStream("r", None), one, 1), flow(sub("s", steps=[ask("k")]), ask("t")))
        assert seen == [("child", "s"), ("step", "t")]

    anyio.run(main)


def test_after_stop_no_later_layer_starts() -> None:
    """The interpreter obeys its own verdict; steps that never started have no result."""

    class Stopping(Shuffled):
        async def perform(self, batch: Sequence[Op], settle: Settle) -> None:
            settle(batch[0], self.answers[batch[0].path])

    async def main() -> None:
        results, _ = await play_on(Stopping(0, ANSWERS), flow(ask("a"), ask("b"), ask("p")))
        assert list(json.loads(results)) == ["a"]

    anyio.run(main)
