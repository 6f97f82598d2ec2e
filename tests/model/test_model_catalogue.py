"""The catalogue: what comes out of the model, without pydantic, and what the marks in it do and don't do."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentloom.language.paths import PathFault, is_name, parse_output_path
from agentloom.model import export
from agentloom.model.catalogue import Catalogue, Shape, catalogue, parse
from agentloom.model.json_schema import document_schema
from agentloom.model.marks import Mark
from agentloom.model.schema_files import schema_text
from agentloom.model.snippets import STEP_SNIPPETS
from agentloom.model.steps import EmbedStep
from agentloom.model.walk import catalogue_data
from agentloom.model.workflow import STEP_CLASSES, Workflow

# Where a mark has to end up: block, field, and the way to the shape that carries it.
MARKS = [
    ("router_step", "depends_on", "item", Mark("ref", "step")),
    ("router_step", "default", "", Mark("ref", "step")),
    ("condition", "target", "", Mark("ref", "step")),
    ("condition", "expression", "", Mark("expression")),
    ("llm_call_step", "id", "", Mark("defines", "step")),
    ("llm_call_step", "prompt", "", Mark("template")),
    ("llm_call_step", "output", "", Mark("state_write")),
    ("llm_call_step", "conversation", "", Mark("state_read")),
    ("llm_call_step", "conversation", "", Mark("state_write")),
    ("llm_call_step", "timeout", "", Mark("duration", "seconds")),
    ("tool_step", "tool_name", "", Mark("ref", "tool")),
    ("tool_step", "tool_args", "", Mark("template_deep", "tool_argument")),
    ("subworkflow_step", "workflow_path", "", Mark("file", "workflow")),
    ("subworkflow_step", "input", "", Mark("template_deep", "child_state")),
    ("embed_step", "inputs", "", Mark("state_read")),
    ("agent_step", "agent", "", Mark("ref", "agent")),
    ("agent_step", "input", "", Mark("template")),
    ("notify", "body_template", "", Mark("template", "webhook")),
    ("tool_definition", "parameters", "", Mark("json_schema")),
    ("response_schema", "model", "", Mark("python")),
    ("attachment", "source", "", Mark("file", "attachment")),
    ("config", "provider", "", Mark("ref", "provider")),
    ("config", "model", "", Mark("model")),
    ("config", "budget_usd", "", Mark("money")),
    ("config", "latency_ms", "", Mark("duration", "milliseconds")),
    ("config", "responses_file", "", Mark("file", "recording")),
    ("constraints", "forbidden_patterns", "item", Mark("regex")),
    ("loop_policy", "exit_condition", "", Mark("expression", "agent")),
    ("workflow", "agents", "", Mark("defines", "agent")),
    ("workflow", "state", "", Mark("defines", "state")),
    ("workflow", "description", "", Mark("text")),
]


@pytest.fixture(scope="module")
def known() -> Catalogue:
    """The catalogue from its file."""
    return catalogue()


@pytest.mark.parametrize(("block", "field", "way", "mark"), MARKS, ids=lambda value: str(value))
def test_marks_survive(known: Catalogue, block: str, field: str, way: str, mark: Mark) -> None:
    """A mark on a field, or on the items of its list, stands in the catalogue."""
    shape = known.blocks[block].fields[field].shape
    for part in filter(None, way.split(".")):
        shape = getattr(shape, part)
    assert mark in shape.marks
    assert shape.mark(mark.kind) is not None


def test_marks_leave_the_schema_alone() -> None:
    """The published schema is the same without any mark."""
    bare: Any = copy.deepcopy(catalogue_data())

    def strip(value: Any) -> None:
        if isinstance(value, dict):
            value.pop("marks", None)
            for inner in value.values():
                strip(inner)
        elif isinstance(value, list):
            for inner in value:
                strip(inner)

    strip(bare)
    assert bare != catalogue_data()
    for top, schema in (("workflow", export.workflow_schema()), ("agent", export.agent_schema())):
        assert document_schema(parse(bare), top, schema["$id"]) == schema


def test_the_catalogue_knows_every_step_type(known: Catalogue) -> None:
    """Seven types, each with its own block and the common keys; each with a snippet."""
    assert len(known.steps) == len(STEP_CLASSES) == 7
    assert list(STEP_SNIPPETS) == list(known.steps)
    for tag in known.steps:
        block = known.step(tag)
        assert block is not None
        assert block.tag == tag
        assert block.description
        assert set(known.common) <= set(block.fields)
        assert set(STEP_SNIPPETS[tag]) <= set(block.fields)
        assert block.fields["type"].shape.enum == {tag: block.description}
    assert known.step("routr") is None
    assert known.common == ("id", "type", "depends_on", "output", "retry", "timeout")


def test_defaults_tell_null_from_none(known: Catalogue) -> None:
    """Required fields have no default; others have one, null included."""
    for block in known.blocks.values():
        for field in block.fields.values():
            assert field.has_default is not field.required, (block.name, field.name)
            if field.has_default and field.default is None:
                assert "null" in field.shape.types, (block.name, field.name)
    fields = known.blocks["retry"].fields
    assert fields["retryable_status_codes"].default == [429, 500, 502, 503, 504]
    assert fields["max_retries"].default is None
    assert fields["max_retries"].shape.minimum == 0


@pytest.mark.parametrize(
    ("kind", "keys", "block"),
    [
        ("string", (), None),
        ("object", ("name",), "tool_definition"),
        ("object", ("agent",), "agent_tool"),
        ("object", ("agent", "name"), "agent_tool"),
        ("object", (), "tool_definition"),
    ],
)
def test_alternatives(known: Catalogue, kind: str, keys: tuple[str, ...], block: str | None) -> None:
    """A value is measured by the alternative that its type and keys point to."""
    item = known.blocks["agent"].fields["tools"].shape.item
    assert item is not None
    found = known.alternative(item, kind, keys)
    assert found is not None
    assert found.block == block


def test_alternatives_of_other_types(known: Catalogue) -> None:
    """No alternative takes a number; a shape without alternatives is its own."""
    item = known.blocks["agent"].fields["tools"].shape.item
    assert item is not None
    assert known.alternative(item, "integer") is None
    plain = Shape(types=("string",))
    assert known.alternative(plain, "integer") is plain


LOAD = """
import sys
from agentloom.model.catalogue import catalogue
from agentloom.model.schema_files import schema_text
from agentloom.model.snippets import STEP_SNIPPETS
assert catalogue().blocks and schema_text("workflow") and schema_text("agent") and STEP_SNIPPETS
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"pydantic", "pydantic_core", "jsonschema", "ruamel"}))
"""


def test_reading_it_needs_no_pydantic(root: Path) -> None:
    """The check of a file must not pay for an import that costs more than the check."""
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_schemas_are_found_and_whole() -> None:
    """The published text is what the generator writes."""
    assert schema_text("workflow") == export.generated()[export.SCHEMA_FOLDER / "workflow.schema.json"]
    assert schema_text("agent") == export.generated()[export.SCHEMA_FOLDER / "agent.schema.json"]


def test_stale_files_are_named_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` names what is stale and changes nothing; without it the files are written."""
    monkeypatch.setattr(export, "SCHEMA_FOLDER", tmp_path / "schema")
    monkeypatch.setattr(export, "CATALOGUE_FILE", tmp_path / "catalogue.json")
    assert export.main(["--check"]) == 1
    assert capsys.readouterr().err.count("is out of date") == 3
    assert not list(tmp_path.iterdir())
    assert export.main([]) == 0
    assert export.stale() == []
    assert export.main(["--check"]) == 0
    (tmp_path / "catalogue.json").write_bytes((tmp_path / "catalogue.json").read_bytes() + b" ")
    assert export.stale() == [tmp_path / "catalogue.json"]


@given(st.text(min_size=1, max_size=8))
def test_what_templates_read_back_is_a_name(text: str) -> None:
    """The pattern of ids and outputs refuses nothing that the template language takes, and takes nothing more of ASCII."""
    document = {"name": "t", "steps": [{"id": text, "type": "llm_call", "output": text}]}
    wrong = set()
    try:
        Workflow.model_validate(document)
    except ValidationError as error:
        wrong = {fault["loc"][-1] for fault in error.errors()}
    path = not isinstance(parse_output_path(text), PathFault)
    if is_name(text):
        assert "id" not in wrong
    if path:
        assert "output" not in wrong
    if text.isascii() and not text.startswith("__"):
        assert ("id" not in wrong) is is_name(text)
        assert ("output" not in wrong) is path or "__" in text or re_long_index(text)


def re_long_index(text: str) -> bool:
    """Tell whether a subscript has more digits than the language takes; the pattern doesn't count them."""
    return any(len(part) > 18 for part in text.replace("]", "[").split("["))


def test_paths_of_embed_inputs() -> None:
    """`inputs` takes a dotted path, with or without braces, and no subscripts."""
    for text in ("a", "a.b", "{a}", "{a.b}"):
        EmbedStep.model_validate({"id": "e", "type": "embed", "inputs": text})
    for text in ("{a", "a}", "a[0]", "a..b", ".a", "", "{}", "{a}{b}", "a b", "{a:x}"):
        with pytest.raises(ValidationError):
            EmbedStep.model_validate({"id": "e", "type": "embed", "inputs": text})
