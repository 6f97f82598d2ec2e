"""Random workflows that are killed at any moment and resumed, against a model of the rules that the documents state.

The model knows no layers in flight, no journal and no checkpoints: which steps end how, what each of them costs, and that a step that
succeeded never runs again.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.keeping import load_run
from agentloom.core.results import WorkflowResult
from agentloom.errors import ProviderError
from agentloom.providers.base import Request, Response, Usage
from tests.engine.kept import Killed, resume, run
from tests.engine.virtual import run_virtual
from tests.engine.world import ask, flow, route, sub

COST = 0.25


@dataclass
class Node:
    """A step of a random workflow: a call, a router with its way out, or a child workflow of two calls, one after the other.

    ``flops`` is how many attempts fail before one succeeds, each time anew; ``fails`` is for good.
    """

    id: str
    needs: list[str]
    kind: str = "call"
    choice: str | None = None
    fails: bool = False
    flops: int = 0

    @property
    def calls(self) -> list[str]:
        """The names by which its calls ask the provider."""
        return {"call": [self.id], "child": [f"{self.id}.i", f"{self.id}.j"]}.get(self.kind, [])


@dataclass
class Case:
    """A workflow, and how many calls each life of the run gets before it is killed."""

    nodes: list[Node]
    policy: str
    retries: int
    lives: list[int]
    calls: Counter[str] = field(default_factory=Counter)
    won: Counter[str] = field(default_factory=Counter)
    left: int = 0

    def data(self) -> dict[str, Any]:
        """Return the workflow as a file has it."""
        steps: list[Any] = []
        for node in self.nodes:
            if node.kind == "router":
                ways = {} if node.choice is None else {node.choice: "True"}
                steps.append(route(node.id, *node.needs, **(ways or {node.id: "False"})))
            elif node.kind == "child":
                steps.append(sub(node.id, *node.needs, steps=[ask("i"), ask("j", "i")], output=f"k_{node.id}"))
            else:
                steps.append(ask(node.id, *node.needs, output=f"k_{node.id}"))
        retry = {"max_retries": self.retries, "on_step_failure": self.policy}
        return flow(*steps, config={**retry, "max_concurrent_steps": 3})

    def answers(self) -> dict[str, Any]:
        """Return the provider's answers: each counts its calls, and the call too many is the end of the process."""
        found: dict[str, Any] = {}
        for node in self.nodes:
            for name in node.calls:
                found[name] = self._answer(
                    name, node, 0 if node.kind == "child" and name.endswith(".j") else node.flops
                )
        return found

    def _answer(self, name: str, node: Node, flops: int) -> Any:
        since_success = [0]

        async def reply(request: Request, on_delta: object) -> Response:
            if self.left == 0:
                raise Killed
            self.left -= 1
            self.calls[name] += 1
            if node.fails:
                raise ProviderError("no", status_code=400)
            if since_success[0] < flops:
                since_success[0] += 1
                raise ProviderError("later", status_code=503)
            self.won[name] += 1
            return Response(name, "m", "mock", Usage(1, 1, 2), COST)

        return reply


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw up to eight steps that depend on earlier ones, in any order of the file, and up to three lives before the last."""
    count = draw(st.integers(1, 8))
    names = draw(st.permutations([f"s{i}" for i in range(count)]))
    retries = draw(st.integers(0, 2))
    nodes: list[Node] = []
    for index, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:index]), max_size=3, unique=True)) if index else []
        node = Node(name, needs, draw(st.sampled_from(["call", "call", "router", "child"])))
        node.fails = node.kind != "router" and draw(st.integers(0, 5)) == 0
        node.flops = draw(st.integers(0, retries))
        nodes.append(node)
    for node in nodes:
        if node.kind == "router":
            behind = [other.id for other in nodes if node.id in other.needs]
            node.choice = draw(st.sampled_from([*behind, None])) if behind else None
    lives = draw(st.lists(st.integers(0, 6), max_size=3))
    policy = draw(st.sampled_from(["skip_downstream", "continue"]))
    return Case(draw(st.permutations(nodes)), policy, retries, lives)


def model(case: Case) -> dict[str, str]:
    """Return how each step ends by the documents' rules."""
    by_id = {node.id: node for node in case.nodes}
    ends: dict[str, str] = {}

    def end(name: str) -> str:
        if name not in ends:
            node = by_id[name]
            ends[name] = "skipped" if any(blocks(by_id[need], name) for need in node.needs) else ""
            if not ends[name]:
                fails = node.choice is None if node.kind == "router" else node.fails
                ends[name] = "failed" if fails else "success"
        return ends[name]

    def blocks(need: Node, name: str) -> bool:
        ended = end(need.id)
        if ended == "skipped":
            return True
        if need.kind == "router":
            return ended == "failed" or need.choice != name
        return ended == "failed" and case.policy == "skip_downstream"

    for node in case.nodes:
        end(node.id)
    return ends


def lived(case: Case, store: FileCheckpointer) -> WorkflowResult:
    """Run to the end, through every life."""
    answers = case.answers()
    for left in [*case.lives, 10**6]:
        case.left = left
        try:
            known = load_run(store, "r")
        except KeyError:
            begin = lambda: run(store, case.data(), answers)  # noqa: E731
        else:
            assert known.status == "interrupted"
            begin = lambda: resume(store, answers)  # noqa: E731
        try:
            return run_virtual(begin)[0]
        except Killed:
            continue
        except BaseExceptionGroup as group:
            if group.split(Killed)[1] is not None:
                raise
    pytest.fail("the last life has no end")


@settings(max_examples=60, deadline=None)
@given(cases())
def test_a_run_comes_to_the_same_end_however_often_it_is_killed(case: Case) -> None:
    """Statuses, state and spend are those of the model, and what succeeded once never runs again."""
    with tempfile.TemporaryDirectory() as folder:
        store = FileCheckpointer(Path(folder) / "kept")
        result = lived(case, store)
        ends = model(case)
        assert {name: step.status for name, step in result.step_results.items()} == ends
        assert result.status == ("failed" if "failed" in ends.values() else "success")
        done = [node for node in case.nodes if node.calls and ends[node.id] == "success"]
        assert case.won == Counter(name for node in done for name in node.calls)
        written = {key for key in result.final_state if key.startswith("k_")}
        assert written == {f"k_{node.id}" for node in done}
        assert result.total_cost_usd == pytest.approx(COST * sum(case.won.values()))
        case.left = 10**6
        again = run_virtual(lambda: resume(store, case.answers()))[0]
        assert {name: step.status for name, step in again.step_results.items()} == ends
        assert [path.name for path in store.folder.iterdir() if path.suffix != ".json"] == []


@settings(max_examples=40, deadline=None)
@given(cases(), st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.6, 1.0, 2.0]), min_size=4, max_size=4))
def test_every_call_is_paid_for_once_however_often_money_and_process_end(case: Case, limits: list[float]) -> None:
    """Each life has a limit of its own, and is killed or not: what is said to be spent is what all calls of all lives cost.

    In the last life, which has money enough, the run comes to the end that the model says.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = FileCheckpointer(Path(folder) / "kept")
        answers = case.answers()
        for left, limit in zip([*case.lives, 10**6], limits, strict=False):
            case.left = left
            result = survived(case, store, answers, limit)
            spent = COST * sum(case.won.values())
            assert load_run_or_none(store, spent) == pytest.approx(spent)
            if result is not None:
                assert result.total_cost_usd == pytest.approx(spent)
                assert result.total_tokens == 2 * sum(case.won.values())
                if result.status == "budget_exceeded":
                    assert spent >= limit - 1e-9
        case.left = 10**6
        result = survived(case, store, answers, 1e6)
        assert result is not None
        ends = model(case)
        assert {name: step.status for name, step in result.step_results.items()} == ends
        assert result.total_cost_usd == pytest.approx(COST * sum(case.won.values()))


def survived(case: Case, store: FileCheckpointer, answers: dict[str, Any], limit: float) -> WorkflowResult | None:
    """Live one life with so much money; return its result, or None if it was killed."""
    try:
        load_run(store, "r")
    except KeyError:
        data = case.data()
        data["config"]["budget_usd"] = limit
        begin = lambda: run(store, data, answers)  # noqa: E731
    else:
        begin = lambda: resume(store, answers, budget_usd=limit)  # noqa: E731
    try:
        return run_virtual(begin)[0]
    except Killed:
        return None
    except BaseExceptionGroup as group:
        if group.split(Killed)[1] is not None:
            raise
        return None


def load_run_or_none(store: FileCheckpointer, otherwise: float) -> float:
    """Return what is kept of a run's spend; without a run, nothing is wrong."""
    try:
        return load_run(store, "r").total_cost_usd
    except KeyError:
        return otherwise
