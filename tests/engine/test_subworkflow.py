"""Workflows as steps: what the child sees, what comes back, how its failures count (SW-*)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_workflow
from agentloom.errors import ProviderError, WorkflowError
from agentloom.model.workflow import build_workflow
from agentloom.providers.gateway import ProviderGateway
from tests.engine.world import FAIL, Script, ask, flow, route, run, sub, use


def test_by_default_the_child_works_on_a_copy_of_the_parents_state() -> None:
    """SW-1: its own `state:` fills what the parent lacks, and its whole final state comes back under `output`."""
    world = run(
        flow(
            ask("first"),
            sub(
                "sub",
                "first",
                child={"state": {"a": 5, "b": 6}},
                steps=[ask("k", prompt="{state.a} {state.b} {state.deep.x}", output="deep.x")],
                output="out",
            ),
            ask("after", "sub", prompt="{state.out.deep.x}|{state.deep.x}|{state.out.steps.k.output}"),
            state={"a": 1, "deep": {"x": 1}},
        )
    )
    assert world.provider.prompts() == {"first": "first", "sub.k": "1 6 1", "after": "1 6 1|1|1 6 1"}
    assert world.output("sub") == {
        "a": 1,
        "b": 6,
        "deep": {"x": "1 6 1"},
        "steps": {"k": {"output": "1 6 1", "status": "success"}},
    }
    assert world.result.final_state["deep"] == {"x": 1}


def test_an_isolated_child_sees_only_its_own_state_and_its_input() -> None:
    """SW-2: `input` is rendered, a lone reference keeps its type, and `return_keys` picks what comes back."""
    world = run(
        flow(
            sub(
                "sub",
                isolated_state=True,
                input={"items": "{state.list}", "text": "n={state.n}", "path": "state.list[0]", "b": 2},
                return_keys=["items", "result", "missing"],
                child={"state": {"b": 1, "c": 3}},
                steps=[ask("k", prompt="{state.items[1]} {text} {path} {b} {c} <{n}>", output="result")],
                output="out",
            ),
            state={"list": [1, 2], "n": 7},
        )
    )
    assert world.provider.prompts()["sub.k"] == "2 n=7 1 2 3 <>"
    assert world.output("sub") == {"items": [1, 2], "result": "2 n=7 1 2 3 <>"}


def test_input_that_leads_nowhere_fails_the_step_for_good() -> None:
    """TO-2: as with the arguments of tools."""
    result = run(flow(sub("sub", isolated_state=True, input={"x": "{state.nope}"}, steps=[ask("k")]))).result
    assert result.step_results["sub"].error_classification == "permanent"


def test_ids_of_the_child_are_a_namespace_of_their_own() -> None:
    """SW-3: a child's step may have a parent's id; it doesn't see the parent's results, and its own don't mix with them."""
    world = run(
        flow(
            ask("same", prompt="parent"),
            sub("sub", "same", steps=[route("r", same="steps.same is None"), ask("same", "r", prompt="child")]),
            ask("after", "sub", prompt="{state.steps.same.output}"),
        )
    )
    assert world.provider.prompts() == {"same": "parent", "sub.same": "child", "after": "parent"}
    assert world.started == ["same", "sub", "sub.r", "sub.same", "after"]
    assert list(world.result.step_results) == ["same", "sub", "after"]


def test_a_child_takes_provider_and_model_of_its_parent() -> None:
    """SW-8: unless its own `config` names them; so does a grandchild."""
    steps = [
        sub("plain", steps=[ask("k"), sub("deeper", steps=[ask("k")])]),
        sub("own", child={"config": {"model": "small"}}, steps=[ask("k"), sub("deeper", steps=[ask("k")])]),
        sub("other", child={"config": {"provider": "openai", "model": "gpt-4o-mini"}}, steps=[ask("k")]),
    ]
    world = run(flow(*steps, config={"provider": "anthropic", "model": "claude"}))
    assert {request.step_id: (request.prefer, request.model) for request in world.provider.requests} == {
        "plain.k": ("anthropic", "claude"),
        "plain.deeper.k": ("anthropic", "claude"),
        "own.k": ("anthropic", "small"),
        "own.deeper.k": ("anthropic", "small"),
        "other.k": ("openai", "gpt-4o-mini"),
    }


def test_tokens_and_cost_of_the_child_are_the_steps() -> None:
    """SW-7: also those of a child that failed."""
    world = run(flow(sub("sub", steps=[ask("a"), ask("b"), sub("deep", steps=[ask("c")])])))
    result = world.result.step_results["sub"]
    assert (result.token_usage.total_tokens, result.cost_usd) == (21, 1.5)
    assert (world.result.total_tokens, world.result.total_cost_usd) == (21, 1.5)
    failed = run(flow(sub("sub", steps=[ask("a"), ask("b")])), {"sub.b": FAIL}).result.step_results["sub"]
    assert (failed.status, failed.cost_usd, failed.token_usage.prompt_tokens) == ("failed", 0.5, 3)


@pytest.mark.parametrize(
    ("error", "classification"),
    [(FAIL, "permanent"), (ProviderError("busy", status_code=503), "transient")],
)
def test_a_child_that_failed_fails_its_step(error: ProviderError, classification: str) -> None:
    """SW-5: for good if the child failed for good."""
    world = run(
        flow(sub("sub", steps=[ask("k"), ask("after", "k")], output="out"), ask("end", "sub")), {"sub.k": error}
    )
    result = world.result.step_results["sub"]
    assert result.error == f"workflow `kid`: step `k` failed: {error}"
    assert result.error_classification == classification
    assert world.statuses == {"sub": "failed", "end": "skipped"}
    assert list(dict.fromkeys(world.skipped)) == ["sub.after", "end"]
    assert "out" not in world.result.final_state


def test_a_child_that_failed_in_several_steps_is_transient_only_if_all_are() -> None:
    """SW-5: one step that can't succeed makes another run of the child pointless."""
    busy = ProviderError("busy", status_code=503)
    result = run(flow(sub("sub", steps=[ask("a"), ask("b")])), {"sub.a": busy, "sub.b": FAIL}).result
    assert result.step_results["sub"].error_classification == "permanent"


def test_a_child_has_its_own_limit_and_policy() -> None:
    """`max_concurrent_steps` and `on_step_failure` are the child's."""
    config = {"max_concurrent_steps": 1, "on_step_failure": "continue"}
    steps = [ask("a"), ask("b", "a"), ask("c")]
    world = run(
        flow(sub("one", child={"config": config}, steps=steps), sub("two", steps=steps)), {"one.a": FAIL, "two.a": FAIL}
    )
    assert "one.b" in world.started
    assert "two.b" in world.skipped


def test_two_children_at_once_do_not_see_each_other() -> None:
    """SC-3: both start from the state as it stood when the layer began."""
    child = [ask("w", prompt="{state.n}{state.d.n}", output="d.n"), ask("v", "w", prompt="{state.d.n}", output="n")]
    world = run(
        flow(
            sub("a", steps=child, output="d.a"),
            sub("b", steps=child, output="d.b"),
            ask("z", "a", "b", prompt="{state.n}{state.d.n}"),
            state={"n": 1, "d": {"n": 2}},
        )
    )
    assert world.provider.prompts()["z"] == "12"
    for name in ("a", "b"):
        assert world.output(name)["d"] == {"n": "12"}
        assert world.output(name)["n"] == "12"
    assert world.result.final_state["d"]["n"] == 2


def test_what_a_child_gave_does_not_change_when_the_parent_writes_on() -> None:
    """The child's final state shares parts with the parent's; later writes don't reach it."""
    world = run(
        flow(
            ask("a", output="d.one"),
            sub("sub", "a", steps=[ask("k")], output="out"),
            sub("iso", "a", isolated_state=True, input={"d": "state.d"}, steps=[ask("k")], output="iso"),
            ask("b", "sub", "iso", output="d.two"),
            ask("c", "b", output="out.d.three"),
            state={"d": {}},
        )
    )
    assert world.output("sub")["d"] == {"one": "a"}
    assert world.output("iso")["d"] == {"one": "a"}
    assert world.result.final_state["d"] == {"one": "a", "two": "b"}
    assert world.result.final_state["out"]["d"] == {"one": "a", "three": "c"}
    assert world.result.final_state["iso"]["d"] == {"one": "a"}


def test_paths_are_relative_to_the_file_they_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WF-8: two hops, three folders, and a working directory that has nothing to do with them."""
    (tmp_path / "flows/parts").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    head = "name: {0}\nconfig: {{provider: mock, model: m}}\nsteps:\n"
    (tmp_path / "flows/top.loom.yaml").write_text(
        head.format("top") + "  - {id: sub, type: subworkflow, workflow_path: ./parts/middle.loom.yaml, output: out}\n"
    )
    (tmp_path / "flows/parts/middle.loom.yaml").write_text(
        head.format("middle")
        + "  - {id: sub, type: subworkflow, workflow_path: ../leaf.loom.yaml, return_keys: [said]}\n"
    )
    (tmp_path / "flows/leaf.loom.yaml").write_text(
        head.format("leaf") + "  - {id: say, type: llm_call, prompt: leaf, output: said}\n"
    )
    monkeypatch.chdir(tmp_path / "elsewhere")
    document = load_workflow(tmp_path / "flows/top.loom.yaml")
    gateway = ProviderGateway()
    gateway.register(Script())
    result = anyio.run(WorkflowEngine(document, provider_gateway=gateway).run)
    assert result.final_state["out"]["steps"]["sub"]["output"] == {"said": "leaf"}


def test_a_typed_workflow_without_a_file_has_no_paths() -> None:
    """Refused before anything happens, with what to do."""
    workflow = build_workflow(flow({"id": "sub", "type": "subworkflow", "workflow_path": "child.yaml"}, ask("a")))
    with pytest.raises(
        WorkflowError, match=r"`workflow_path: child\.yaml` is relative to a file; load the workflow from one"
    ):
        run(workflow)


def test_events_of_a_child_stand_between_its_steps_start_and_end() -> None:
    """One stream: paths tell where a step belongs; the run itself starts and ends once."""
    world = run(flow(sub("sub", steps=[use("t", "f")])), tools={"f": lambda: 1})
    seen = [(event.name, getattr(event, "step", None)) for event in world.events]
    assert seen == [
        ("run_started", None),
        ("step_started", "sub"),
        ("step_started", "sub.t"),
        ("step_finished", "sub.t"),
        ("step_finished", "sub"),
        ("run_finished", None),
    ]


def test_many_children_one_after_another() -> None:
    """A hundred isolated children in a chain."""
    steps: list[Any] = [
        sub(
            f"s{i}",
            *([f"s{i - 1}"] if i else []),
            isolated_state=True,
            input={"n": f"state.s{i - 1}.n" if i else 0},
            return_keys=["n"],
            steps=[use("t", "inc", tool_args={"n": "state.n"}, output="n")],
            output=f"s{i}",
        )
        for i in range(100)
    ]
    assert run(flow(*steps), tools={"inc": lambda n: n + 1}).result.final_state["s99"] == {"n": 100}
