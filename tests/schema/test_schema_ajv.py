"""The published schemas in ajv: strict mode as SchemaStore runs it, and the same verdicts as the model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentloom.model.agent import AgentDefinition
from agentloom.model.schema_files import schema_text
from agentloom.model.workflow import Workflow
from tests.model import documents

CHECK = Path(__file__).parent / "node" / "check.cjs"
MODELS = {"workflow": Workflow, "agent": AgentDefinition}


def judge(node: str, judged: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return ajv's verdicts on (kind, document) pairs, and its errors on the last; compiling in strict mode is part of it."""
    question = {"schemas": {kind: json.loads(schema_text(kind)) for kind in ("workflow", "agent")}, "documents": judged}
    done = subprocess.run([node, str(CHECK)], input=json.dumps(question), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_strict_ajv_agrees_with_the_model(node: str) -> None:
    """Both schemas compile without a complaint, and 3,000 documents get the model's verdict."""
    judged = [(kind, documents.nearly(kind, seed)) for seed in range(1500) for kind in ("workflow", "agent")]
    verdicts = judge(node, judged)["verdicts"]
    assert len(verdicts) == 3000
    for (kind, document), verdict in zip(judged, verdicts, strict=True):
        try:
            MODELS[kind].model_validate(document)
        except ValidationError:
            assert not verdict, (kind, document)
        else:
            assert verdict, (kind, document)


def test_ajv_blames_the_right_key(node: str) -> None:
    """Keys of another type: one error each, and the `if` that led there; nothing of the other six types."""
    step = {"id": "r", "type": "router", "tool_choice": "auto", "thinking": {}, "response_schema": {}, "default": "b"}
    answer = judge(node, [("workflow", {"name": "t", "steps": [step]})])
    assert answer["verdicts"] == [False]
    extra = [e["params"]["additionalProperty"] for e in answer["errors"] if e["keyword"] == "additionalProperties"]
    assert extra == ["tool_choice", "thinking", "response_schema"]
    assert {e["keyword"] for e in answer["errors"]} == {"additionalProperties", "if"}
    assert {e["instancePath"] for e in answer["errors"]} == {"/steps/0"}


def test_integral_floats_are_integers_to_json(node: str) -> None:
    """The one edge that JSON can write down: `5.0` is an integer to every JSON Schema validator, not to the model."""
    document = {"name": "t", "steps": [{"id": "a", "type": "llm_call", "prompt": "x", "max_tokens": 5.0}]}
    assert judge(node, [("workflow", document)])["verdicts"] == [True]
