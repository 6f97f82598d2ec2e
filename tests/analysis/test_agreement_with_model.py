"""The check of a file and the typed model give the same verdict on shape, over thousands of documents written as text.

The analysis goes by the catalogue and never imports pydantic; this is what keeps the two from drifting apart. What only a rule can
see (AL109, the graph, templates, files) doesn't count here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Severity
from agentloom.errors import WorkflowError
from agentloom.model.agent import AgentDefinition
from agentloom.model.schema_files import schema_text
from agentloom.model.workflow import Workflow, build_workflow
from agentloom.text import Source
from tests.analysis.writing import block_text, flow_text, json_text
from tests.model.documents import agent, nearly, workflow

WRITERS: tuple[Callable[[Any], str], ...] = (block_text, flow_text, json_text)
CHUNKS, SIZE = 12, 300
"""3,600 documents, 300 a test."""


def check(text: str, kind: str = "workflow") -> WorkflowDocument:
    """Return the document of a text that is no file."""
    return analyze(Source("untitled:x", text), Context(), None, "agent" if kind == "agent" else "workflow")


def shape_errors(document: WorkflowDocument) -> list[str]:
    """Return the errors of text and shape; AL109 is about several fields at once, which the model doesn't judge."""
    return [
        f"{d.code} {d.message}"
        for d in document.diagnostics
        if d.severity is Severity.ERROR and d.code < "AL2" and d.code != "AL109"
    ]


def model_of(data: Any) -> Workflow | None:
    """Return the typed workflow, or None when the model refuses."""
    try:
        return build_workflow(data) if isinstance(data, dict) else None
    except WorkflowError:
        return None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_analysis_model_and_schema_agree(chunk: int) -> None:
    """An error of shape exactly where the model refuses; what both take is the same workflow, read from the text."""
    schema = Draft7Validator(json.loads(schema_text("workflow")))
    verdicts: Counter[bool] = Counter()
    for seed in range(chunk * SIZE, (chunk + 1) * SIZE):
        data = nearly("workflow", seed) if seed % 4 else workflow(seed)
        text = WRITERS[seed % 3](data)
        document = check(text)
        errors = shape_errors(document)
        model = model_of(data)

        assert (not errors) is (model is not None), f"seed {seed}: {errors}\n{text}"
        if seed % 3 == 0:  # slow; the other two are compared document by document in `tests/model`
            assert (not errors) is schema.is_valid(data), f"seed {seed}: {errors}\n{text}"
        if model is not None:
            assert build_workflow(dict(document.data)) == model, f"seed {seed} reads differently\n{text}"
        verdicts[model is not None] += 1
    assert min(verdicts.values()) > SIZE / 5


def test_agent_files_agree_too() -> None:
    """The same for agent files."""
    schema = Draft7Validator(json.loads(schema_text("agent")))
    for seed in range(400):
        data = nearly("agent", seed) if seed % 4 else agent(seed)
        text = WRITERS[seed % 3](data)
        errors = shape_errors(check(text, "agent"))
        try:
            taken = isinstance(AgentDefinition.model_validate(data), AgentDefinition)
        except ValueError:
            taken = False
        assert (not errors) is taken is schema.is_valid(data), f"seed {seed}: {errors}\n{text}"


STEP = "{id: a, type: llm_call, prompt: Hi%s}"


def one_step(keys: str = "", top: str = "") -> str:
    """Return a workflow of one step, with more keys in it or beside it."""
    return f"name: t\n{top}steps:\n  - {STEP % (', ' + keys if keys else '')}\n"


# Where the two can't agree, or only by a special rule: the text, whether the analysis takes it, whether the model takes what another
# YAML reader (ruamel.yaml, YAML 1.2) makes of it, and why.
EDGES: tuple[tuple[str, str, bool, bool], ...] = (
    ("a whole number with a fraction of zero is none", one_step("max_tokens: 5.0"), False, False),
    ("true is no number", one_step("max_tokens: true"), False, False),
    ("not a number", one_step("temperature: .nan"), False, False),
    ("infinity", one_step("timeout: .inf"), False, False),
    ("a whole number that no float holds", one_step(f"timeout: 1{'0' * 400}"), False, False),
    ("a whole number as a number", one_step("timeout: 5"), True, True),
    ("the largest number of retries", one_step("retry: {max_retries: 100000000000000000000}"), True, True),
    ("a version as number", one_step(top="version: 1.10\n"), True, True),
    ("a version as truth value", one_step(top="version: true\n"), False, False),
    # Keys that are no texts: here a key is its text, as in JSON; the model sees what YAML says and refuses.
    ("a number as state key", one_step(top="state: {1: x}\n"), True, False),
    ("null as state key", one_step(top="state: {~: x}\n"), True, False),
    ("a number as a key of the file", one_step(top="1: x\n"), False, False),
    ("a list as state key", one_step(top="state: {? [a] : x}\n"), False, False),
    # The pattern of names is the coarse half (see `agentloom.model.base`); the rule says the rest.
    ("two leading underscores", one_step("output: __x"), False, True),
    ("a blank that is no ASCII", one_step('output: "a\u2003b"'), False, True),
    ("an index beyond 18 digits", one_step(f"output: 'a[{'1' * 19}]'"), False, True),
    ("a line break at the end of a name", one_step('output: "a\\n"'), False, False),
    # Repeated keys have one value in the model's data, whichever that is.
    ("a repeated key", one_step("prompt: Hello"), False, True),
)


@pytest.mark.parametrize(("text", "analysis", "model"), [e[1:] for e in EDGES], ids=[e[0] for e in EDGES])
def test_edges(text: str, analysis: bool, model: bool) -> None:
    """Each listed edge is real; the analysis never takes what `document.workflow` then refuses."""
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True
    document = check(text)

    assert (not shape_errors(document)) is analysis, shape_errors(document)
    try:
        plain = yaml.load(text)
    except TypeError:  # a key that Python can't hash
        plain = None
    assert (model_of(plain) is not None) is model
    if document.ok:
        assert document.workflow.name == "t"


@pytest.mark.parametrize("depth", [3, 20, 99, 101, 250, 5_000])
def test_deep_nesting(depth: int) -> None:
    """Values within values and workflows within workflows: taken, or refused with an error on one line; never a crash."""
    values = one_step(top=f"state: {{x: {'[' * depth}{']' * depth}}}\n")
    inner = "{name: i, steps: [{id: a, type: subworkflow, workflow_inline: "
    innermost = "{name: z, steps: [{id: a, type: llm_call, prompt: Hi}]}"
    nested = inner * (depth // 4) + innermost + "}]}" * (depth // 4) + "\n"
    for text in (values, nested):
        document = check(text)
        if document.ok:
            assert document.workflow.steps
        else:
            assert depth > 20
            assert any("deep" in d.message for d in document.diagnostics), document.diagnostics
