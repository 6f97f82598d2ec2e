"""Workflows written in Python: the same structure as a file, the same check, mistakes told at the line that made them."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentloom.api import InvalidWorkflow, MockProvider, ProviderGateway, UsageError, WorkflowBuilder, WorkflowEngine
from agentloom.api import workflow as begin
from agentloom.core.loader import load_text
from agentloom.model.catalogue import catalogue

pytestmark = pytest.mark.anyio


def here() -> int:
    """Return the line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def triage() -> WorkflowBuilder:
    """Return a workflow with a branch, and with every kind of step that needs no other file."""
    return (
        begin("triage", "Sorts tickets.", provider="mock", budget_usd=0.5)
        .set_version("1.1")
        .set_config(model="m", timeout=60)
        .set_state(ticket="My invoice is wrong")
        .set_state({"reply-to": "ann@example.com"}, lang="en")
        .set_state_schema({"reply-to": {"redact": True}})
        .add_agent("helper", "You help.", tools=["http_request"])
        .add_llm_step("classify", "Classify: {state.ticket}", output="category", temperature=0)
        .add_router_step("route", [("state.category == 'billing'", "billing")], "other", depends_on=["classify"])
        .add_llm_step("billing", "Answer {state.ticket} in {state.lang}", output="answer", depends_on=["route"])
        .add_subworkflow_step(
            "other", begin("inner").add_llm_step("say", "{state.ticket}"), output="inner", depends_on=["route"]
        )
        .add_tool_step("keep", "file_write", {"path": "x", "content": "{state.answer}"}, depends_on=["billing"])
        .add_embed_step("vectors", "ticket", output="vectors")
        .add_agent_step("ask", "helper", "{state.ticket}", output="said")
        .add_approval_step("gate", output="decision", depends_on=["ask"])
        .add_step("last", "llm_call", prompt="bye", depends_on=["gate"])
    )


YAML = """
name: triage
description: Sorts tickets.
version: "1.1"
config: {provider: mock, budget_usd: 0.5, model: m, timeout: 60}
state: {ticket: My invoice is wrong, reply-to: ann@example.com, lang: en}
state_schema: {reply-to: {redact: true}}
agents: {helper: {system_prompt: You help., tools: [http_request]}}
steps:
  - {id: classify, type: llm_call, prompt: "Classify: {state.ticket}", output: category, temperature: 0}
  - id: route
    type: router
    depends_on: [classify]
    conditions: [{expression: state.category == 'billing', target: billing}]
    default: other
  - {id: billing, type: llm_call, depends_on: [route], prompt: "Answer {state.ticket} in {state.lang}", output: answer}
  - id: other
    type: subworkflow
    depends_on: [route]
    output: inner
    workflow_inline: {name: inner, steps: [{id: say, type: llm_call, prompt: "{state.ticket}"}]}
  - {id: keep, type: tool, depends_on: [billing], tool_name: file_write, tool_args: {path: x, content: "{state.answer}"}}
  - {id: vectors, type: embed, inputs: ticket, output: vectors}
  - {id: ask, type: agent, agent: helper, input: "{state.ticket}", output: said}
  - {id: gate, type: approval_gate, depends_on: [ask], output: decision}
  - {id: last, type: llm_call, depends_on: [gate], prompt: bye}
"""


def test_the_same_structure_as_a_file() -> None:
    """What the builder writes is what stands in a file, value by value, and so is the checked document's typed model."""
    written, read = triage(), load_text(YAML)
    assert written.to_dict() == json.loads(json.dumps(read.data))
    assert written.build().workflow == read.workflow


def test_every_field_of_every_step_type_can_be_written() -> None:
    """A builder that knew fewer fields than the format would be a second, smaller format."""
    known = catalogue()
    fields = {
        name: {field: 0 for field in known.blocks[block].fields if field not in ("id", "type")}
        for name, block in known.steps.items()
    }
    assert set(fields) >= {"llm_call", "router", "tool", "subworkflow", "approval_gate", "embed", "agent"}
    for type_, given in fields.items():
        step = begin("t").add_step("s", type_, **given).to_dict()["steps"][0]
        assert step == {"id": "s", "type": type_, **given}


async def test_it_runs() -> None:
    """The engine takes it like a file."""
    gateway = ProviderGateway()
    gateway.register(MockProvider())
    built = begin("t", provider="mock").add_llm_step("a", "hi", output="x").build()
    result = await WorkflowEngine(built, gateway).run()
    assert (result.status, result.final_state["x"]) == ("success", "Mock response")


def test_mistakes_are_told_at_their_line() -> None:
    """Each with the file, the line of the call, the step, the code and the cure; whatever no step wrote at the beginning."""
    first = here() + 2
    wrong = (
        begin("t", provder="mock")
        .add_llm_step("a", "hi", outptu="x")
        .add_tool_step(
            "b",
            "http_request",
            {"url": "u"},
            depends_on=["c"],
        )
    )
    with pytest.raises(InvalidWorkflow) as caught:
        wrong.build()
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{__file__}:{first + n}" for n in (0, 1, 2)]
    assert "AL102 unknown key `provder` in `config`; did you mean `provider`?" in lines[0]
    assert "step `a`: AL102 unknown key `outptu`" in lines[1]
    assert "step `b`: AL202 step `c` is not defined" in lines[2]
    assert caught.value.document.diagnostics


def test_many_mistakes_are_cut() -> None:
    """The first five, and how many more."""
    builder = begin("t")
    for number in range(9):
        builder.add_llm_step(f"s{number}")
    with pytest.raises(InvalidWorkflow) as caught:
        builder.build()
    assert str(caught.value).splitlines()[5:] == ["and 4 more"]


def test_warnings_are_logged_at_their_line(caplog: pytest.LogCaptureFixture) -> None:
    """They don't stop anything, and aren't silent either."""
    line = here() + 1
    builder = begin("t").add_tool_step("a", "http_requst", {"url": "u"})
    with caplog.at_level(logging.WARNING):
        builder.build()
    assert any(said.startswith(f"{__file__}:{line}: step `a`: AL604") for said in caplog.messages)


def test_a_builder_is_not_bound_to_what_it_was_given() -> None:
    """Lists and mappings that a program changes later change no workflow, and a workflow that goes on growing no built one."""
    args: dict[str, Any] = {"path": "a"}
    builder = begin("t").add_tool_step("a", "file_read", args)
    args["path"] = "b"
    built = builder.build()
    builder.add_llm_step("more", "x")
    builder.to_dict()["steps"].clear()
    assert [step["id"] for step in builder.to_dict()["steps"]] == ["a", "more"]
    assert builder.to_dict()["steps"][0]["tool_args"] == {"path": "a"}
    assert [step.id for step in built.steps] == ["a"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: begin("t").add_llm_step("a", "x", depends_on="b"), '`depends_on` is a list of steps; write `["b"]`'),
        (lambda: begin("t").set_state(x=object()), "state.x"),
        (lambda: begin("t").add_tool_step("a", "x", {"f": print}), "step `a`: `tool_args.f` is a `builtin"),
    ],
)
def test_what_is_no_plain_data_is_refused_at_once(wrong: Callable[[], object], said: str) -> None:
    """The call that hands it over raises, so that the traceback leads there."""
    with pytest.raises(UsageError) as caught:
        wrong()
    assert said in str(caught.value)


def test_paths_start_at_a_folder(tmp_path: Path) -> None:
    """At the one that is named; by default at the program's own."""
    (tmp_path / "child.loom.yaml").write_text("name: c\nsteps:\n  - {id: a, type: llm_call, prompt: hi}\n")
    builder = begin("t").add_subworkflow_step("sub", Path("child.loom.yaml"))
    assert builder.build(tmp_path).children["sub"].document is not None
    with pytest.raises(InvalidWorkflow, match=r"does not exist"):
        builder.build()
