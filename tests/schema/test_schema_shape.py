"""What the published schemas promise to editors by their form alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft7Validator

from agentloom.model.json_schema import DRAFT, subschemas
from agentloom.model.schema_files import schema_text
from agentloom.model.workflow import STEP_CLASSES

KINDS = ("workflow", "agent")
STANDARD = {
    "$schema", "$id", "$ref", "title", "description", "type", "properties", "required", "additionalProperties", "items",
    "enum", "const", "minimum", "maximum", "minItems", "minLength", "pattern", "examples", "definitions", "if", "then",
    "else", "allOf", "anyOf",
}  # fmt: skip
EDITORS = {"markdownDescription", "enumDescriptions", "markdownEnumDescriptions", "defaultSnippets"}


@pytest.fixture(params=KINDS)
def schema(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A published schema."""
    loaded: dict[str, Any] = json.loads(schema_text(request.param))
    return loaded


def test_it_is_draft_7(schema: dict[str, Any]) -> None:
    """Named as such, or ajv and check-jsonschema guess differently; valid under the draft's own schema."""
    assert schema["$schema"] == DRAFT
    assert schema["$id"].startswith("urn:agentloom:schema:")
    Draft7Validator.check_schema(schema)


def test_only_known_keywords(schema: dict[str, Any]) -> None:
    """Nothing that SchemaStore's check would refuse; no `default`, which editors would insert."""
    for node in subschemas(schema):
        assert set(node) <= STANDARD | EDITORS, node
        # Draft-07 ignores everything beside `$ref`; editors read the texts.
        if "$ref" in node:
            assert set(node) <= {"$ref", "description", "markdownDescription"}, node


def test_every_reference_leads_somewhere_and_every_definition_is_used(schema: dict[str, Any]) -> None:
    """No dangling name and no dead weight."""
    named = {node["$ref"] for node in subschemas(schema) if "$ref" in node}
    assert named == {f"#/definitions/{name}" for name in schema["definitions"]}


def test_every_definition_has_a_title_and_no_field_has(schema: dict[str, Any]) -> None:
    """Titles head hovers and messages; a title on the root alone would head all of them."""
    assert schema["title"]
    for name, definition in schema["definitions"].items():
        assert definition["title"], name
        for key, field in definition["properties"].items():
            assert field is True or "title" not in field, (name, key)


def test_every_field_has_texts(schema: dict[str, Any]) -> None:
    """In both forms, once: a step's common keys in the base, and only named in the branches."""
    for block in (schema, *schema["definitions"].values()):
        for key, field in block["properties"].items():
            if field is True:
                assert key in schema["definitions"]["step"]["properties"], key
            else:
                assert field["description"] == field["markdownDescription"] != "", key


def test_values_have_texts(schema: dict[str, Any]) -> None:
    """Each value of a choice says what it means."""
    for node in subschemas(schema):
        if "enum" in node:
            assert len(node["enum"]) == len(node["enumDescriptions"]) == len(node["markdownEnumDescriptions"])
            assert all(node["enumDescriptions"])


def test_blocks_are_closed_and_name_what_they_need_first(schema: dict[str, Any]) -> None:
    """Unknown keys are refused everywhere but in the open base of a step."""
    for name, definition in {"": schema, **schema["definitions"]}.items():
        assert ("additionalProperties" in definition) is (name != "step")
        assert definition.get("additionalProperties", False) is False
        own = [key for key, field in definition["properties"].items() if field is not True]
        needed = [key for key in definition.get("required", []) if key in own]
        assert own[: len(needed)] == needed


def test_steps_branch_on_their_type() -> None:
    """One flat `if` per type; it holds neither for an empty item nor while `type` is missing."""
    schema = json.loads(schema_text("workflow"))
    step = schema["definitions"]["step"]
    assert step["properties"]["type"]["enum"] == [
        branch["if"]["properties"]["type"]["const"] for branch in step["allOf"]
    ]
    assert len(step["allOf"]) == len(STEP_CLASSES) == len(step["else"]["defaultSnippets"])
    for condition in (step["if"], *(branch["if"] for branch in step["allOf"])):
        validator = Draft7Validator(condition)
        assert not any(validator.is_valid(value) for value in (None, "x", [], {}, {"id": "a"}))


WRONG = {
    "a key of another type": (
        {"id": "r", "type": "router", "prompt": "x", "default": "b"},
        [(["steps", 0], "additionalProperties")],
    ),
    "several keys of another type": (
        {"id": "r", "type": "router", "tool_choice": "auto", "thinking": {}, "response_schema": {}, "default": "b"},
        [(["steps", 0], "additionalProperties")],
    ),
    "an unknown type": ({"id": "r", "type": "routr", "default": "b"}, [(["steps", 0, "type"], "enum")]),
    "no type": ({"id": "r", "default": "b"}, [(["steps", 0], "required")]),
    "an empty item": (None, [(["steps", 0], "type")]),
    "a missing key": ({"id": "t", "type": "tool"}, [(["steps", 0], "required")]),
    "a misspelled key in a block": (
        {"id": "t", "type": "tool", "tool_name": "x", "retry": {"max_retry": 1}},
        [(["steps", 0, "retry"], "additionalProperties")],
    ),
    "a wrong key in a tool choice": (
        {"id": "a", "type": "llm_call", "tool_choice": {"nam": "x"}},
        [(["steps", 0, "tool_choice"], "additionalProperties"), (["steps", 0, "tool_choice"], "required")],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_faults_stand_where_they_are(case: str) -> None:
    """A command line validator (check-jsonschema, say) prints the fault and nothing foreign."""
    step, faults = WRONG[case]
    validator = Draft7Validator(json.loads(schema_text("workflow")))
    found = {(tuple(e.absolute_path), e.validator) for e in validator.iter_errors({"name": "t", "steps": [step]})}
    assert found == {(tuple(path), keyword) for path, keyword in faults}
