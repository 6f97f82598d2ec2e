"""What flows between steps, gateway and providers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentloom.records import record

OnDelta = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ``role`` is system, user, assistant or tool."""

    role: str
    content: str
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()


@record(repr=True)
class Request:
    """One model call as a step asks for it. ``extra`` holds provider-neutral additions (tools, response schema …).

    ``step_id`` is for recordings and logs. ``prefer`` names the provider to try first, for a workflow whose `config.provider` isn't
    the one that the gateway was set up for (a subworkflow with a provider of its own); empty leaves the gateway's own order.

    ``idempotency_key`` is the same when the same attempt is made again after a kill: a server that remembers keys bills it once.
    """

    model: str
    messages: Sequence[Message]
    temperature: float | None = None
    max_tokens: int | None = None
    stream: bool = False
    step_id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    prefer: str = ""
    idempotency_key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that go with the call, whatever the provider."""
        return {"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0


@record(repr=True)
class Response:
    """One reply. Times are in milliseconds, cost in US dollars."""

    content: str
    model: str
    provider: str
    usage: Usage = Usage()
    cost_usd: float = 0.0
    finish_reason: str | None = None
    latency_ms: float = 0.0
    time_to_first_token_ms: float | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()


class Provider(Protocol):
    """A client of one model API.

    ``complete`` streams when ``request.stream`` is set, calling ``on_delta`` with each piece of text as it arrives, and returns
    the whole reply either way. Raises ``ProviderError``. ``close`` releases connections.
    """

    name: str

    def serves(self, model: str) -> bool:
        """Tell whether the provider takes a model of that name."""
        ...

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
