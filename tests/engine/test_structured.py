"""Replies that must have a form (LC-4 to LC-6)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom.providers.base import ReplyFormat
from agentloom.steps.structured import LONGEST_FAULTS, LONGEST_REPLY, NoJson, read_json
from tests.engine.replies import says, turns
from tests.engine.world import World, ask, flow, route, run

LABEL = {
    "type": "object",
    "properties": {"label": {"enum": ["billing", "technical"]}, "score": {"type": "integer", "minimum": 0}},
    "required": ["label"],
    "additionalProperties": False,
}
SCHEMA = {"type": "json_schema", "schema": LABEL}


def structured(*replies: Any, schema: dict[str, Any] | None = None, **step: Any) -> World:
    """Run one step whose reply must have a form."""
    return run(flow(ask("s", response_schema=SCHEMA if schema is None else schema, **step)), {"s": turns(*replies)})


def test_the_state_gets_the_value_and_the_result_keeps_the_text() -> None:
    """LC-6; `steps.<id>.output` is the value, too, and routers read what is in it."""
    text = '{"label": "billing", "score": 3}'
    steps = [
        ask("s", response_schema=SCHEMA, output="found"),
        route("r", "s", default="b", a="state.found.label == 'billing' and steps.s.output.score == 3"),
        ask("a", "r", prompt="{state.found.label} {state.steps.s.output.score}"),
        ask("b", "r"),
    ]
    world = run(flow(*steps), {"s": text})
    assert world.result.step_results["s"].output == text
    assert world.result.final_state["found"] == {"label": "billing", "score": 3}
    assert world.provider.prompts()["a"] == "billing 3"
    assert world.statuses["b"] == "skipped"


@pytest.mark.parametrize(
    ("schema", "asked"),
    [
        ({}, ReplyFormat("json_object", {}, "s")),
        ({"name": "ticket", "description": "d"}, ReplyFormat("json_object", {}, "ticket", "d")),
        ({**SCHEMA, "strict": False}, ReplyFormat("json_schema", LABEL, "s", "", False)),
        ({"name": "a name: ü", "type": "json_object"}, ReplyFormat("json_object", {}, "a_name___")),
    ],
)
def test_what_the_provider_is_told(schema: dict[str, Any], asked: ReplyFormat) -> None:
    """Type, schema, a name that every provider takes, what it is for, and how strict."""
    world = structured('{"label": "billing"}', schema=schema)
    assert world.provider.requests[0].reply_format == asked


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"a": 1}\n', {"a": 1}),
        ('"a": 1}', {"a": 1}),
        ('"a": {"b": 1}}', {"a": {"b": 1}}),
        ('"a": {"b": 1}} I hope that helps', {"a": {"b": 1}}),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('```\n"a": 1}\n```', {"a": 1}),
        ('```JSON\r\n{"a": "`"}\r\n```', {"a": "`"}),
        ('Here it is: {"a": "}"} and {"b": 2}', {"a": "}"}),
        ('A set {x, y} is no object, {"a": [1, {"b": 2}]} is', {"a": [1, {"b": 2}]}),
        ('{"a": 1} {"b": 2}', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ("3", 3),
        ('{"a": 1e400}', None),
        ('{"a": NaN}', None),
        ("no JSON at all", None),
        ("", None),
        ("{" * 10_000, None),
    ],
)
def test_json_is_taken_out_of_a_reply(text: str, value: Any) -> None:
    """LC-5: the whole text, a fenced block, the first object; with and without a first brace that the provider was given."""
    if value is None:
        with pytest.raises(NoJson):
            read_json(text)
    else:
        assert read_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000 + "]" * 10_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        '{"a":' * 10_000,
        '{"a": "' + "x" * 10_000_000,
        "{" * 10_000_000,
        "```json\n" * 1_000_000,
        '{"a": [' + "0, " * 3_000_000 + "}",
        '{"a": ' + "9" * 10_000 + "}",
    ],
    ids=[
        "deep list",
        "deep object",
        "unclosed objects",
        "unclosed text",
        "braces",
        "fences",
        "long list",
        "long number",
    ],
)
def test_hostile_replies_cost_little_and_fail_the_step(text: str) -> None:
    """10 MB, 10,000 levels deep: a failed step, no crash."""
    world = structured(text, schema={}, retry={"max_retries": 0})
    assert world.statuses == {"s": "failed"}
    assert world.result.step_results["s"].error_classification == "permanent"
    assert len(world.errors["s"]) < 1000


def test_ten_megabytes_that_fit_are_taken() -> None:
    """Size alone is no fault."""
    text = json.dumps({"a": "x" * 10_000_000})
    world = structured(text, schema={}, output="o")
    assert len(world.result.final_state["o"]["a"]) == 10_000_000


def test_a_reply_that_does_not_fit_is_asked_for_again() -> None:
    """With the bad reply and what is wrong with it; all calls count, the good reply is the result."""
    world = structured('{"label": "other", "x": 1}', "what?", '{"label": "billing"}', output="o")
    assert world.statuses == {"s": "success"}
    first, second, third = [request.messages for request in world.provider.requests]
    assert [message.role for message in second] == ["user", "assistant", "user"]
    assert second[0] == first[0]
    assert second[1].content == '{"label": "other", "x": 1}'
    assert second[2].content == (
        "That reply can't be used:\n- `label` must be one of `billing`, `technical`, not `other`\n- `x` is not allowed\n"
        "Reply again, with nothing but the corrected JSON."
    )
    assert third[1].content == "what?"
    assert "- the reply holds no JSON object" in third[2].content
    assert world.result.final_state["o"] == {"label": "billing"}
    assert world.result.step_results["s"].cost_usd == 1.5
    assert len({request.idempotency_key for request in world.provider.requests}) == 3


@pytest.mark.parametrize(
    ("retry", "config", "made"),
    [
        ({"max_retries": 2}, {}, 3),
        ({}, {"max_retries": 1}, 2),
        ({}, {}, 4),
        ({"max_retries": 0}, {"max_retries": 5}, 1),
    ],
)
def test_how_often_it_is_asked_for_again(retry: dict[str, Any], config: dict[str, Any], made: int) -> None:
    """As often as the step is retried; a reply that never fits fails the step for good, without another attempt."""
    world = run(flow(ask("s", response_schema={}, retry=retry), config=config), {"s": "never"})
    assert len(world.provider.requests) == made
    tries = f" after {made} tries" if made > 1 else ""
    assert world.errors["s"] == f"the reply doesn't fit `response_schema`{tries}: the reply holds no JSON object"
    assert world.result.step_results["s"].error_classification == "permanent"
    assert world.result.step_results["s"].cost_usd == made * 0.5


def test_a_streamed_reply_is_checked_after_the_stream_and_never_asked_for_again() -> None:
    """LC-6; its text was told already."""
    world = structured("no JSON", stream=True)
    assert len(world.provider.requests) == 1
    assert world.text_of("s") == ["no", "JSON"]
    assert world.errors["s"] == "the reply doesn't fit `response_schema`: the reply holds no JSON object"
    assert structured('{"label": "billing"}', stream=True).statuses == {"s": "success"}


def test_what_is_wrong_is_told_within_bounds() -> None:
    """800 characters of faults; of the bad reply, what a model can use."""
    bad = json.dumps({f"key{i}": 1 for i in range(20_000)})
    world = structured(bad, '{"label": "billing"}')
    _, reply, again = world.provider.requests[1].messages
    assert len(again.content) < LONGEST_FAULTS + 120
    assert len(reply.content) < LONGEST_REPLY + 120
    assert reply.content.endswith(f"of {len(bad)} characters]")


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        ({"type": "object"}, [], "the reply must be an object, not a list"),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "x"}, "`a` must be a whole number, not `x`"),
        (
            {"properties": {"a": {"type": ["integer", "null"]}}},
            {"a": []},
            "`a` doesn't fit `type: ['integer', 'null']`",
        ),
        ({"required": ["a", "b"]}, {"a": 1}, "`b` is missing"),
        ({"properties": {"a": {"required": ["b"]}}}, {"a": {}}, "`a.b` is missing"),
        ({"properties": {"a": {"items": {"const": 1}}}}, {"a": [1, 2]}, "`a[1]` must be one of `1`, not `2`"),
        ({"properties": {"a": {"minLength": 3}}}, {"a": "x"}, "`a` doesn't fit `minLength: 3`"),
        ({"properties": {"a": {"pattern": "^b"}}}, {"a": "x"}, "`a` doesn't fit `pattern: ^b`"),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "the reply doesn't fit `anyOf: "),
    ],
)
def test_faults_in_words(schema: dict[str, Any], value: Any, fault: str) -> None:
    """The place, what it must be, and what it is."""
    world = structured(json.dumps(value), schema={"type": "json_schema", "schema": schema}, retry={"max_retries": 0})
    assert fault in world.errors["s"]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "#/$defs/none"}, "the JSON Schema can't be used: "),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "the JSON Schema can't be used: "),
        ({"$ref": "#"}, "the JSON Schema refers to itself without end"),
        ({"properties": {"a": {"pattern": "("}}}, "the JSON Schema can't be used: "),
    ],
)
def test_a_schema_that_can_not_be_used_fails_the_step_for_good(schema: dict[str, Any], why: str) -> None:
    """Nothing is fetched for it."""
    world = structured('{"a": "x"}', schema={"type": "json_schema", "schema": schema})
    assert world.errors["s"].startswith(f"`response_schema`: {why}")
    assert world.result.step_results["s"].error_classification == "permanent"


def test_pieces_of_a_reply_with_a_secret_in_it_are_not_told() -> None:
    """No pattern can be held against a piece; the value that is secret is redacted, and so is the text that holds it."""
    text = '{"name": "Ann", "pin": "4711-0815"}'
    data = flow(ask("s", response_schema={}, output="person", stream=True), state_schema={"pin": {"redact": True}})
    world = run(data, {"s": text})
    assert world.text_of("s") == []
    assert world.result.final_state["person"]["name"] == "Ann"
    told = json.dumps([world.result.to_dict(), *(event.to_json() for event in world.events)])
    assert "4711-0815" not in told


CLASSES = """
from datetime import date
from pydantic import BaseModel, field_validator

class Ticket(BaseModel):
    label: str
    score: int = 1
    due: date | None = None

    @field_validator("label")
    @classmethod
    def known(cls, value: str) -> str:
        if value == "other":
            raise ValueError("no label of ours")
        return value

    class Inner(BaseModel):
        x: int

class Broken(BaseModel):
    label: str

    @field_validator("label")
    @classmethod
    def fail(cls, value: str) -> str:
        raise KeyError("boom")

not_a_class = 1
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project with a module of pydantic classes and a workflow beside it."""
    (tmp_path / "reply_classes.py").write_text(CLASSES)
    (tmp_path / "broken_classes.py").write_text("1 / 0")
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in ("reply_classes", "broken_classes"):
        sys.modules.pop(name, None)


def with_class(project: Path, name: str, *replies: str, retries: int = 1) -> Any:
    """Run a workflow file whose reply must fit a class; return the result of its step, and the state."""
    from agentloom.core.engine import WorkflowEngine
    from agentloom.core.loader import load_workflow
    from agentloom.providers.gateway import ProviderGateway
    from tests.engine.virtual import run_virtual
    from tests.engine.world import Script

    step = ask("s", response_schema={"type": "pydantic", "model": name}, output="o", retry={"max_retries": retries})
    (project / "w.yaml").write_text(json.dumps(flow(step)))
    gateway = ProviderGateway()
    script = Script({"s": turns(*replies)})
    gateway.register(script)
    result = run_virtual(WorkflowEngine(load_workflow(project / "w.yaml"), gateway).run)
    return result.step_results["s"], result.final_state, script.requests


@pytest.mark.parametrize("name", ["reply_classes:Ticket", "reply_classes.Ticket"])
def test_a_class_of_the_project(project: Path, name: str) -> None:
    """Imported from beside the workflow; its defaults and its types count, and the state gets plain data."""
    step, state, requests = with_class(project, name, '{"label": "billing", "due": "2026-01-02"}')
    assert state["o"] == {"label": "billing", "score": 1, "due": "2026-01-02"}
    assert step.output == '{"label": "billing", "due": "2026-01-02"}'
    asked = requests[0].reply_format
    assert (asked.type, asked.name, list(asked.schema["properties"])) == ("json_schema", "s", ["label", "score", "due"])


def test_what_a_class_refuses_is_asked_for_again(project: Path) -> None:
    """In the words of its author, or of its schema."""
    step, state, requests = with_class(
        project, "reply_classes:Ticket", '{"label": "other"}', '{"score": "many"}', '{"label": "a"}', retries=2
    )
    assert step.status == "success"
    assert state["o"]["label"] == "a"
    assert "- `label`: no label of ours\n" in requests[1].messages[-1].content
    listed = requests[2].messages[-1].content.split("\n")[1:-1]
    assert sorted(listed) == ["- `label` is missing", "- `score` must be a whole number, not `many`"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere_at_all:Ticket", "module `nowhere_at_all` can't be imported: ModuleNotFoundError: "),
        ("broken_classes:Ticket", "module `broken_classes` can't be imported: ZeroDivisionError: "),
        ("reply_classes:Other", "`Other` in module `reply_classes` is no pydantic class"),
        ("reply_classes:not_a_class", "`not_a_class` in module `reply_classes` is no pydantic class"),
        ("reply_classes:Broken", "`reply_classes:Broken` can't check the reply: KeyError: "),
    ],
)
def test_a_class_that_can_not_be_used_fails_the_step_for_good(project: Path, name: str, why: str) -> None:
    """One line, no traceback."""
    step, _, _ = with_class(project, name, '{"label": "a"}')
    assert step.error.startswith(f"`response_schema`: {why}")
    assert step.error_classification == "permanent"


def test_reasoning_belongs_to_the_reply_that_counts() -> None:
    """Also of replies that are asked for again."""
    world = structured(
        says("no", reasoning="hm"), says('{"label": "billing"}', reasoning="ah"), thinking={"enabled": True}
    )
    metadata = world.result.step_results["s"].prompt_metadata
    assert metadata is not None
    assert metadata["reasoning"] == "hm\n\nah"
