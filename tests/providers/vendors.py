"""Anthropic's and Google's clients, and what their tests ask them."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentloom.providers.anthropic import AnthropicProvider
from agentloom.providers.base import Message, Request, Response, ToolSpec
from agentloom.providers.google import GoogleProvider
from agentloom.providers.pricing import Price, PriceTable
from agentloom.providers.secret import Secret
from agentloom.providers.wire import WireProvider
from tests.wire.formats import KEY, Format
from tests.wire.server import ANTHROPIC, GOOGLE, WireServer

PRICES = PriceTable({"claude": Price(1.0, 2.0), "gemini": Price(1.0, 2.0)})
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


class Vendor(NamedTuple):
    """A vendor: its client, the server's format, and a model."""

    name: str
    client: type[Any]
    format: Format
    model: str
    path: str

    def serve(self, *modes: Any, **more: Any) -> WireServer:
        """Return a server that speaks like the vendor."""
        return WireServer(*modes, format=self.format, **more)

    def provider(self, server: WireServer, **more: Any) -> WireProvider:
        """Return a client of a server."""
        found: WireProvider = self.client(**{"base_url": server.url, "key": Secret(KEY), "prices": PRICES, **more})
        return found

    def ask(self, *turns: Message, model: str = "", **more: Any) -> Request:
        """Return a request."""
        return Request(model or self.model, list(turns) or [Message("system", "be brief"), ASKED], **more)

    async def call(
        self, server: WireServer, request: Request | None = None, seen: list[str] | None = None, **more: Any
    ) -> Response:
        """Make one call; ``seen`` takes the pieces of a streamed reply."""
        provider = self.provider(server, **more)

        async def show(text: str) -> None:
            if seen is not None:
                seen.append(text)

        try:
            return await provider.complete(request or self.ask(), show)
        finally:
            await provider.close()


CLAUDE = Vendor("anthropic", AnthropicProvider, ANTHROPIC, "claude-haiku-4-5-20251001", "/v1/messages")
GEMINI = Vendor("google", GoogleProvider, GOOGLE, "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:generateContent")
