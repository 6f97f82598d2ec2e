"""Tool steps: arguments, results, failures (TO-*)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_workflow
from agentloom.errors import SandboxViolationError
from agentloom.model.workflow import build_workflow
from tests.engine.world import ask, flow, run, use


def given(args: Any, state: dict[str, Any]) -> Any:
    """Return what a tool gets for ``args`` on ``state``."""
    world = run(flow(use("t", "keep", tool_args={"arg": args}), state=state), tools={"keep": lambda arg: None})
    assert world.errors == {}
    return world.tools.calls[0][1]["arg"]


STATE = {"a": {"b": [{"n": 1}, 2]}, "tok": "secret", "t": True, "none": None}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("state.a.b[0]", {"n": 1}),
        ("{state.a.b}", [{"n": 1}, 2]),
        ("{t}", True),
        ("state.none", None),
        ("Bearer {state.tok}", "Bearer secret"),
        ("n={state.a.b[1]}", "n=2"),
        ("state.of the art report", "state.of the art report"),
        ("{ a: 1 }", "{ a: 1 }"),
        ('{"a": 1}', '{"a": 1}'),
        (7, 7),
        (
            {"h": {"Authorization": ["Bearer {state.tok}", "state.t"]}},
            {"h": {"Authorization": ["Bearer secret", True]}},
        ),
        ({"value": "{state.tok}", "template": False}, "{state.tok}"),
        ({"value": {"deep": "{state.nowhere}"}, "template": False}, {"deep": "{state.nowhere}"}),
    ],
)
def test_arguments_are_resolved_at_every_depth(argument: Any, value: Any) -> None:
    """TO-1, TO-2: a lone reference keeps its type, other placeholders become text, the rest passes."""
    assert given(argument, STATE) == value


def test_results_of_steps_are_arguments_too() -> None:
    """ST-1: `state.steps.<id>.output`."""
    world = run(
        flow(ask("a"), use("t", "keep", "a", tool_args={"x": "state.steps.a.output"})), tools={"keep": lambda x: x}
    )
    assert world.output("t") == "a"


@pytest.mark.parametrize("argument", ["state.nope", "{state.nope.deep}", "x {state.a.nope}", "{state.}"])
def test_arguments_that_cannot_be_resolved_fail_for_good(argument: str) -> None:
    """TO-1, TO-2, TO-3: permanent, and the tool isn't called."""
    world = run(flow(use("t", "keep", tool_args={"x": argument}), state={"a": {}}), tools={"keep": lambda x: None})
    result = world.result.step_results["t"]
    assert (result.status, result.error_classification) == ("failed", "permanent")
    assert world.tools.calls == []


def test_a_tool_that_is_not_registered_fails_for_good() -> None:
    """TO-3."""
    result = run(flow(use("t", "nope"))).result.step_results["t"]
    assert (result.status, result.error_classification) == ("failed", "permanent")
    assert result.error is not None
    assert "`nope`" in result.error


def test_a_refusal_of_the_sandbox_is_permanent() -> None:
    """SB-5, TO-3: and its own words are kept."""

    def refuse() -> None:
        raise SandboxViolationError("Sandbox violation (shell_command): no")

    result = run(flow(use("t", "refuse")), tools={"refuse": refuse}).result.step_results["t"]
    assert (result.error, result.error_classification) == ("Sandbox violation (shell_command): no", "permanent")


@pytest.mark.parametrize(
    ("error", "text"),
    [(ValueError("broken"), "broken"), (KeyError(), "KeyError"), (OSError(2, "gone"), "[Errno 2] gone")],
)
def test_whatever_else_a_tool_raises_is_transient(error: Exception, text: str) -> None:
    """TO-3: with the tool's name."""

    def fail() -> None:
        raise error

    result = run(flow(use("t", "fail")), tools={"fail": fail}).result.step_results["t"]
    assert (result.status, result.error_classification) == ("failed", "transient")
    assert result.error == f"Tool 'fail' failed: {text}"


def test_a_result_that_is_no_plain_data_fails() -> None:
    """R7: outcomes are JSON; the place of what isn't is named."""
    result = run(flow(use("t", "make")), tools={"make": lambda: {"a": [object()]}}).result.step_results["t"]
    assert result.error == "Tool 'make' failed: `result.a[0]` is a `object`, which is no plain data; return plain data"
    assert result.error_classification == "permanent"


def test_a_tool_cannot_change_the_state_through_its_arguments_or_its_result() -> None:
    """SC-3: neither during its layer nor later."""
    kept: list[Any] = []

    def meddle(box: dict[str, Any]) -> dict[str, Any]:
        box["n"] = "changed"
        kept.append(box)
        return box

    def again() -> None:
        kept[0]["n"] = "changed again"

    world = run(
        flow(
            use("a", "meddle", tool_args={"box": "state.box"}, output="out"),
            use("b", "again", "a"),
            ask("c", "b", prompt="{state.box.n} {state.out.n}"),
            state={"box": {"n": 1}},
        ),
        tools={"meddle": meddle, "again": again},
    )
    assert world.provider.prompts()["c"] == "1 changed"


def test_coroutine_tools_are_awaited() -> None:
    """The registry awaits them."""

    async def later(x: int) -> int:
        return x + 1

    assert run(flow(use("t", "later", tool_args={"x": 1})), tools={"later": later}).output("t") == 2


def test_the_built_in_tools_are_there_without_a_registry(tmp_path: Path) -> None:
    """Their relative paths start at the workflow's file; a result is read by templates as it is."""
    (tmp_path / "note.txt").write_text("hello")
    file = tmp_path / "t.loom.yaml"
    file.write_text(
        """
name: t
config: {provider: mock, model: m}
steps:
  - {id: read, type: tool, tool_name: file_read, tool_args: {path: note.txt}, output: note}
  - {id: shout, type: tool, tool_name: shell_command, depends_on: [read], tool_args: {command: "echo {state.note}!"}, output: said}
  - {id: keep, type: tool, tool_name: file_write, depends_on: [shout], tool_args: {path: out/n.txt, content: "{state.said.stdout}"}}
"""
    )
    result = anyio.run(WorkflowEngine(load_workflow(file)).run)
    assert result.error is None
    assert result.step_results["shout"].output == {"returncode": 0, "stdout": "hello!\n", "stderr": ""}
    assert (tmp_path / "out/n.txt").read_text() == "hello!\n"


def test_arguments_that_do_not_fit_the_tool_fail_for_good() -> None:
    """The registry's own check, before the tool runs; did-you-mean for a tool's name."""
    steps = [use("a", "file_read", tool_args={"pth": "x"}), use("b", "file_raed")]
    result = anyio.run(WorkflowEngine(build_workflow(flow(*steps))).run)
    for name, word in (("a", "pth"), ("b", "did you mean `file_read`?")):
        step = result.step_results[name]
        assert (step.status, step.error_classification) == ("failed", "permanent")
        assert word in str(step.error)
