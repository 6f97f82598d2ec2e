"""The model field by field: what is described, what bounds hold, where null is taken, what `build_workflow` says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agentloom.errors import WorkflowError
from agentloom.model.agent import AgentDefinition
from agentloom.model.steps import LLMCallStep, RouterStep, StepBase
from agentloom.model.walk import BLOCKS, tag_of
from agentloom.model.workflow import STEP_CLASSES, SubworkflowStep, Workflow, build_workflow

CLASSES: tuple[type[BaseModel], ...] = (*(cls for _, _, cls in BLOCKS), *STEP_CLASSES)


def workflow(*steps: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return a workflow of steps; without any, of one `llm_call`."""
    return {"name": "t", "steps": list(steps) or [{"id": "a", "type": "llm_call", "prompt": "hi"}], **keys}


def step(type_: str = "llm_call", **keys: Any) -> dict[str, Any]:
    """Return a workflow whose one step has the needed fields of its type and the given ones."""
    needed: dict[str, dict[str, Any]] = {
        "llm_call": {"prompt": "hi"},
        "tool": {"tool_name": "file_read"},
        "embed": {"inputs": "text"},
        "agent": {"agent": "helper"},
    }
    return workflow({"id": "a", "type": type_, **needed.get(type_, {}), **keys})


def refused(document: dict[str, Any]) -> set[str]:
    """Return the paths of the keys that the model refuses in a workflow."""
    try:
        Workflow.model_validate(document)
    except ValidationError as error:
        places = {".".join(str(part) for part in fault["loc"]) for fault in error.errors()}
        # `steps` counts as too short when its only step is refused.
        return places - ({"steps"} if len(places) > 1 else set())
    return set()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_is_described(cls: type[BaseModel]) -> None:
    """One or two sentences for every field, one for the class; what is optional says what happens without it."""
    assert re.fullmatch(r"[A-Z][^\n]*\.", cls.__doc__ or ""), cls.__doc__
    for name, field in cls.model_fields.items():
        text = field.description or ""
        if name == "type" and issubclass(cls, StepBase):
            text = StepBase.model_fields["type"].description or ""
        assert re.fullmatch(r"[A-Z].*\.", text), (name, text)
        scalar = field.default_factory is None and not field.is_required()
        # A field that needs another one says so in its own way.
        if scalar and not re.search(r"Default: |Needed unless|Either this or|only\.$", text):
            pytest.fail(f"{cls.__name__}.{name} doesn't say what its default is: {text}")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_examples_fit_their_field(cls: type[BaseModel]) -> None:
    """What an editor offers is never refused."""
    for name, field in cls.model_fields.items():
        for example in field.examples or ():
            try:
                cls.model_validate({field.alias or name: example})
            except ValidationError as error:
                wrong = [fault for fault in error.errors() if fault["loc"][0] == (field.alias or name)]
                assert not wrong, (name, example, wrong)


# Value -> accepted. Dotted keys lead into blocks.
BOUNDS: list[tuple[str, dict[Any, bool]]] = [
    ("config.budget_usd", {0: True, 0.5: True, -0.01: False, "0.5": False, None: True, True: False}),
    ("config.timeout", {0: True, 300.5: True, -1: False, None: True, float("inf"): False, float("nan"): False}),
    ("config.max_retries", {0: True, -1: False, 2.5: False, None: False}),
    ("config.max_concurrent_steps", {1: True, 1024: True, 0: False, 1025: False}),
    ("config.on_step_failure", {"continue": True, "stop": False, "Continue": False}),
    ("config.model", {"m": True, "": False, None: False}),
    ("llm_call.model", {"m": True, "": False, None: True}),
    ("embed.model", {"m": True, "": False, None: True}),
    ("config.latency_model", {"replay": True, "random": False}),
    # Negative waits and latencies are odd, not impossible: a warning (AL510), not an error.
    ("config.latency_ms", {-1: True, 0: True, "1": False}),
    ("config.responses", {None: False}),
    ("config.sandbox.max_write_bytes", {0: True, -1: False, None: True}),
    ("llm_call.retry.max_retries", {0: True, -1: False, None: True}),
    ("llm_call.retry.backoff_base", {-2: True, 0: True, "2": False}),
    ("llm_call.retry.backoff_max", {-1: True, None: False}),
    ("llm_call.retry.max_retry", {1: False}),
    ("llm_call.timeout", {0: True, 0.5: True, -1: False, None: True}),
    ("llm_call.temperature", {0: True, 2: True, 2.01: False, -0.1: False, None: True}),
    ("llm_call.max_tokens", {1: True, 0: False, None: True}),
    ("llm_call.max_tool_iterations", {1: True, 0: False}),
    ("llm_call.thinking.enabled", {True: True, "yes": False, None: False}),
    ("llm_call.stream", {True: True, None: True, "true": False, 0: False}),
    ("llm_call.thinking.level", {"low": True, None: True, "max": False}),
    ("llm_call.response_schema.type", {"pydantic": True, "json": False}),
    ("llm_call.max_retries", {1: False}),
    ("embed.dimensions", {1: True, 0: False, None: True}),
    ("embed.inputs", {"a.b": True, "{a.b}": True, "{a": False, "a[0]": False, "": False}),
    ("approval_gate.timeout_seconds", {0: True, -1: False, 1.5: False, None: True}),
    ("approval_gate.on_timeout", {"approve": True, None: True, "approved": False}),
    ("approval_gate.notify.timeout", {30: True, -1: False}),
    ("router.prompt", {"hi": False}),
    ("router.default", {"b": True, None: True}),
]


@pytest.mark.parametrize(
    ("key", "value", "good"),
    [(key, value, good) for key, cases in BOUNDS for value, good in cases.items()],
)
def test_bounds(key: str, value: Any, good: bool) -> None:
    """Numbers that certainly ruin a run are refused, odd ones are not; the fault names the key."""
    place, *path = key.split(".")
    block: Any = value
    for part in reversed(path):
        block = {part: block}
    if place == "config":
        found, where = refused(workflow(config=block)), key
    else:
        if path[0] == "notify":
            block["notify"]["url"] = "https://example.com"
        found, where = refused(step(place, **block)), ".".join(["steps", "0", place, *path])
    assert found == (set() if good else {where})


@pytest.mark.parametrize("name", ["config", "state", "state_schema", "agents"])
def test_an_empty_top_level_key_is_as_good_as_none(name: str) -> None:
    """`config:` with nothing behind it means the default."""
    assert build_workflow(workflow(**{name: None})) == build_workflow(workflow())


@pytest.mark.parametrize("name", ["retry", "depends_on", "thinking", "tools", "attachments", "output", "timeout"])
def test_an_empty_step_key_is_as_good_as_none(name: str) -> None:
    """So does `retry:`; the engine never sees null where a block is meant."""
    assert build_workflow(step(**{name: None})) == build_workflow(step())


@pytest.mark.parametrize(("key", "value"), [("name", None), ("steps", None), ("version", None), ("description", None)])
def test_null_is_refused_where_a_value_is_needed(key: str, value: None) -> None:
    """Null is no name, no list of steps and no text."""
    assert refused({**workflow(), key: value}) == {key}


@pytest.mark.parametrize(("version", "text"), [(1.0, "1.0"), (2, "2"), ("1.0", "1.0"), ("", "")])
def test_version_may_be_a_number(version: Any, text: str) -> None:
    """`version: 1.0` is a number to YAML; the model holds its text."""
    assert build_workflow(workflow(version=version)).version == text


@pytest.mark.parametrize(
    ("id_", "good"),
    [
        ("a", True),
        ("fetch_2", True),
        ("fetch-all", True),
        ("7", True),
        ("étape", True),
        ("步骤", True),
        ("", False),
        ("a b", False),
        ("a.b", False),
        ("a[0]", False),
        ("{a}", False),
        ("a:b", False),
        ("a\n", False),
        ("a/b", False),
        (5, False),
        (None, False),
    ],
)
def test_step_ids(id_: Any, good: bool) -> None:
    """An id is something that templates can read back."""
    assert (refused(step(id=id_)) == set()) is good


def test_each_type_takes_its_own_keys_only() -> None:
    """A field of one type is refused on every other type that doesn't have it."""
    for cls in STEP_CLASSES:
        for other in STEP_CLASSES:
            for key in set(cls.model_fields) - set(other.model_fields):
                found = refused(step(tag_of(other), **{key: None}))
                assert found == {f"steps.0.{tag_of(other)}.{key}"}, (other, key)


def test_a_workflow_in_a_workflow() -> None:
    """`workflow_inline` is a workflow with all its checks."""
    inner = {"name": "inner", "steps": [{"id": "r", "type": "router", "prompt": "x"}]}
    document = workflow({"id": "s", "type": "subworkflow", "workflow_inline": inner})
    with pytest.raises(WorkflowError, match=r"`steps\.0\.workflow_inline\.steps\.0\.prompt` \(extra forbidden\)"):
        build_workflow(document)
    del inner["steps"][0]["prompt"]  # type: ignore[attr-defined]
    (only,) = build_workflow(document).steps
    assert isinstance(only, SubworkflowStep)
    assert only.workflow_inline is not None
    assert isinstance(only.workflow_inline.steps[0], RouterStep)


def test_disagreement_names_the_places() -> None:
    """The backstop names keys as the file has them, and no sentence of pydantic."""
    document = workflow({"id": "a", "type": "llm"}, {"id": "b", "type": "tool", "x": 1}, {}, "hi", name="")
    with pytest.raises(WorkflowError) as caught:
        build_workflow(document)
    message = str(caught.value)
    assert message == (
        "the workflow doesn't fit its model at `name` (string too short), `steps.0` (union tag invalid), "
        "`steps.1.tool_name` (missing), `steps.1.x` (extra forbidden), `steps.2` (union tag not found) and 1 more"
    )


def test_what_was_built_can_be_stored_and_built_again() -> None:
    """Checkpoints hold the workflow as JSON; keys are spelled as in the file."""
    document = workflow(
        {"id": "a", "type": "llm_call", "prompt": "hi", "response_schema": {"type": "json_schema", "schema": {}}},
        {"id": "b", "type": "tool", "tool_name": "t", "tool_args": {"a": [1, {"b": None}]}, "depends_on": ["a"]},
        state={"x": {"y": [1, 2.5, None, "z"]}},
        agents={"one": "one.agent.yaml", "two": {"system_prompt": "x", "tools": ["t", {"agent": "one"}]}},
    )
    built = build_workflow(document)
    stored = built.model_dump(mode="json")
    assert stored["steps"][0]["response_schema"]["schema"] == {}
    assert build_workflow(stored) == built


def test_models_are_immutable() -> None:
    """Nobody changes a workflow behind the engine's back."""
    built = build_workflow(workflow())
    with pytest.raises(ValidationError):
        built.name = "other"  # type: ignore[misc]
    assert isinstance(built.steps, tuple)
    assert isinstance(built.steps[0], LLMCallStep)


@pytest.mark.parametrize(
    ("choice", "good"), [("auto", True), ({"name": "t"}, True), ("any", False), (None, False), ({}, False)]
)
def test_tool_choice(choice: Any, good: bool) -> None:
    """A word, or the name of a tool."""
    assert (refused(step(tool_choice=choice)) == set()) is good


def test_agent_tools_are_told_apart() -> None:
    """A tool of an agent is a name, a definition, or another agent."""
    tools = ["a", {"name": "b", "description": "x"}, {"agent": "c"}]
    built = AgentDefinition.model_validate({"system_prompt": "x", "tools": tools})
    assert [type(tool).__name__ for tool in built.tools] == ["str", "ToolDefinition", "AgentTool"]
