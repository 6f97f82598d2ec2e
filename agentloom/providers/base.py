"""What flows between steps, gateway and providers: one neutral form of everything that the providers' wire formats can say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from agentloom.errors import ProviderError
from agentloom.records import record

OnDelta = Callable[[str], Awaitable[None]]

AttachmentKind = Literal["image", "pdf", "audio"]
ToolMode = Literal["auto", "required", "none", "tool"]


class ToolSpec(NamedTuple):
    """A tool as a model sees it; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolChoice(NamedTuple):
    """Whether the model may call tools, has to, must not, or has to call the one that ``name`` names (``mode`` is then `tool`)."""

    mode: ToolMode = "auto"
    name: str = ""


class ToolCall(NamedTuple):
    """A call that a model asks for. ``fault`` says why its arguments could not be read; they are empty then."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    fault: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the call as JSON, in the keys of recordings and conversations."""
        return {"id": self.id, "name": self.name, "arguments": dict(self.arguments)}


class ReplyFormat(NamedTuple):
    """The form that a reply must have: any JSON object, or JSON that fits ``schema``. ``strict`` asks the provider to hold to it."""

    type: Literal["json_object", "json_schema"]
    schema: Mapping[str, Any]
    name: str = ""
    description: str = ""
    strict: bool = True


class Reasoning(NamedTuple):
    """How far a model is asked to reason before it answers; None leaves it to the provider."""

    budget_tokens: int | None = None
    level: Literal["low", "medium", "high"] | None = None


class Attachment(NamedTuple):
    """Something that goes along with a turn: its bytes, or the ``url`` from which the provider is to fetch it.

    ``origin`` is the address that the bytes were downloaded from. A replay downloads nothing: it has their SHA-256 as ``digest``.
    """

    kind: AttachmentKind
    media_type: str
    data: bytes = b""
    url: str = ""
    origin: str = ""
    digest: str = ""

    def __repr__(self) -> str:
        """Return it without its content, which may be megabytes and nobody's business."""
        return f"Attachment({self.kind}, {self.media_type}, {self.url or f'{len(self.data)} bytes'})"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ``role`` is system, user, assistant or tool.

    A tool's turn has ``tool_call_id`` and the tool's ``name``, and ``is_error`` when it reports a failure. ``carried`` is what only the
    provider that gave the turn understands, and wants back with it (signed reasoning), by the provider's name.
    """

    role: str
    content: str
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    is_error: bool = False
    carried: Mapping[str, Any] = field(default_factory=dict)


class Keyed:
    """What is asked of a provider under an idempotency key: the same when the same attempt is made again, empty for none."""

    __slots__ = ()

    idempotency_key: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers that go with the call, whatever the provider."""
        return {"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {}


@record(repr=True)
class Request(Keyed):
    """One model call as a step asks for it.

    ``step_id`` is for recordings and logs. ``prefer`` names the provider to try first, for a workflow whose `config.provider` isn't
    the one that the gateway was set up for (a subworkflow with a provider of its own); empty leaves the gateway's own order.

    ``asked_model`` is the name that the step used, where ``model`` is what the provider calls it. ``reasoning`` is None when none is asked for. ``idempotency_key`` is the same when the same attempt is made again after a kill: a
    server that remembers keys bills it once.
    """

    model: str
    messages: Sequence[Message]
    temperature: float | None = None
    max_tokens: int | None = None
    stream: bool = False
    step_id: str = ""
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice = ToolChoice()
    reply_format: ReplyFormat | None = None
    reasoning: Reasoning | None = None
    prefer: str = ""
    idempotency_key: str = ""
    asked_model: str = ""

    @property
    def extra(self) -> dict[str, Any]:
        """What is asked for besides text, as JSON: tools, the choice among them, the reply's form, reasoning. Empty for a plain call."""
        found: dict[str, Any] = {}
        if self.tools:
            found["tools"] = [tool._asdict() for tool in self.tools]
            if self.tool_choice != ToolChoice():
                found["tool_choice"] = self.tool_choice._asdict()
        if self.reply_format is not None:
            found["response_schema"] = self.reply_format._asdict()
        if self.reasoning is not None:
            found["thinking"] = self.reasoning._asdict()
        return found

    @property
    def attachments(self) -> list[Attachment]:
        """Everything that goes along with its turns."""
        return [attachment for message in self.messages for attachment in message.attachments]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. Reasoning tokens are a part of ``completion_tokens``."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0


@record(repr=True)
class Response:
    """One reply. Times are in milliseconds, cost in US dollars.

    ``finish_reason`` is `stop`, `length`, `tool_calls` or `content_filter`, whoever answered; another word of a vendor stays as it is.
    ``reasoning`` is what the model let see of it; ``carried`` belongs into the ``Message`` of this turn if the conversation goes on.
    """

    content: str
    model: str
    provider: str
    usage: Usage = Usage()
    cost_usd: float = 0.0
    finish_reason: str | None = None
    latency_ms: float = 0.0
    time_to_first_token_ms: float | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    carried: Mapping[str, Any] = field(default_factory=dict)


@record(repr=True)
class EmbeddingRequest(Keyed):
    """Texts to be turned into vectors; ``dimensions`` None leaves their length to the model. The rest is as in ``Request``."""

    model: str
    inputs: Sequence[str]
    dimensions: int | None = None
    step_id: str = ""
    prefer: str = ""
    idempotency_key: str = ""
    asked_model: str = ""


@record(repr=True)
class EmbeddingResponse:
    """One vector a text, in their order. Cost in US dollars, latency in milliseconds."""

    vectors: Sequence[Sequence[float]]
    model: str
    provider: str
    usage: Usage = Usage()
    cost_usd: float = 0.0
    latency_ms: float = 0.0


class Provider(Protocol):
    """A client of one model API.

    ``complete`` streams when ``request.stream`` is set, calling ``on_delta`` with each piece of text as it arrives, and returns
    the whole reply either way. Raises ``ProviderError``. ``close`` releases connections. A provider with ``embeds`` turns texts into
    vectors as well.
    """

    name: str
    embeds: bool

    def serves(self, model: str) -> bool:
        """Tell whether the provider takes a model of that name."""
        ...

    def lacks(self, request: Request) -> str | None:
        """Return what of a request the API can't take whatever the model (`takes no PDF attachments`); None when it takes all."""
        ...

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call."""
        ...

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Turn texts into vectors, in as many calls as the API needs. Called only if ``embeds`` is true."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class BaseProvider:
    """What providers have in common: one that takes everything that it is asked, has no embeddings and holds no connections.

    A provider of your own derives from it, sets ``name`` and defines ``complete``.
    """

    name: str = ""
    embeds: bool = False

    def serves(self, model: str) -> bool:
        """Return true: it takes every model."""
        return True

    def lacks(self, request: Request) -> str | None:
        """Return None: it takes every request."""
        return None

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Refuse: it has no embeddings."""
        raise ProviderError(f"Provider '{self.name}' has no embeddings", provider=self.name, permanent=True)

    async def close(self) -> None:
        """Do nothing: there are no connections."""
