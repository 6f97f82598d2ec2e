"""What can't be run at all: refused before the first event, in clear words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data, load_text, load_workflow
from agentloom.core.parser import WorkflowParser
from agentloom.errors import InvalidWorkflow, UsageError, WorkflowError
from agentloom.model.workflow import build_workflow
from tests.engine.world import ask, flow, run, sub


def test_what_asks_for_nothing_is_not_refused() -> None:
    """Empty blocks, defaults written out, zero for no limit, no retries: the step runs as written."""
    step = ask(
        "a",
        retry={"max_retries": 0, "backoff_base": 3},
        timeout=0,
        tools=[],
        attachments=[],
        thinking={"enabled": False},
        response_schema=None,
        tool_choice="none",
    )
    config = {"max_retries": 0, "timeout": 0, "budget_usd": None, "sandbox": {"enabled": False}}
    assert run(flow(step, config=config)).statuses == {"a": "success"}


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([ask("a"), ask("a")], "step id `a` stands twice, in steps 0 and 1"),
        ([ask("a", "b")], "step `a` depends on `b`, which is not defined"),
        ([ask("a", "a")], "step `a` depends on itself"),
        ([ask("a", "b"), ask("b", "c"), ask("c", "a"), ask("d")], "steps depend on each other: a -> b -> c -> a"),
        ([{"id": "r", "type": "router", "default": "x"}], "router `r` leads to `x`, which is not defined"),
        ([ask("a", output="steps.b")], "step `a`: `output: steps.b` is reserved for step results; use another key"),
        ([{"id": "s", "type": "subworkflow"}], "step `s` needs `workflow_path` or `workflow_inline`"),
    ],
)
def test_a_typed_workflow_that_does_not_hold_together_is_refused(steps: list[dict[str, Any]], says: str) -> None:
    """One that was built in Python didn't come through the check of files."""
    with pytest.raises(WorkflowError) as caught:
        run(flow(*steps))
    assert str(caught.value) == says


def test_a_state_key_steps_is_refused_before_the_run() -> None:
    """AL407: not after a call was paid."""
    with pytest.raises(WorkflowError, match="state key `steps` is reserved"):
        run(flow(ask("a"), state={"steps": 1}))


def test_a_state_that_is_no_plain_data_is_refused_before_the_run() -> None:
    """Also the state of a workflow below, which would only start later."""
    for data in (
        flow(ask("a"), state={"k": object()}),
        flow(ask("a"), sub("s", child={"state": {"k": object()}}, steps=[ask("b")])),
    ):
        with pytest.raises(UsageError, match=r"`state\.k` is a `object`"):
            WorkflowEngine(build_workflow(data)).check()


@pytest.mark.parametrize("run_id", ["", "a b", "../x", "a/b", "ä"])
def test_odd_run_ids_are_refused(run_id: str) -> None:
    """CK-3: they name files."""
    with pytest.raises(UsageError, match="run id"):
        run(flow(ask("a")), run_id=run_id)


BAD = """name: t
config: {provider: mock, modle: m}
steps:
  - {id: a, type: llm_call, prompt: x, depends_on: [b]}
"""


def test_a_file_with_errors_is_refused_with_its_document(tmp_path: Path) -> None:
    """WF-3, WF-6: the first error with its place, and all of them in the document."""
    file = tmp_path / "bad.loom.yaml"
    file.write_text(BAD)
    for load in (load_workflow, WorkflowParser.from_yaml):
        with pytest.raises(InvalidWorkflow) as caught:
            load(file)
        assert str(caught.value).startswith(f"{file}:2:26: AL102 unknown key `modle`")
        assert str(caught.value).endswith("(and 1 more)")
        assert [found.code for found in caught.value.document.diagnostics] == ["AL102", "AL202"]


def test_a_document_with_errors_is_refused_by_the_engine_too() -> None:
    """The engine runs only documents without errors, wherever they come from."""
    from agentloom.analysis.analyze import analyze
    from agentloom.analysis.context import Context
    from agentloom.text import Source

    document = analyze(Source("<text>", BAD), Context())
    with pytest.raises(InvalidWorkflow):
        anyio.run(WorkflowEngine(document).run)


def test_plain_data_goes_through_the_same_door() -> None:
    """The same words as for a file, at the place where the data would stand as JSON."""
    data = flow(ask("a", prompt="line\u2028\x85\x7f\ufeff \U0001f600 {state.k}"), state={"k": 1e-7})
    assert load_data(data).workflow == build_workflow(data)
    assert WorkflowParser.from_dict(data).workflow == build_workflow(data)
    with pytest.raises(InvalidWorkflow, match=r"^<data>:6:\d: AL102 unknown key `hue`"):
        load_data(flow(ask("a"), config={"hue": 1}))
    with pytest.raises(UsageError, match=r"`workflow.state.k` is a `object`"):
        load_data(flow(ask("a"), state={"k": object()}))


@pytest.mark.parametrize("data", [b"\xff\xfea", b"name: \xe9"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    """WF-4: so is one that isn't there, and a folder."""
    file = tmp_path / "x.loom.yaml"
    file.write_bytes(data)
    for path, says in (
        (file, r"x\.loom\.yaml:1:\d+: AL"),
        (tmp_path / "none.yaml", "does not exist"),
        (tmp_path, "can't be read"),
    ):
        with pytest.raises(WorkflowError, match=says) as raised:
            load_workflow(path)
        if path is file:
            assert isinstance(raised.value, InvalidWorkflow)
            assert "AL001" in {d.code for d in raised.value.document.diagnostics}


def test_a_text_loads_too() -> None:
    """Standard input and editors' buffers have no file."""
    document = load_text("name: t\nsteps: [{id: a, type: llm_call, prompt: hi}]\n", "<stdin>")
    assert document.workflow.name == "t"
