"""Blocks inside model calls: attachments, thinking, tools and structured replies. Steps and agents share them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentloom.model.base import Choices, JsonSchema, Model, Prose
from agentloom.model.marks import Mark


class Attachment(Model):
    """An image, a PDF or a sound that goes along with the prompt; at most 20 MB."""

    source: Annotated[str, Mark("template"), Mark("file", "attachment")] = Field(
        description="Where it is: a URL, a path relative to this file, a `data:` URL or plain base64. A template.",
        examples=["./invoice.png", "https://example.com/invoice.png"],
    )
    type: Annotated[
        Literal["image", "pdf", "audio"],
        Choices(
            image="A picture; every provider takes it.",
            pdf="A PDF document; Anthropic and Google take it.",
            audio="A sound; OpenAI (WAV and MP3) and Google take it.",
        ),
    ] = Field(default="image", description="What kind of content it is. Default: image.")
    media_type: str | None = Field(
        default=None,
        description="Its MIME type. Default: guessed from the source.",
        examples=["image/png", "application/pdf"],
    )
    fetch: Annotated[
        Literal["local", "provider"],
        Choices(
            local="AgentLoom downloads the URL and sends the content.",
            provider="The provider downloads the URL; OpenAI and Anthropic can.",
        ),
    ] = Field(default="local", description="Who downloads a URL. Default: local.")


class Thinking(Model):
    """Whether and how far the model reasons before it answers."""

    enabled: bool = Field(default=False, description="Whether the model is asked to reason first. Default: false.")
    budget_tokens: int | None = Field(
        default=None,
        ge=-1,
        description="The most tokens that reasoning may take; -1 lets Google's models choose. Default: the provider's own.",
        examples=[2048],
    )
    level: (
        Annotated[
            Literal["low", "medium", "high"],
            Choices(
                low="Little reasoning: quick and cheap.",
                medium="A middle course.",
                high="Much reasoning: slow and dear.",
            ),
        ]
        | None
    ) = Field(
        default=None, description="How hard the model reasons, for models that take a level. Default: the model's own."
    )
    capture_reasoning: bool = Field(
        default=True,
        description="Whether the step's result keeps the reasoning, if the provider returns it. Default: true.",
    )


class ToolDefinition(Model):
    """A tool that the model may call: a registered one, described for the model."""

    name: Annotated[str, Mark("ref", "tool")] = Field(
        min_length=1, description="The name of the registered tool that runs.", examples=["http_request", "file_read"]
    )
    description: Prose | None = Field(
        default=None, description="What the tool does, for the model. Default: the registered tool's own description."
    )
    parameters: JsonSchema | None = Field(
        default=None,
        description="The JSON Schema of the tool's arguments. Default: the registered tool's own.",
        examples=[{"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}],
    )


class ToolChoice(Model):
    """Makes the model call one certain tool."""

    name: Annotated[str, Mark("ref", "tool")] = Field(
        min_length=1, description="The tool that the model must call, one of the step's `tools`."
    )


class ResponseSchema(Model):
    """The form that the reply must have; a reply that doesn't fit is asked for again."""

    type: Annotated[
        Literal["json_object", "json_schema", "pydantic"],
        Choices(
            json_object="Any JSON object.",
            json_schema="JSON that fits the JSON Schema under `schema`.",
            pydantic="JSON that fits the pydantic class that `model` names.",
        ),
    ] = Field(default="json_object", description="What the reply is checked against. Default: json_object.")
    model: Annotated[str, Mark("python")] | None = Field(
        default=None,
        description="The pydantic class, as `package.module:Class` or `package.module.Class`; with `type: pydantic` only.",
        examples=["schemas.ticket:Ticket", "schemas.ticket.Ticket"],
    )
    inline: JsonSchema | None = Field(
        default=None,
        alias="schema",
        description="The JSON Schema of the reply; with `type: json_schema` only.",
        examples=[
            {
                "type": "object",
                "properties": {"label": {"enum": ["billing", "technical"]}},
                "required": ["label"],
                "additionalProperties": False,
            }
        ],
    )
    name: str | None = Field(
        default=None,
        description="The schema's name, sent to providers that want one. Default: made from the step's id.",
    )
    description: Prose | None = Field(
        default=None, description="What the reply is for, sent to providers that take it. Default: none."
    )
    strict: bool = Field(
        default=True,
        description="Whether the provider is asked to hold to the schema strictly, where it can. Default: true.",
    )


TrimPolicy = Annotated[
    Literal["drop_oldest", "drop_pairs", "summarize_oldest"],
    Choices(
        drop_oldest="Drops the oldest turns first.",
        drop_pairs="Drops the oldest user turn together with its answer.",
        summarize_oldest="Replaces the oldest turns by a summary, which costs one more call.",
    ),
]
