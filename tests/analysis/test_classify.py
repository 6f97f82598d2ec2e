"""Which files are ours, and which get silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.analysis.classify import classify
from agentloom.analysis.settings import Settings

STEP = "name: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: hi\n"

COMPOSE = "services:\n  web:\n    image: nginx\n    ports: ['80:80']\n"
ACTIONS = "name: CI\non: push\njobs:\n  build:\n    runs-on: x\n    steps:\n      - id: a\n        uses: b\n        with: {type: c}\n"
GITLAB = "stages: [a]\njob:\n  script: [x]\n"
KUBERNETES = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: NodePort}\n"
CLOUD_BUILD = "steps:\n  - id: a\n    name: gcr.io/x\n    args: [b]\n"
AZURE = "trigger: [main]\nsteps:\n  - script: echo\n    name: x\n"
OPENAPI = "openapi: 3.0.0\ninfo: {title: t}\npaths: {}\n"


@pytest.mark.parametrize(
    "text",
    [COMPOSE, ACTIONS, GITLAB, KUBERNETES, CLOUD_BUILD, AZURE, OPENAPI, "", "# hi\n", "- a\n- b\n", "steps: 3\n"],
)
def test_foreign_files_get_silence(text: str) -> None:
    """Compose, CI, Kubernetes and plain YAML files are none of ours."""
    assert classify(text, Path("x.yaml"), Settings()) is None


@pytest.mark.parametrize(
    "text",
    [
        STEP,
        STEP.replace("\n", "\r\n"),
        "\ufeff" + STEP,
        "steps:\n- type: router\n  id: a\n",
        "steps:\n  - {id: a, type: llm_call}\n",
        "steps: [{id: a, type: llm_call}]\nname: x\n",
        'steps:\n  - "id": a\n    "type": nonsense\n',
        "steps:\n  # first\n  - depends_on: []\n\n    id: a\n    prompt: |\n      text\n    type: tool\n",
        '{"name": "w", "steps": [{"id": "a", "type": "llm_call"}]}',
        "# agentloom\nname: w\n",
        "# yaml-language-server: $schema=../schema/workflow.schema.json\nname: w\n",
    ],
)
def test_workflows_are_told_by_their_looks(text: str) -> None:
    """A list of steps with `id` and `type` makes a workflow, and so does a line that says so."""
    assert classify(text, Path("x.yaml"), Settings()) == "workflow"


def test_agents_are_told_by_their_looks() -> None:
    """`name` and `system_prompt` at the top, no `steps`."""
    assert classify("name: a\nsystem_prompt: be kind\n", Path("x.yaml"), Settings()) == "agent"
    assert classify("# yaml-language-server: $schema=./agent.schema.json\n", Path("x.yaml"), Settings()) == "agent"


@pytest.mark.parametrize("name", ["a.loom.yaml", "a.loom.yml", "a.agentloom.yaml", "A.AgentLoom.YML"])
def test_names_tell_workflows(name: str) -> None:
    """The name is enough, even for an empty file."""
    assert classify("", Path(name), Settings()) == "workflow"
    assert classify("", Path("a.agent.yaml"), Settings()) == "agent"


def test_settings_and_language_tell(tmp_path: Path) -> None:
    """A glob in the settings, or the editor's language id."""
    settings = Settings(workflows=("flows/*.yaml",), path=tmp_path / "agentloom.toml")
    assert classify("x: 1\n", tmp_path / "flows" / "a.yaml", settings) == "workflow"
    assert classify("x: 1\n", tmp_path / "a.yaml", settings) is None
    assert classify("x: 1\n", None, Settings(), "agentloom") == "workflow"
    assert classify("x: 1\n", None, Settings(), "yaml") is None
