"""A workflow as a coroutine function; hooks; annotations; custom providers and stores."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from agentloom.api import (
    BaseCheckpointer,
    BaseProvider,
    CheckpointData,
    HookedStep,
    InvalidWorkflow,
    MockProvider,
    OnDelta,
    ProviderGateway,
    Request,
    Response,
    StepHook,
    StepResult,
    ToolRegistry,
    UsageError,
    WorkflowAdapter,
    WorkflowEngine,
    tool,
    workflow,
)

pytestmark = pytest.mark.anyio

FILE = """\
name: greet
config: {provider: mock, model: m, responses_file: said.json}
state: {who: nobody}
steps:
  - {id: hello, type: llm_call, prompt: "Hello {state.who}", output: greeting}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a workflow's file with its recording beside it."""
    (tmp_path / "said.json").write_text(json.dumps({"_version": 2, "hello": {"content": "Hi!", "cost_usd": 0.25}}))
    path = tmp_path / "greet.loom.yaml"
    path.write_text(FILE)
    return path


class Echo(BaseProvider):
    """A provider of somebody's own."""

    name = "echo"

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.closed = False

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        self.running += 1
        self.most = max(self.most, self.running)
        await anyio.sleep(0.01)
        self.running -= 1
        return Response(request.messages[-1].content, request.model, self.name)

    async def close(self) -> None:
        self.closed = True


def echoing() -> tuple[ProviderGateway, Echo]:
    gateway, echo = ProviderGateway(), Echo()
    gateway.register(echo, max_rpm=None, max_tpm=None)
    return gateway, echo


async def test_a_file_is_a_function(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a gateway it sets up what the file asks for; nothing is written anywhere."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with WorkflowAdapter(file) as greet:
        first, second = await greet.run({"who": "Ann"}), await greet({"who": "Bob"})
    assert [r.final_state["greeting"] for r in (first, second)] == ["Hi!", "Hi!"]
    assert first.total_cost_usd == 0.25
    assert first.run_id != second.run_id
    assert repr(first) == f"<WorkflowResult of greet, run {first.run_id}: success, 1 steps>"
    assert [*(tmp_path / "elsewhere").iterdir()] == []


async def test_runs_at_the_same_time_do_not_meet(file: Path) -> None:
    """Each has a state of its own; the gateway is shared, and whoever made it closes it."""
    gateway, echo = echoing()
    said: dict[str, Any] = {}
    async with WorkflowAdapter(file, gateway) as greet:

        async def one(name: str) -> None:
            said[name] = (await greet.run({"who": name})).final_state["greeting"]

        async with anyio.create_task_group() as group:
            for name in ("Ann", "Bob", "Cem", "Dora"):
                group.start_soon(one, name)
    assert said == {name: f"Hello {name}" for name in ("Ann", "Bob", "Cem", "Dora")}
    assert echo.most > 1
    assert not echo.closed


async def test_data_and_documents_are_taken_too() -> None:
    """Plain data, and what the builder made; what is wrong raises at once, not at the first run."""
    gateway, _ = echoing()
    data = {"name": "t", "steps": [{"id": "a", "type": "llm_call", "prompt": "x", "output": "y"}]}
    for given in (data, workflow("t").add_llm_step("a", "x", output="y").build()):
        assert (await WorkflowAdapter(given, gateway).run()).final_state["y"] == "x"
    with pytest.raises(InvalidWorkflow, match="AL101"):
        WorkflowAdapter({"name": "t"}, gateway)
    with pytest.raises(UsageError, match="`state` must be a mapping, not a `list`"):
        await WorkflowAdapter(data, gateway).run(cast("dict[str, str]", ["x"]))


async def test_own_tools() -> None:
    """A registry that is handed over is the one that steps use."""

    @tool("double", "Double a number.")
    def double(n: int) -> int:
        return 2 * n

    registry = ToolRegistry()
    registry.register(double)
    built = workflow("t").set_state(n=21).add_tool_step("a", "double", {"n": "{state.n}"}, output="m").build()
    assert (await WorkflowAdapter(built, echoing()[0], registry).run()).final_state["m"] == 42


class Watching(StepHook):
    """A hook that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.inputs: dict[str, Any] = {}

    async def before_step(self, step: HookedStep) -> None:
        self.told.append(f"before {step.path} ({step.type} of {step.workflow})")
        self.inputs[step.path] = dict(step.inputs)

    async def after_step(self, step: HookedStep, result: StepResult) -> None:
        self.told.append(f"after {step.path}: {result.status}")


class Failing(StepHook):
    """A hook with a bug."""

    async def after_step(self, step: HookedStep, result: StepResult) -> None:
        raise ValueError("a bug")


async def test_hooks_are_told_of_every_step(caplog: pytest.LogCaptureFixture) -> None:
    """Also of steps of children, by their path; not of routers. A bug in one is logged, and changes nothing."""
    built = (
        workflow("outer")
        .set_state(who="Ann")
        .add_router_step("r", [], "sub")
        .add_subworkflow_step("sub", workflow("inner").add_llm_step("a", "{state.who}"), depends_on=["r"])
        .add_tool_step("bad", "file_read", {"path": "/does/not/exist"}, depends_on=["sub"], retry={"max_retries": 0})
        .build()
    )
    watching = Watching()
    with caplog.at_level(logging.ERROR):
        result = await WorkflowAdapter(built, echoing()[0], hooks=[Failing(), watching]).run()
    assert watching.told == [
        "before sub (subworkflow of outer)",
        "before sub.a (llm_call of inner)",
        "after sub.a: success",
        "after sub: success",
        "before bad (tool of outer)",
        "after bad: failed",
    ]
    assert watching.inputs["sub.a"] == {"who": "Ann"}
    assert result.status == "failed"
    assert caplog.messages == [f"A hook failed after step '{path}'" for path in ("sub.a", "sub", "bad")]


class Memory(BaseCheckpointer):
    """A store of somebody's own, in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}

    async def save(self, data: CheckpointData) -> None:
        self.kept[data.run_id] = json.loads(json.dumps(data.to_dict()))

    async def load(self, run_id: str) -> CheckpointData:
        return CheckpointData.from_dict(self.kept[run_id])

    async def list_runs(self) -> list[CheckpointData]:
        return [CheckpointData.from_dict(data) for data in self.kept.values()]

    async def delete(self, run_id: str) -> None:
        del self.kept[run_id]


async def test_a_store_of_ones_own() -> None:
    """A run that failed goes on from another store than files; what had succeeded isn't asked again, and hooks hear of the rest."""
    gateway = ProviderGateway()
    gateway.register(MockProvider())
    built = (
        workflow("t", provider="mock")
        .add_llm_step("a", "x", output="a")
        .add_tool_step("b", "file_read", {"path": "{state.file}"}, depends_on=["a"], retry={"max_retries": 0})
        .set_state(file="/does/not/exist")
        .build()
    )
    store = Memory()
    engine = WorkflowEngine(built, gateway, checkpointer=store)
    assert (await engine.run()).status == "failed"
    data = await store.load(engine.run_id)
    data.state["file"] = __file__
    watching = Watching()
    again = await WorkflowEngine.from_checkpoint(data, store, gateway, hooks=[watching])
    result = await again.run()
    assert (result.status, result.run_id) == ("success", engine.run_id)
    assert watching.told == ["before b (tool of t)", "after b: success"]
    assert [each.status for each in await store.list_runs()] == ["success"]


async def test_annotations_are_part_of_the_result(file: Path) -> None:
    """In the order in which they were made, as JSON; a score that is no number is refused."""
    async with WorkflowAdapter(file) as greet:
        result = await greet.run()
    result.annotate("hello", quality_score=0.9, source="a person", reason="friendly")
    result.annotate("greet", source="a model")
    assert json.loads(json.dumps(result.to_dict()))["annotations"] == [
        {"target": "hello", "quality_score": 0.9, "source": "a person", "reason": "friendly"},
        {"target": "greet", "quality_score": None, "source": "a model"},
    ]
    with pytest.raises(UsageError, match="must be a finite number"):
        result.annotate("hello", quality_score=float("nan"))
