"""Model and published schema say the same, on thousands of documents; where they can't, the edge is listed with its reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft7Validator
from pydantic import BaseModel, ValidationError

from agentloom.model.agent import AgentDefinition
from agentloom.model.catalogue import catalogue
from agentloom.model.schema_files import schema_text
from agentloom.model.workflow import Workflow
from tests.model import documents

MODELS: dict[str, type[BaseModel]] = {"workflow": Workflow, "agent": AgentDefinition}
SCHEMAS = {kind: Draft7Validator(json.loads(schema_text(kind))) for kind in ("workflow", "agent")}
COUNT = {"workflow": 2500, "agent": 1000}


def model_takes(kind: str, document: Any) -> bool:
    """Tell whether the pydantic model accepts a document."""
    try:
        MODELS[kind].model_validate(document)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("kind", ["workflow", "agent"])
def test_valid_documents_are_valid(kind: str) -> None:
    """The generator's own idea of validity, taken from the catalogue, is the model's."""
    make: Callable[[int], Any] = getattr(documents, kind)
    for seed in range(400):
        document = make(seed)
        assert model_takes(kind, document), (seed, document)
        assert SCHEMAS[kind].is_valid(document), (seed, document)


@pytest.mark.parametrize("kind", ["workflow", "agent"])
def test_model_and_schema_agree(kind: str) -> None:
    """The same verdict on every nearly valid document, and a fair share of both verdicts."""
    verdicts: Counter[bool] = Counter()
    for seed in range(COUNT[kind]):
        document = documents.nearly(kind, seed)
        verdict = model_takes(kind, document)
        assert SCHEMAS[kind].is_valid(document) is verdict, (seed, document)
        verdicts[verdict] += 1
    assert min(verdicts.values()) > COUNT[kind] / 5


@settings(max_examples=200, deadline=None)
@given(documents.documents())
def test_they_agree_on_whatever_hypothesis_finds(document: Any) -> None:
    """The same over seeds that nobody chose."""
    assert SCHEMAS["workflow"].is_valid(document) is model_takes("workflow", document)


def test_the_documents_are_varied() -> None:
    """Every block and field is used, and every kind of mistake that the model can find is made."""
    faults: set[str] = set()
    used: set[tuple[str, str]] = set()
    for seed in range(1200):
        for kind in ("workflow", "agent"):
            try:
                MODELS[kind].model_validate(documents.nearly(kind, seed))
            except ValidationError as error:
                faults |= {fault["type"] for fault in error.errors()}
            used |= set(_fields_of(kind, getattr(documents, kind)(seed)))
    every = {(block.name, name) for block in catalogue().blocks.values() for name in block.fields}
    assert every - used == set()
    assert faults >= {
        "extra_forbidden",
        "missing",
        "string_type",
        "int_type",
        "float_type",
        "bool_type",
        "dict_type",
        "tuple_type",
        "model_type",
        "literal_error",
        "string_too_short",
        "string_pattern_mismatch",
        "greater_than_equal",
        "less_than_equal",
        "too_short",
        "union_tag_invalid",
        "union_tag_not_found",
    }


def _fields_of(block: str, value: Any) -> Iterator[tuple[str, str]]:
    box = {"document": value}
    shape = documents.Shape(types=("object",), block=block)
    for site in documents.sites(catalogue(), box, "document", shape):
        if site.block is not None:
            yield from ((site.block.name, key) for key in site.container[site.key])


def document(**keys: Any) -> dict[str, Any]:
    """Return a small workflow with some top-level keys and step keys (`step_…`) added."""
    step = {"id": "a", "type": "llm_call", "prompt": "hi"}
    step |= {name.removeprefix("step_"): value for name, value in keys.items() if name.startswith("step_")}
    top = {name: value for name, value in keys.items() if not name.startswith("step_")}
    return {"name": "t", "steps": [step], **top}


# What differs, who takes it, and why. The check of a file sides with the model in each of them.
EDGES = [
    # JSON Schema has one kind of number: 5.0 is an integer there. In a file `5.0` is a number with a fraction.
    ("integral float", document(step_max_tokens=5.0), {"schema"}),
    # NaN and infinity don't exist in JSON; the validator compares them as Python does.
    ("infinity", document(config={"timeout": float("inf")}), {"schema"}),
    ("NaN", document(step_temperature=float("nan")), {"schema"}),
    # A whole number that no float can hold is no duration and no price.
    ("number beyond a float", document(config={"timeout": 10**400}), {"schema"}),
    # JSON's keys are texts; a YAML mapping may have others.
    ("number as state key", document(state={1: "x"}), {"schema"}),
    # Python's `$` matches before a final line break; Rust's, JavaScript's and `re.fullmatch` don't.
    ("line break at the end of an id", document(step_id="a\n"), {"schema"}),
    # A lone surrogate is no character, and matches no pattern of Rust's.
    ("lone surrogate in an id", document(step_id="\ud800"), {"schema"}),
]


@pytest.mark.parametrize(("edge", "takers"), [e[1:] for e in EDGES], ids=[e[0] for e in EDGES])
def test_edges(edge: Any, takers: set[str]) -> None:
    """The listed disagreements are real; when one goes, its line goes."""
    found = {"schema"} if SCHEMAS["workflow"].is_valid(edge) else set()
    found |= {"model"} if model_takes("workflow", edge) else set()
    assert found == takers
