"""Agents: a system prompt, tools and a loop policy defined once, inline under `agents:` or in a file of their own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentloom.model.base import Choices, ItemsOrNothing, Model, ModelName, Money, OrNothing, Prose, Template
from agentloom.model.llm import ResponseSchema, ToolDefinition, TrimPolicy
from agentloom.model.marks import Mark


class AgentTool(Model):
    """Another agent, called as a tool; its cost counts for the caller."""

    agent: Annotated[str, Mark("ref", "agent"), Mark("file", "agent")] = Field(
        min_length=1,
        description="The agent to call: a key of the workflow's `agents`, or the path of an agent file relative to this file.",
        examples=["researcher", "./researcher.agent.yaml"],
    )


class Memory(Model):
    """What an agent remembers between its turns, and how much of it."""

    type: Annotated[
        Literal["conversation"],
        Choices(conversation="The turns so far, kept in the state under the step's `conversation`."),
    ] = Field(default="conversation", description="What kind of memory it is. Default: conversation.")
    token_budget: int | None = Field(
        default=None,
        ge=1,
        description="The most tokens that remembered turns may take; older ones are trimmed. Default: no limit.",
        examples=[4000],
    )
    trim_policy: TrimPolicy = Field(
        default="drop_oldest", description="What happens to turns that no longer fit. Default: drop_oldest."
    )


class LoopPolicy(Model):
    """When an agent's turn ends: how often it may call tools, and what counts as done."""

    max_iterations: int = Field(
        default=10, ge=1, description="The most model calls that one turn may take. Default: 10.", examples=[10]
    )
    exit_condition: Annotated[str, Mark("expression", "agent")] = Field(
        default="no_tool_call",
        description=(
            "When the turn is over: `no_tool_call`, or an expression over `state` and `reply` that becomes true. "
            "Default: no_tool_call."
        ),
        examples=["no_tool_call", "'DONE' in reply"],
    )
    on_max_iterations: Annotated[
        Literal["error", "warn_and_return"],
        Choices(error="The step fails for good.", warn_and_return="The last reply counts, with a warning."),
    ] = Field(default="error", description="What happens when `max_iterations` is reached. Default: error.")


class Constraints(Model):
    """Limits on one turn of an agent; breaking one fails the step."""

    max_cost_usd: Money | None = Field(
        default=None, description="The most that one turn may cost, in US dollars. Default: no limit.", examples=[0.1]
    )
    max_latency_ms: Annotated[float, Mark("duration", "milliseconds")] | None = Field(
        default=None,
        ge=0,
        description=(
            "The time that one turn may take, in milliseconds; 0 means no limit. Running out is a transient failure. "
            "Default: no limit."
        ),
        examples=[30000],
    )
    forbidden_patterns: ItemsOrNothing[Annotated[str, Mark("regex")]] = Field(
        default=(),
        description="Regular expressions that the reply must not match anywhere. Default: none.",
        examples=[["(?i)as an ai"]],
    )


class AgentDefinition(Model):
    """A reusable agent: its system prompt, model, tools, memory and limits."""

    system_prompt: Template = Field(
        min_length=1,
        description="Who the agent is and how it works; a template over the state.",
        examples=[
            "You answer questions about invoices. Look them up before you answer.",
            "You are a patient editor who cuts.",
        ],
    )
    name: str | None = Field(
        default=None,
        min_length=1,
        description="The agent's name. Default: its key under `agents`, or its file's name.",
    )
    description: Prose = Field(
        default="", description="What the agent is for; other agents that may call it read this. Default: empty."
    )
    model: ModelName | None = Field(
        default=None,
        description="The model it runs on. Default: `config.model` of the workflow.",
        examples=["gpt-4o-mini", "claude-sonnet-4-5"],
    )
    tools: ItemsOrNothing[Annotated[str, Mark("ref", "tool")] | ToolDefinition | AgentTool] = Field(
        default=(),
        description="What it may call: names of registered tools, full definitions, or `agent: name` for another agent. Default: nothing.",
        examples=[["http_request"]],
    )
    memory: Memory | None = Field(
        default=None,
        description="What it remembers between turns; the step's `conversation` says where. Default: nothing.",
    )
    loop_policy: Annotated[LoopPolicy, OrNothing(LoopPolicy)] = Field(
        default_factory=LoopPolicy,
        description="When a turn ends. Default: at the first reply without a tool call, after 10 at most.",
    )
    output_schema: ResponseSchema | None = Field(
        default=None, description="The form that the final reply must have. Default: plain text."
    )
    constraints: Annotated[Constraints, OrNothing(Constraints)] = Field(
        default_factory=Constraints, description="Limits on cost, time and content of one turn. Default: none."
    )
