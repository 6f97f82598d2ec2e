"""The workflow file as a whole, the step that contains one, and the way from plain data to the typed model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from agentloom.errors import WorkflowError
from agentloom.model.agent import AgentDefinition
from agentloom.model.base import Items, Model, NumberAsText, Open, OrNothing, Prose
from agentloom.model.config import Config, StateKey
from agentloom.model.marks import Mark
from agentloom.model.steps import (
    AgentStep,
    ApprovalGateStep,
    EmbedStep,
    LLMCallStep,
    RouterStep,
    StepBase,
    ToolStep,
)


class SubworkflowStep(StepBase):
    """Runs another workflow as a single step."""

    type: Literal["subworkflow"]
    workflow_path: Annotated[str, Mark("file", "workflow"), Mark("excludes", "workflow_inline")] | None = Field(
        default=None,
        min_length=1,
        description="The workflow file to run, relative to this file. Either this or `workflow_inline`.",
        examples=["./child.loom.yaml", "../shared/translate.loom.yaml"],
    )
    workflow_inline: Annotated[Workflow, Mark("excludes", "workflow_path")] | None = Field(
        default=None, description="The workflow to run, written in place. Either this or `workflow_path`."
    )
    isolated_state: bool = Field(
        default=False,
        description="Whether the child sees only its own `state` and `input`, not a copy of the parent's state. Default: false.",
    )
    input: Annotated[Open[Any], Mark("template_deep", "child_state")] = Field(
        default_factory=dict,
        description="State keys handed to the child. Texts are templates; a lone `{state.x}` keeps the value's type. Default: none.",
    )
    return_keys: Items[Annotated[str, Mark("ref", "child_state")]] | None = Field(
        default=None,
        description="The child's state keys that go to `output`. Default: its whole final state.",
        examples=[["summary"]],
    )


Step: TypeAlias = Annotated[
    LLMCallStep | RouterStep | ToolStep | SubworkflowStep | ApprovalGateStep | EmbedStep | AgentStep,
    Field(discriminator="type"),
]

# The order in which editors offer the types.
STEP_CLASSES: tuple[type[StepBase], ...] = (
    LLMCallStep,
    RouterStep,
    ToolStep,
    SubworkflowStep,
    ApprovalGateStep,
    EmbedStep,
    AgentStep,
)


class Workflow(Model):
    """A workflow: steps that form a graph, the state they share, and how the run behaves."""

    name: str = Field(min_length=1, description="The workflow's name.", examples=["support-triage", "weekly-report"])
    version: Annotated[str, NumberAsText()] = Field(
        default="1.0", description="The workflow's own version, for its readers. Default: 1.0.", examples=["1.0"]
    )
    description: Prose = Field(default="", description="What the workflow is for. Default: empty.")
    config: Annotated[Config, OrNothing(Config)] = Field(
        default_factory=Config, description="What every step inherits, and how the run as a whole behaves."
    )
    state: Annotated[Open[Any], Mark("defines", "state")] = Field(
        default_factory=dict,
        description="The initial state: values that templates read as `{state.key}`. `--state` overrides them. Default: empty.",
    )
    state_schema: Annotated[Open[Annotated[StateKey, OrNothing(StateKey)]], Mark("ref", "state")] = Field(
        default_factory=dict,
        description="What holds for state keys, by name, dotted path or glob: for now, which are redacted. Default: nothing.",
        examples=[{"api_key": {"redact": True}}],
    )
    agents: Annotated[Open[Annotated[str, Mark("file", "agent")] | AgentDefinition], Mark("defines", "agent")] = Field(
        default_factory=dict,
        description="Agents by name: a definition, or the path of an agent file relative to this file. Default: none.",
    )
    steps: Items[Step] = Field(
        min_length=1, description="The graph: steps, ordered by their `depends_on`. At least one."
    )


def build_workflow(data: Mapping[str, Any]) -> Workflow:
    """Return the typed workflow of plain data that the shape check has accepted.

    Raises ``WorkflowError`` naming the first places that don't fit. The analysis reports such faults first and in its own
    words; this is the backstop that keeps a disagreement between the two from going unnoticed.
    """
    try:
        return Workflow.model_validate(dict(data))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        # A tuple that loses its only item to a fault counts as too short besides.
        inner = {fault["loc"][:length] for fault in faults for length in range(1, len(fault["loc"]))}
        faults = [fault for fault in faults if fault["type"] != "too_short" or fault["loc"] not in inner]
        places = dict.fromkeys(f"`{place(fault['loc'])}` ({fault['type'].replace('_', ' ')})" for fault in faults)
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        raise WorkflowError(f"the workflow doesn't fit its model at {', '.join(list(places)[:5])}{more}") from error


def place(loc: tuple[int | str, ...]) -> str:
    """Return a pydantic error location as a path of the file: `steps.0.prompt`, without the tag of the step's type."""
    parts: list[str] = []
    for at, part in enumerate(loc):
        tag = at >= 2 and isinstance(loc[at - 1], int) and loc[at - 2] == "steps"
        if not tag:
            parts.append(str(part))
    return ".".join(parts) or "."
