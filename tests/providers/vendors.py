"""The clients of four vendors, and what their tests ask them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from agentloom.errors import ProviderError
from agentloom.providers.anthropic import AnthropicProvider
from agentloom.providers.base import Message, OnDelta, Provider, Request, Response, ToolSpec
from agentloom.providers.google import GoogleProvider
from agentloom.providers.ollama import OllamaProvider
from agentloom.providers.openai import OpenAIProvider
from agentloom.providers.pricing import Price, PriceTable
from agentloom.providers.secret import Secret
from agentloom.providers.wire import WireProvider
from tests.wire.formats import KEY, Format
from tests.wire.server import ANTHROPIC, GOOGLE, OLLAMA, OPENAI, WireServer

PRICES = PriceTable(dict.fromkeys(("claude", "gemini", "gpt-4o-mini"), Price(1.0, 2.0)))
WEATHER = ToolSpec(
    "get_weather",
    "The weather.",
    {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
        "additionalProperties": False,
    },
)
TIME = ToolSpec("get_time", "The time.", {})
ASKED = Message("user", "grüß mich 👋")
SHORT = 0.2
"""Seconds that calls may take where the server is silent on purpose."""
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def only_call(provider: Provider, request: Request, show: OnDelta | None = None) -> Response:
    """Make one call, and close the client."""
    try:
        return await provider.complete(request, show)
    finally:
        await provider.close()


class Vendor(NamedTuple):
    """A vendor: its client, the server's format, and a model."""

    name: str
    client: type[Any]
    format: Format
    model: str
    path: str
    key: str | None = KEY

    def serve(self, *modes: Any, **more: Any) -> WireServer:
        """Return a server that speaks like the vendor."""
        return WireServer(*modes, **{"format": self.format, "key": self.key, **more})

    def provider(self, server: WireServer, **more: Any) -> WireProvider:
        """Return a client of a server."""
        paid = {} if self.key is None else {"key": Secret(self.key), "prices": PRICES}
        found: WireProvider = self.client(**{"base_url": server.url, **paid, **more})
        return found

    def ask(self, *turns: Message, model: str = "", **more: Any) -> Request:
        """Return a request."""
        return Request(model or self.model, list(turns) or [Message("system", "be brief"), ASKED], **more)

    async def call(
        self, server: WireServer, request: Request | None = None, seen: list[str] | None = None, **more: Any
    ) -> Response:
        """Make one call; ``seen`` takes the pieces of a streamed reply."""

        async def show(text: str) -> None:
            if seen is not None:
                seen.append(text)

        return await only_call(self.provider(server, **more), request or self.ask(), show)

    async def failure(self, mode: Any, *, stream: bool, seen: list[str] | None = None, **more: Any) -> ProviderError:
        """Return what a call of a server in that mode fails with: it names the vendor, and never the key."""
        with self.serve(mode) as server, pytest.raises(ProviderError) as caught:
            await self.call(server, self.ask(stream=stream), seen, **more)
        assert caught.value.provider == self.name
        assert str(caught.value).startswith(f"Provider '{self.name}': ")
        assert KEY not in str(caught.value)
        return caught.value

    async def sent(self, *turns: Message, **more: Any) -> dict[str, Any]:
        """Return the body that a request becomes, which the server has accepted."""
        with self.serve() as server:
            await self.call(server, self.ask(*turns, **more))
        return server.requests[0].json


GPT = Vendor("openai", OpenAIProvider, OPENAI, "gpt-4o-mini", "/v1/chat/completions")
LLAMA = Vendor("ollama", OllamaProvider, OLLAMA, "llama3.2", "/api/chat", key=None)
CLAUDE = Vendor("anthropic", AnthropicProvider, ANTHROPIC, "claude-haiku-4-5-20251001", "/v1/messages")
GEMINI = Vendor("google", GoogleProvider, GOOGLE, "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:generateContent")
