"""The step types, one class each; `subworkflow`, which contains a workflow, stands in `workflow.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from agentloom.model.base import (
    Choices,
    EmbedPath,
    ItemsOrNothing,
    Model,
    ModelName,
    Name,
    Open,
    OrNothing,
    Seconds,
    StatePath,
    StepRef,
    Template,
)
from agentloom.model.config import Retry
from agentloom.model.llm import Attachment, ResponseSchema, Thinking, ToolChoice, ToolDefinition
from agentloom.model.marks import Mark


class StepBase(Model):
    """What every step has."""

    id: Annotated[Name, Mark("defines", "step")] = Field(
        description="The step's name, unique in this file: letters, digits, `_` and `-`.",
        examples=["classify", "fetch"],
    )
    type: str = Field(description="What kind of step it is.")
    depends_on: ItemsOrNothing[StepRef] = Field(
        default=(),
        description="The steps that must finish before this one starts. Only this makes order; templates don't. Default: none.",
        examples=[["fetch"]],
    )
    output: Annotated[StatePath, Mark("state_write")] | None = Field(
        default=None,
        description="The state key that the result goes to; dots write into nested mappings. Default: only `steps.<id>.output`.",
        examples=["summary", "report.summary"],
    )
    retry: Annotated[Retry, OrNothing(Retry)] = Field(
        default_factory=Retry,
        description="How often and how patiently the step is tried again after a transient failure.",
    )
    timeout: Seconds | None = Field(
        default=None,
        description="The time that each attempt may take, in seconds; 0 means no limit. Default: no limit.",
        examples=[60],
    )


class LLMCallStep(StepBase):
    """One model call: a prompt or a conversation, with optional attachments, tools and structured output."""

    type: Literal["llm_call"]
    prompt: Template | None = Field(
        default=None,
        description="What the model is asked; a template such as `{state.ticket}`. Needed unless `conversation` is set.",
        examples=["Summarize: {state.report}", "Is this billing or technical? {state.ticket}"],
    )
    system_prompt: Template | None = Field(
        default=None, description="How the model should behave; a template. Default: none."
    )
    model: ModelName | None = Field(
        default=None,
        description="The model that answers. Default: `config.model`.",
        examples=["gpt-4o-mini", "claude-sonnet-4-5"],
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="How freely the model chooses its words, 0 to 2. Default: the provider's own.",
        examples=[0.2],
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="The most tokens that the reply may have. Default: the provider's own; 4096 for Anthropic.",
        examples=[1024],
    )
    stream: bool | None = Field(
        default=None, description="Whether the reply is streamed as it is written. Default: `config.stream`."
    )
    attachments: ItemsOrNothing[Attachment] = Field(
        default=(), description="Images, PDFs and sounds that go along with the prompt. Default: none."
    )
    thinking: Annotated[Thinking, OrNothing(Thinking)] = Field(
        default_factory=Thinking, description="Whether and how far the model reasons before it answers. Default: off."
    )
    tools: Annotated[ItemsOrNothing[ToolDefinition], Mark("excludes", "response_schema")] = Field(
        default=(), description="Tools that the model may call; not together with `response_schema`. Default: none."
    )
    tool_choice: (
        Annotated[
            Literal["auto", "required", "none"],
            Choices(
                auto="The model decides whether to call a tool.",
                required="The model must call a tool before it answers.",
                none="The model may not call a tool.",
            ),
        ]
        | ToolChoice
    ) = Field(
        default="auto",
        description="Whether the model may or must call tools, or `name: tool` for a certain one. Default: auto.",
    )
    max_tool_iterations: int = Field(
        default=5, ge=1, description="The most rounds of tool calls before the step ends. Default: 5.", examples=[5]
    )
    response_schema: Annotated[ResponseSchema, Mark("excludes", "tools")] | None = Field(
        default=None,
        description="The form that the reply must have; the parsed value goes to `output`. Default: plain text.",
    )
    conversation: Annotated[StatePath, Mark("state_read"), Mark("state_write")] | None = Field(
        default=None,
        description="The state key that holds the conversation so far; the new turns are added there. Default: none.",
        examples=["chat", "support.chat"],
    )
    speaker: str | None = Field(
        default=None,
        description="The name that this step's turns carry in a conversation that several steps share. Default: none.",
    )


class Condition(Model):
    """A way out of a router: taken if its expression is true and none before it was."""

    expression: Annotated[str, Mark("expression")] = Field(
        min_length=1,
        description="What must be true, in Python's notation, over `state` and `steps`.",
        examples=["state.category == 'billing'", "len(state.items) > 2"],
    )
    target: StepRef = Field(min_length=1, description="The step that runs then.")


class RouterStep(StepBase):
    """Chooses which branch runs next, from conditions on the state."""

    type: Literal["router"]
    conditions: ItemsOrNothing[Condition] = Field(
        default=(),
        description="Conditions in order; the first that is true decides. Default: none, then `default` is needed.",
    )
    default: StepRef | None = Field(
        default=None,
        description="The step that runs when no condition is true. Default: none, then the step fails.",
        examples=["fallback", "ask_a_person"],
    )


class ToolStep(StepBase):
    """Runs a tool, built in or your own, with arguments taken from the state."""

    type: Literal["tool"]
    tool_name: Annotated[str, Mark("ref", "tool")] = Field(
        min_length=1,
        description="The tool to run: `http_request`, `shell_command`, `file_read`, `file_write` or one of your own.",
        examples=["http_request", "shell_command", "file_read", "file_write"],
    )
    tool_args: Annotated[Open[Any], Mark("template_deep", "tool_argument")] = Field(
        default_factory=dict,
        description=(
            "The tool's arguments. Texts are templates at every depth; a lone `state.x` or `{state.x}` keeps the value's type. "
            "Default: none."
        ),
    )


class Notify(Model):
    """A webhook that tells somebody that the gate waits."""

    url: str = Field(
        min_length=1,
        description="Where the POST goes; http and https only, and not to internal addresses unless the sandbox allows it.",
        examples=["https://hooks.example.com/approvals", "https://chat.example.com/hook"],
    )
    headers: Open[str] = Field(
        default_factory=dict, description="Headers to send, besides the content type. Default: none."
    )
    body_template: Annotated[str, Mark("template", "webhook")] | None = Field(
        default=None,
        description=(
            "The body to send; a template over `state`, `run_id`, `step_id` and `workflow_name`. "
            "Default: a JSON object with run, step, workflow and status."
        ),
    )
    timeout: Seconds = Field(
        default=30, description="The time that one POST may take, in seconds. Default: 30.", examples=[30]
    )


class ApprovalGateStep(StepBase):
    """Pauses the run until someone approves or rejects it."""

    type: Literal["approval_gate"]
    timeout_seconds: Annotated[int, Mark("duration", "seconds")] | None = Field(
        default=None,
        ge=0,
        description="How long the gate may stay undecided, in seconds; 0 means no limit. Default: no limit.",
        examples=[86400],
    )
    on_timeout: (
        Annotated[
            Literal["approve", "reject"],
            Choices(approve="Counts as approved.", reject="Counts as rejected."),
        ]
        | None
    ) = Field(
        default=None, description="What an undecided gate becomes after `timeout_seconds`. Default: the run fails."
    )
    notify: Notify | None = Field(
        default=None, description="A webhook that tells somebody that the gate waits. Default: nobody is told."
    )


class EmbedStep(StepBase):
    """Turns text from the state into vectors."""

    type: Literal["embed"]
    inputs: EmbedPath = Field(
        description="The state key that holds the text, or the list of texts; dots for nested keys, no subscripts.",
        examples=["documents", "report.chapters"],
    )
    model: Annotated[str, Field(min_length=1), Mark("model", "embedding")] | None = Field(
        default=None,
        description="The embedding model. Default: `config.model`.",
        examples=["text-embedding-3-small", "text-embedding-3-large"],
    )
    dimensions: int | None = Field(
        default=None, ge=1, description="How long each vector is. Default: the model's own.", examples=[256]
    )


class AgentStep(StepBase):
    """Runs a turn of a reusable agent: a system prompt, tools and a loop policy defined once."""

    type: Literal["agent"]
    agent: Annotated[str, Mark("ref", "agent"), Mark("file", "agent")] = Field(
        min_length=1,
        description="The agent that runs: a key of the workflow's `agents`, or the path of an agent file relative to this file.",
        examples=["researcher", "./researcher.agent.yaml"],
    )
    input: Template | None = Field(
        default=None,
        description="What the agent is told, as the user's turn; a template. Needed unless `conversation` is set.",
        examples=["Look into: {state.ticket}", "{state.question}"],
    )
    conversation: Annotated[StatePath, Mark("state_read"), Mark("state_write")] | None = Field(
        default=None,
        description="The state key that keeps the agent's memory between turns. Default: none.",
        examples=["chat", "support.chat"],
    )
