"""The check of JSON Schemas by hand against a real validator."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from agentloom.analysis.rules.schemas import faults


def is_valid(schema: Any) -> bool:
    """Tell what the validator says."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return False
    return True


SCHEMAS = (
    {},
    {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "required": ["a"],
        "additionalProperties": False,
    },
    {"type": "strng"},
    {"type": []},
    {"type": ["string", "string"]},
    {"minLength": float("inf")},
    {"type": ["string", "strng"]},
    {"properties": []},
    {"properties": {"a": 5}},
    {"required": "a"},
    {"required": True},
    {"required": ["a", "a"]},
    {"items": [{}]},
    {"items": {"type": 5}},
    {"enum": "a"},
    {"enum": []},
    {"minLength": -1},
    {"minLength": 1.0},
    {"minLength": 1.5},
    {"minimum": "1"},
    {"multipleOf": 0},
    {"anyOf": []},
    {"anyOf": [{"type": "x"}]},
    {"allOf": {}},
    {"uniqueItems": 1},
    {"title": 5},
    {"$defs": {"a": {"type": "nope"}}, "$ref": "#/$defs/a"},
    {"not": {"type": "nope"}},
    {"additionalProperties": "no"},
    {"anything": 5, "const": [1], "default": {"type": "nope"}},
    {"if": True, "then": {"minimum": 1}, "else": False},
)


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_the_validator_agrees(schema: Any) -> None:
    """What is told to be wrong is refused by the validator, and nothing else is."""
    assert (not list(faults(schema))) == is_valid(schema)


VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, -1, 1.5, "a", "string", "object", "nope"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "required", "enum", "anyOf", "minimum", "minItems", "not", "title", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "items", "required", "enum", "anyOf", "minimum", "$defs", "not"]), VALUES
    )
)
def test_the_validator_agrees_on_made_up_schemas(schema: Any) -> None:
    """The same for schemas that nobody would write."""
    assert (not list(faults(schema))) == is_valid(schema)
