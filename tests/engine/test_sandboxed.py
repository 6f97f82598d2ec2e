"""Workflows with a sandbox: whose tools obey which, below and beside each other (SB-1, SB-5, SW-3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_workflow
from agentloom.core.results import WorkflowResult
from agentloom.model.config import Sandbox
from agentloom.tools.builtin import register_builtins
from agentloom.tools.policy import Policy, current_policy
from agentloom.tools.registry import ToolRegistry
from tests.conftest import ROOT
from tests.engine.world import ask, flow, run, sub, use


def ran(folder: Path, *files: tuple[str, dict[str, Any]], tools: ToolRegistry | None = None) -> WorkflowResult:
    """Write workflow files and run the last one."""
    for name, content in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content))
    document = load_workflow(folder / files[-1][0])
    return anyio.run(WorkflowEngine(document, tool_registry=tools).run)


def read(id: str, path: str, *after: str) -> dict[str, Any]:
    """A step that reads a file once."""
    return use(id, "file_read", *after, tool_args={"path": path}, retry={"max_retries": 0})


def on(**rules: Any) -> dict[str, Any]:
    """A `config` with the sandbox on."""
    return {"sandbox": {"enabled": True, **rules}}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project with two texts."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    return tmp_path


def test_paths_start_at_the_file_and_a_refusal_is_permanent(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-5, WF-8: from whatever folder the run is started; one attempt, and the words that the sandbox says."""
    monkeypatch.chdir("/")
    file = flow(
        read("ok", "in/a.txt"), use("no", "file_read", tool_args={"path": "b.txt"}), config=on(readable_paths=["in"])
    )
    result = ran(place, ("w.loom.yaml", file))
    assert result.step_results["ok"].output == "a"
    no = result.step_results["no"]
    assert (no.status, no.error_classification, no.attempts) == ("failed", "permanent", 1)
    assert no.error == "Sandbox violation (file_read): `b.txt` may not be read; add its folder to `readable_paths`"


def test_children_inherit_the_sandbox_of_their_parent(place: Path) -> None:
    """SW-3: in place and in files, over two levels; paths of the sandbox start at the file in which they stand."""
    child = flow(read("x", "b.txt"), read("y", "in/a.txt"))
    middle = flow(sub("inner", steps=child["steps"]))
    file = flow(
        {"id": "far", "type": "subworkflow", "workflow_path": "sub/child.loom.yaml", "retry": {"max_retries": 0}},
        config={**on(readable_paths=["in"]), "on_step_failure": "continue", "max_retries": 0},
    )
    result = ran(place, ("sub/child.loom.yaml", middle), ("w.loom.yaml", file))
    assert "Sandbox violation (file_read)" in str(result.step_results["far"].error)


def test_a_child_can_only_narrow(place: Path) -> None:
    """SW-3: with a sandbox of its own it gets what both allow; without one of the parent's, its own alone."""
    (place / "sub").mkdir()
    (place / "sub" / "c.txt").write_text("c")
    child = flow(
        read("c", "sub/c.txt"),
        read("a", "in/a.txt"),
        config={**on(readable_paths=["."]), "on_step_failure": "continue"},
    )
    call = {
        "id": "s",
        "type": "subworkflow",
        "workflow_path": "sub/k.loom.yaml",
        "retry": {"max_retries": 0},
        "output": "s",
    }
    for rules, statuses in (
        (on(readable_paths=["."]), {"c": "success", "a": "failed"}),
        (on(readable_paths=["in"]), {"c": "failed", "a": "failed"}),
        ({}, {"c": "success", "a": "failed"}),
    ):
        seen: dict[str, str] = {}
        for name, content in (("sub/k.loom.yaml", child), ("w.loom.yaml", flow(call, config=rules))):
            (place / name).write_text(yaml.safe_dump(content))
        engine = WorkflowEngine(load_workflow(place / "w.loom.yaml"), on_event=_keeping(seen))
        anyio.run(engine.run)
        assert {name.removeprefix("s."): status for name, status in seen.items() if name != "s"} == statuses


def _keeping(seen: dict[str, str]) -> Any:
    async def keep(event: Any) -> None:
        if event.to_json()["event"] == "step_finished":
            seen[event.step] = event.status

    return keep


def test_siblings_obey_their_own(place: Path) -> None:
    """Two children that run at the same time, one with a sandbox, one without."""
    steps = [read("x", "b.txt")]
    file = flow(
        sub("free", steps=steps, output="free"),
        sub("bound", steps=steps, child={"config": on()}, retry={"max_retries": 0}),
        config={"on_step_failure": "continue"},
    )
    result = ran(place, ("w.loom.yaml", file))
    assert result.step_results["free"].status == "success"
    assert "Sandbox violation (file_read)" in str(result.step_results["bound"].error)


def test_tools_of_ones_own_can_ask_what_is_allowed() -> None:
    """They are checked by nobody; the policy of the step's workflow is there for them, in threads too."""
    seen: dict[str, Policy | None] = {}

    def own() -> None:
        seen["own"] = current_policy()

    async def also() -> None:
        seen["also"] = current_policy()

    steps = [use("a", "own"), use("b", "also")]
    registry = ToolRegistry()
    for function in (own, also):
        registry.register(function)
    document = flow(*steps, config=on(allowed_commands=["ls"]))
    engine = WorkflowEngine(load(document), tool_registry=registry)
    assert anyio.run(engine.run).status == "success"
    for policy in seen.values():
        assert policy is not None
        assert policy.commands == {"ls"}
    run(flow(ask("x")))
    assert current_policy() is None


def test_a_workflow_that_a_tool_runs_is_confined_as_the_tool_is(place: Path) -> None:
    """A program inside the program: its workflow has no sandbox, and gets that of the step."""

    async def inner() -> str | None:
        engine = WorkflowEngine(load(flow(read("x", str(place / "b.txt")))))
        return (await engine.run()).step_results["x"].error

    registry = ToolRegistry()
    registry.register(inner)
    outer = flow(use("a", "inner", output="said"), config=on(readable_paths=[str(place / "in")]))
    result = anyio.run(WorkflowEngine(load(outer), tool_registry=registry).run)
    assert str(result.final_state["said"]).startswith("Sandbox violation (file_read)")


def load(data: dict[str, Any]) -> Any:
    """A document of plain data."""
    from agentloom.core.loader import load_data

    return load_data(data)


FIXTURES = sorted((ROOT / "tests" / "fixtures" / "rules" / "AL606").glob("*.yaml"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_the_check_says_what_the_run_refuses(path: Path, tmp_path: Path) -> None:
    """AL606: every step that it tells of is refused, with a sandbox violation; the words about commands are the same."""
    data = yaml.safe_load(path.read_text())
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    document = load_workflow(path)
    told = {
        [step.id for step in document.steps if step.base <= d.span.start][-1]: d.message
        for d in document.diagnostics
        if d.code == "AL606"
    }
    if not told:
        return
    steps = [step for step in data["steps"] if step["id"] in told]
    config = {**data["config"], "provider": "mock", "on_step_failure": "continue"}
    result = ran(tmp_path, ("w.loom.yaml", {**data, "config": config, "steps": steps}))
    for name, message in told.items():
        error = str(result.step_results[name].error)
        assert error.startswith("Sandbox violation ("), (name, error)
        if "danger_opt_in" in message or "refuses" in message:
            assert error.endswith(message)


def test_a_registry_with_a_sandbox_confines_files_that_have_none(place: Path) -> None:
    """PY-1: `register_builtins(registry, sandbox)` holds for whatever file is run."""
    registry = ToolRegistry()
    register_builtins(registry, Sandbox(enabled=True, readable_paths=["in"]), folder=place)
    result = ran(place, ("w.loom.yaml", flow(read("a", "in/a.txt"), read("b", "b.txt"))), tools=registry)
    assert result.step_results["a"].output == "a"
    assert "Sandbox violation (file_read)" in str(result.step_results["b"].error)
