"""What the engine reads instead of the pydantic model is the pydantic model, over thousands of documents."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agentloom.model.view import NAMES, View, view_workflow
from agentloom.model.workflow import Workflow
from tests.conftest import ROOT
from tests.model import documents


def plain_view(value: Any) -> Any:
    """Return a view as plain data, with the types of its values where equality alone would not tell them apart."""
    if isinstance(value, View):
        return {name: plain_view(item) for name, item in vars(value).items()} | {"": sorted(value.model_fields_set)}
    if isinstance(value, dict):
        return {name: plain_view(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(plain_view, value))
    return value, type(value)


def plain_model(value: Any) -> Any:
    """Return the same of the model."""
    if isinstance(value, BaseModel):
        names = {name: field.alias or name for name, field in type(value).model_fields.items()}
        given = sorted(names[name] for name in value.model_fields_set)
        return {names[name]: plain_model(item) for name, item in value} | {"": given}
    if isinstance(value, dict):
        return {name: plain_model(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(plain_model, value))
    return value, type(value)


def same(value: Any) -> Any:
    """Forget whether a default is written as a whole number: `2` in the model's source is the number 2.0 of the field."""
    if isinstance(value, dict):
        return {name: same(item) for name, item in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and value[1] is int:
        return float(value[0]), float
    return type(value)(map(same, value)) if isinstance(value, tuple | list) else value


def test_view_and_model_agree() -> None:
    """Every field, every default, every null, and which keys were given."""
    seen = 0
    for seed in range(700):
        for document in (documents.workflow(seed), documents.nearly("workflow", seed)):
            try:
                model = Workflow.model_validate(document)
            except ValidationError:
                continue
            seen += 1
            assert same(plain_view(view_workflow(document))) == same(plain_model(model)), (seed, document)
    assert seen > 700


@pytest.mark.parametrize("number", [0, 1, 1.5])
def test_numbers_are_of_the_models_type(number: float) -> None:
    """`temperature: 0` is 0.0 for both: hashes of requests depend on it."""
    step = {"id": "a", "type": "llm_call", "prompt": "x", "temperature": number, "max_tokens": 1}
    data = {"name": "t", "version": 1.0, "steps": [step]}
    for workflow in (view_workflow(data), Workflow.model_validate(data)):
        (found,) = workflow.steps
        assert found.type == "llm_call"
        assert (type(found.temperature), type(found.max_tokens), workflow.version) == (float, int, "1.0")


def test_a_view_does_not_change() -> None:
    """As the model: frozen."""
    view = view_workflow({"name": "t", "steps": []})
    with pytest.raises(AttributeError, match="immutable"):
        view.name = "x"  # type: ignore[misc]
    assert repr(view).startswith("View(version='1.0'")
    assert view == view_workflow({"name": "t", "steps": []})


def test_a_view_needs_no_pydantic() -> None:
    """That is its whole purpose."""
    code = "import sys, agentloom.model.view as v; v.view_workflow({'name': 't', 'steps': []}); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_fields_with_another_name_have_both() -> None:
    """A field of the model that is called otherwise than its key is read under its name: the schema of a reply."""
    aliases = {
        (name, field.alias)
        for kind in _models(Workflow, set())
        for name, field in kind.model_fields.items()
        if field.alias is not None
    }
    assert aliases == set(NAMES.items())
    step = {
        "id": "a",
        "type": "llm_call",
        "prompt": "x",
        "response_schema": {"type": "json_schema", "schema": {"a": 1}},
    }
    read: Any = view_workflow({"name": "x", "steps": [step]}).steps[0]
    assert read.response_schema.inline == {"a": 1}


def _models(kind: Any, seen: set[Any]) -> set[type[BaseModel]]:
    """Return a model and all models that its fields hold."""
    if kind in seen:
        return set()
    seen.add(kind)
    found: set[type[BaseModel]] = set()
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        found.add(kind)
        for field in kind.model_fields.values():
            found |= _models(field.annotation, seen)
    for part in getattr(kind, "__args__", ()):
        found |= _models(part, seen)
    return found
