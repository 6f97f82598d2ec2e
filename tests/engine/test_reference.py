"""Random workflows with routers and failures, against a simple model of the rules that the documents state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.world import FAIL, ask, flow, run

UP = "skipped due to upstream failure: "


@dataclass
class Node:
    """A step of a random workflow. ``choice`` is a router's way out (an id, or None to fail); ``fails`` is for the others."""

    id: str
    needs: list[str]
    router: bool = False
    choice: str | None = None
    fails: bool = False
    key: str = "k0"


@st.composite
def workflows(draw: st.DrawFn) -> list[Node]:
    """Draw up to twelve steps that depend on earlier ones, in a random order of the file, some of them routers."""
    count = draw(st.integers(1, 12))
    names = draw(st.permutations([f"s{i:02d}" for i in range(count)]))
    nodes: list[Node] = []
    for index, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:index]), max_size=3, unique=True)) if index else []
        node = Node(name, needs, router=draw(st.booleans()), key=f"k{draw(st.integers(0, 3))}")
        node.fails = not node.router and draw(st.integers(0, 4)) == 0
        nodes.append(node)
    for node in nodes:
        if node.router:
            behind = [other.id for other in nodes if node.id in other.needs]
            node.choice = draw(st.sampled_from([*behind, *behind, node.id, None]))
    return draw(st.permutations(nodes))


def closest_failures(name: str, by_id: dict[str, Node], status: dict[str, str]) -> list[str]:
    """Return the failed ancestors that are the fewest dependencies away, going through everything."""
    near = list(by_id[name].needs)
    seen: set[str] = set()
    while near:
        failed = [need for need in near if status[need] == "failed"]
        if failed:
            return failed
        seen.update(near)
        near = [need for step in near for need in by_id[step].needs if need not in seen]
    return []


def model(nodes: list[Node], policy: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return how each step ends by the documents' rules, and for those skipped after a failure whom they may name."""
    by_id = {node.id: node for node in nodes}
    status: dict[str, str] = {}
    causes: dict[str, list[str]] = {}
    while len(status) < len(nodes):
        name, node = next((n, v) for n, v in by_id.items() if n not in status and all(x in status for x in v.needs))
        gone = [need for need in node.needs if status[need] == "skipped"]
        failed = [need for need in node.needs if status[need] == "failed"]
        passed_over = [n for n in node.needs if by_id[n].router and status[n] == "success" and by_id[n].choice != name]
        if policy == "continue":
            failed = [need for need in failed if by_id[need].router]
        if gone or failed or passed_over:
            status[name] = "skipped"
            if policy == "skip_downstream":
                causes[name] = closest_failures(name, by_id, status)
            else:
                causes[name] = failed or [cause for need in gone for cause in causes[need]]
        elif node.router:
            status[name] = "failed" if node.choice is None else "success"
        else:
            status[name] = "failed" if node.fails else "success"
    return status, causes


def steps_of(nodes: list[Node]) -> list[dict[str, Any]]:
    """Return the steps in plain data; each asks what it can see of the keys that others write."""
    look = " ".join(f"{{state.k{i}}}" for i in range(4))
    steps: list[dict[str, Any]] = []
    for node in nodes:
        if node.router:
            ways = [] if node.choice is None else [{"expression": "True", "target": node.choice}]
            false = [{"expression": "False", "target": node.id}]
            steps.append({"id": node.id, "type": "router", "depends_on": node.needs, "conditions": [*false, *ways]})
        else:
            steps.append(ask(node.id, *node.needs, prompt=f"{node.id}: {look}", output=node.key))
    return steps


@settings(max_examples=120, deadline=None)
@given(workflows(), st.sampled_from(["skip_downstream", "continue"]), st.integers(1, 3))
def test_random_workflows_follow_the_rules(nodes: list[Node], policy: str, limit: int) -> None:
    """Statuses, texts of skipped steps, layers, and what each step sees of the state are those of the model."""
    config = {"on_step_failure": policy, "max_concurrent_steps": limit}
    answers: dict[str, Any] = {node.id: FAIL if node.fails else f"<{node.id}>" for node in nodes}
    world = run(flow(*steps_of(nodes), config=config, state={f"k{i}": f"<{i}>" for i in range(4)}), answers)
    status, causes = model(nodes, policy)

    assert world.statuses == status
    for node in nodes:
        error = world.result.step_results[node.id].error
        if status[node.id] == "skipped":
            allowed = causes[node.id]
            assert error in [UP + cause for cause in allowed] if allowed else error is None
    assert world.result.status == ("failed" if "failed" in status.values() else "success")

    # Layers: one more than the deepest dependency. A layer sees what earlier ones wrote, in the order of the file, and no more.
    depth: dict[str, int] = {}
    while len(depth) < len(nodes):
        for node in nodes:
            if all(need in depth for need in node.needs):
                depth[node.id] = 1 + max((depth[need] for need in node.needs), default=0)
    state = {f"k{i}": f"<{i}>" for i in range(4)}
    prompts = world.provider.prompts()
    for layer in range(1, max(depth.values()) + 1):
        members = [node for node in nodes if depth[node.id] == layer]
        for node in members:
            if not node.router and status[node.id] != "skipped":
                assert prompts[node.id] == f"{node.id}: {' '.join(state.values())}"
        for node in members:
            if not node.router and status[node.id] == "success":
                state[node.key] = f"<{node.id}>"
    final = dict(world.result.final_state)
    assert final.pop("steps") == {
        node.id: {"output": node.choice if node.router else f"<{node.id}>", "status": "success"}
        for node in sorted(nodes, key=lambda node: depth[node.id])
        if status[node.id] == "success"
    }
    assert final == state
    assert sorted(world.started) == sorted(name for name, how in status.items() if how != "skipped")
