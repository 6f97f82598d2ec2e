"""Faults seen in comparable engines, and what is right here; through files where a user has files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_text
from agentloom.core.results import WorkflowResult
from agentloom.core.state import State
from agentloom.providers.gateway import ProviderGateway
from tests.conftest import ROOT
from tests.engine.world import Script, Shelf, World, ask, flow, play, route, run, sub, use

HEAD = "name: t\nconfig: {provider: mock, model: m}\n"


def run_text(text: str, tools: Mapping[str, Any] | None = None, script: Script | None = None) -> WorkflowResult:
    """Run a file's text."""
    gateway = ProviderGateway()
    gateway.register(script or Script())
    engine = WorkflowEngine(load_text(text), provider_gateway=gateway, tool_registry=Shelf(tools or {}))
    return anyio.run(engine.run)


def test_the_documents_example() -> None:
    """Fetch; summarize and classify in parallel; publish what both wrote."""
    script = Script({"summarize": "short", "classify": "label", "publish": "note"})
    result = run_text(
        HEAD
        + """
steps:
  - id: fetch
    type: tool
    tool_name: http_request
    tool_args: { url: "https://example.com/report.json" }
    output: report
  - id: summarize
    type: llm_call
    depends_on: [fetch]
    prompt: "Summarize: {state.report.body}"
    output: summary
  - id: classify
    type: llm_call
    depends_on: [fetch]
    prompt: "Classify: {state.report.body}"
    output: label
  - id: publish
    type: llm_call
    depends_on: [summarize, classify]
    prompt: "Write a note from {state.summary} ({state.label}), {state.steps.classify.output}"
    output: note
""",
        {"http_request": lambda url: {"status_code": 200, "headers": {}, "body": f"<{url}>"}},
        script,
    )
    assert result.status == "success"
    assert script.prompts() == {
        "summarize": "Summarize: <https://example.com/report.json>",
        "classify": "Classify: <https://example.com/report.json>",
        "publish": "Write a note from short (label), label",
    }
    assert result.final_state["note"] == "note"


def test_templates_read_keys_items_and_nested_keys() -> None:
    """`{state.ticket}`, `{state.items[0]}`, `{state.report.summary}`."""
    text = HEAD + (
        "state: {ticket: T, items: [A, B], report: {summary: S}}\n"
        "steps: [{id: a, type: llm_call, prompt: '{state.ticket} {state.items[0]} {state.report.summary}'}]\n"
    )
    assert run_text(text).step_results["a"].output == "T A S"


def test_without_config_the_provider_is_openai_and_the_model_gpt_4o_mini() -> None:
    """The defaults, as the gateway sees them."""
    script = Script()
    run_text("name: t\nsteps: [{id: a, type: llm_call, prompt: hi}]\n", script=script)
    (request,) = script.requests
    assert (request.prefer, request.model, request.stream) == ("openai", "gpt-4o-mini", False)


def test_headers_are_rendered_at_any_depth() -> None:
    """`headers: {Authorization: "Bearer {state.tok}"}` doesn't go out as it stands; a text that begins with `state.` does."""
    seen: list[Any] = []
    text = HEAD + (
        "state: {tok: abc}\n"
        "steps: [{id: a, type: tool, tool_name: http_request, tool_args: {url: 'state.of the art report', "
        'headers: {Authorization: "Bearer {state.tok}"}}}]\n'
    )
    run_text(text, {"http_request": lambda **args: seen.append(args)})
    assert seen == [{"url": "state.of the art report", "headers": {"Authorization": "Bearer abc"}}]


@pytest.mark.parametrize(
    "expression",
    [
        "state['a']",
        "state.user.name",
        "not state.done",
        "state.n in [1, 2]",
        "-1 < state.n <= 3",
        "len(state.items) > 2",
        "'x' if state.a else ''",
        "state.items == [1, 2, 3]",
        'state.user.get("name") == "Ann"',
        "state.items[-1] == 3",
        "state.missing is None",
        "steps.missing is None",
        "steps.before.status == 'success' and steps.before.output == 'before'",
    ],
)
def test_what_routers_may_say(expression: str) -> None:
    """In a run, with the snapshot of the layer."""
    state = {"a": 1, "user": {"name": "Ann"}, "done": False, "n": 2, "items": [1, 2, 3]}
    world = run(
        flow(
            ask("before"),
            route("r", "before", yes=expression, default="no"),
            ask("yes", "r"),
            ask("no", "r"),
            state=state,
        )
    )
    assert world.output("r") == "yes"


@pytest.mark.parametrize(
    "expression", ["state.t.format(state.u)", "type(state.t).__mro__", "state.t.__class__", "open('x')"]
)
def test_what_routers_may_not_say(expression: str) -> None:
    """Refused at run time too, for good; nothing of Python's insides comes out."""
    result = run(flow(route("r", r=expression), state={"t": "{0.__class__}", "u": 1})).result.step_results["r"]
    assert (result.status, result.error_classification, result.output) == ("failed", "permanent", None)


def test_the_path_depends_on_what_routers_see_and_on_nothing_else() -> None:
    """Whatever the model says, only the routers' rules choose; two runs with the same values take the same path."""
    steps = [
        ask("label", output="label"),
        route("r", "label", a="state.label == 'a'", default="b"),
        ask("a", "r"),
        ask("b", "r"),
        ask("end", "b"),
    ]

    def path(said: str) -> list[str]:
        return run(flow(*steps), {"label": said}).started

    assert path("a") == path("a") == ["label", "r", "a"]
    assert path("run step a at once, skip the router") == ["label", "r", "b", "end"]


SHUFFLE = """
import json, sys, anyio
from tests.engine.world import ask, flow, play, route
steps = [ask(f"s{i * 7 % 300:03d}", *([f"s{(i * 7 - 7) % 300:03d}"] if i % 5 else []), output=f"k.x{i % 7}") for i in range(300)]
async def main():
    world = await play(flow(*steps, route("r", *[s["id"] for s in steps[-4:]], a="True"), ask("a", "r"), ask("b", "r")))
    return [[e.name, getattr(e, "step", "")] for e in world.events], dict(world.result.final_state)
print(json.dumps(anyio.run(main)))
"""


def test_nothing_depends_on_the_hash_seed() -> None:
    """Events, their order, and the order of the state's keys are the same in every process."""
    seen = {
        subprocess.run(
            [sys.executable, "-c", SHUFFLE],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(seen) == 1
    assert len(json.loads(seen.pop())[0]) == 607


def calls_of(data: Mapping[str, Any]) -> int:
    """Return how many calls of functions a run takes; unlike its time, that is the same on every machine."""
    from agentloom.model.workflow import build_workflow

    workflow = build_workflow(data)
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def main() -> World:
        sys.setprofile(see)
        try:
            return await play(workflow)
        finally:
            sys.setprofile(None)

    assert anyio.run(main).result.status == "success"
    return count


def chained(count: int) -> dict[str, Any]:
    """Return a chain whose steps all write into one mapping."""
    return flow(*(ask(f"s{i}", *([f"s{i - 1}"] if i else []), output=f"out.k{i}") for i in range(count)))


def wide(count: int) -> dict[str, Any]:
    """Return a layer whose steps all write into one mapping."""
    return flow(*(ask(f"s{i}", output=f"out.k{i}") for i in range(count)))


@pytest.mark.parametrize("shape", [chained, wide])
def test_work_grows_with_the_number_of_steps_and_not_with_its_square(shape: Any) -> None:
    """Four times the steps, about four times the work."""
    calls_of(shape(10))
    small, large = calls_of(shape(100)), calls_of(shape(400))
    assert large < 4.4 * small


def test_writing_does_not_copy_what_the_state_holds() -> None:
    """A write copies the containers on its way once, and never what lies beside it."""
    given = {"big": {"n": [0] * 1000}, "out": {"old": 1}}
    state = State(given)
    state.write(("out", "a"), 1)
    out = state.root["out"]
    assert out is not given["out"], "what was given is left alone"
    for name in ("b", "c", "d"):
        state.write(("out", name), 1)
        state.record(name, 1)
        assert state.root["out"] is out
    assert state.root["big"] is given["big"]
    shared = state.share()
    assert shared is state.share(), "nothing was written in between"
    state.write(("out", "e"), 1)
    assert "e" not in shared["out"]
    assert state.root["big"] is given["big"]


def test_a_big_value_is_handed_on_without_a_copy_but_to_tools() -> None:
    """Templates and children read the state itself; a tool gets its own."""
    big = {"n": [1, 2, 3]}
    seen: list[Any] = []

    def keep(box: Any) -> Any:
        seen.append(box)

    world = run(
        flow(
            use("make", "make", output="big"),
            sub("child", "make", steps=[ask("k", prompt="{state.big.n[0]}")], output="out"),
            use("keep", "keep", "child", tool_args={"box": "state.big"}),
        ),
        tools={"make": lambda: big, "keep": keep},
    )
    assert world.result.final_state["out"]["big"] is world.result.final_state["big"]
    assert seen == [big]
    assert seen[0] is not world.result.final_state["big"]


def test_a_run_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`workflow_path` is relative to the file that says it."""
    from agentloom.core.loader import load_workflow

    (tmp_path / "a").mkdir()
    (tmp_path / "a/child.yaml").write_text(HEAD + "steps: [{id: k, type: llm_call, prompt: child}]\n")
    top = tmp_path / "a/top.yaml"
    top.write_text(HEAD + "steps: [{id: s, type: subworkflow, workflow_path: ./child.yaml}]\n")
    monkeypatch.chdir(tmp_path)
    for path in (Path("a/top.yaml"), top):
        gateway = ProviderGateway()
        gateway.register(Script())
        result = anyio.run(WorkflowEngine(load_workflow(path), provider_gateway=gateway).run)
        assert result.step_results["s"].output["steps"]["k"]["output"] == "child"
