"""The OpenAI wire format (`/chat/completions`), spoken by `openai` and by every server behind `generic_openai`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import anyio

from agentloom.errors import ProviderError
from agentloom.providers.base import BaseProvider, Message, OnDelta, Request, Response, Usage
from agentloom.providers.http import DRAIN_SECONDS, MAX_REPLY_BYTES, HttpClient, endpoint
from agentloom.providers.pricing import PriceTable
from agentloom.providers.secret import Secret
from agentloom.providers.sse import Event
from agentloom.providers.table import BY_NAME, ProviderSpec

REASONING_MODELS = ("o1", "o3", "o4", "gpt-5")
"""Models of OpenAI's own that take `max_completion_tokens` and refuse `max_tokens`."""


class OpenAIProvider(BaseProvider):
    """A client of one server that speaks OpenAI's wire format. Connections are opened by the first call."""

    def __init__(
        self,
        base_url: str,
        key: Secret | None = None,
        *,
        name: str = "openai",
        spec: ProviderSpec = BY_NAME["openai"],
        prices: PriceTable | None = None,
        timeout: float | None = None,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.name = name
        self._url = endpoint(base_url, "/chat/completions")
        self._spec = spec
        self._prices = prices or PriceTable()
        self._http = HttpClient(
            name,
            headers={} if key is None else {"Authorization": f"Bearer {key.value}"},
            key=key,
            timeout=spec.timeout if timeout is None else timeout,
            max_bytes=max_bytes,
        )

    def __repr__(self) -> str:
        return f"<OpenAIProvider {self.name}>"

    def serves(self, model: str) -> bool:
        """Tell whether the provider takes a model of that name."""
        return self._spec.serves(model)

    def lacks(self, request: Request) -> str | None:
        """Return what of a request can't be sent."""
        # Left out, it would change the answer unseen.
        for key in (*request.extra, *(["attachments"] if request.attachments else [])):
            return f"`{key}` can't be sent to this provider yet"
        return None

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call; see ``Provider``."""
        payload = self._payload(request)
        started = perf_counter()
        if request.stream:
            reply = await self._stream(payload, request.headers, started, on_delta)
        else:
            reply = self._whole(await self._http.post(self._url, payload, request.headers))
        return Response(
            content="".join(reply.pieces),
            model=reply.model or request.model,
            provider=self.name,
            usage=reply.usage,
            cost_usd=self._prices.cost((request.model, reply.model), reply.usage),
            finish_reason=reply.finish_reason,
            latency_ms=(perf_counter() - started) * 1000,
            time_to_first_token_ms=reply.first_ms,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _payload(self, request: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": request.model, "messages": [_message(turn) for turn in request.messages]}
        if request.temperature is not None:
            payload["temperature"] = request.temperature
        if request.max_tokens is not None:
            own = self._spec.name == "openai" and request.model.lower().startswith(REASONING_MODELS)
            payload["max_completion_tokens" if own else "max_tokens"] = request.max_tokens
        if request.stream:
            payload["stream"] = True
            payload["stream_options"] = {"include_usage": True}
        return payload

    def _whole(self, data: Mapping[str, Any]) -> _Reply:
        self._raise_error_in(data)
        choice = _first_choice(data)
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, Mapping):
            raise self._http.error("the answer has no `choices[0].message`")
        content = message.get("content")
        if content is None:
            content = message.get("refusal") or ""
        if not isinstance(content, str):
            raise self._http.error("the answer's `content` is not a text")
        reply = _Reply(pieces=[content])
        reply.note(data, choice)
        return reply

    async def _stream(
        self, payload: Mapping[str, Any], headers: Mapping[str, str], started: float, on_delta: OnDelta | None
    ) -> _Reply:
        reply = _Reply()
        async with self._http.stream(self._url, payload, headers) as events:
            async for event in events:
                if event.data.strip() == "[DONE]":
                    reply.done = True
                    break
                for piece in self._pieces_of(event, reply):
                    if reply.first_ms is None:
                        reply.first_ms = (perf_counter() - started) * 1000
                    reply.pieces.append(piece)
                    if on_delta is not None:
                        await on_delta(piece)
            with anyio.move_on_after(DRAIN_SECONDS):
                async for _ in events:
                    pass  # read to the end, so that the connection can be used again
        if not reply.done and reply.finish_reason is None:
            raise self._broke_off()
        return reply

    def _pieces_of(self, event: Event, reply: _Reply) -> list[str]:
        """Return the text in one event, and note what else it says."""
        try:
            data = self._http.json_object(event.data)
        except ProviderError:
            if event.complete:
                raise
            raise self._broke_off() from None
        self._raise_error_in(data)
        choice = _first_choice(data)
        if choice is None:
            reply.note(data, {})
            return []
        if isinstance(choice.get("message"), Mapping):
            # The server ignored `stream` and sent the whole answer.
            whole = self._whole(data)
            reply.note(data, choice)
            reply.done = True
            return [piece for piece in whole.pieces if piece]
        reply.note(data, choice)
        delta = choice.get("delta")
        content = delta.get("content") or delta.get("refusal") if isinstance(delta, Mapping) else None
        if content is not None and not isinstance(content, str):
            raise self._http.error("the answer's `delta.content` is not a text")
        return [content] if content else []

    def _raise_error_in(self, data: Mapping[str, Any]) -> None:
        """Raise the error that a server reports inside an answer that began well."""
        error = data.get("error")
        if not error:
            return
        code = error.get("code") if isinstance(error, Mapping) else None
        message = error.get("message") if isinstance(error, Mapping) else error
        text = str(message or "no reason given")
        if type(code) is int and 400 <= code < 600:
            raise self._http.api_error(code, text)
        raise self._http.error(f"the server reports an error: {self._http.shown(text)}")

    def _broke_off(self) -> ProviderError:
        return self._http.error("the answer broke off before its end")


@dataclass(slots=True)
class _Reply:
    """What has arrived of one answer."""

    pieces: list[str] = field(default_factory=list)
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    first_ms: float | None = None
    done: bool = False

    def note(self, data: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        """Take model, finish reason and usage from an answer or a part of one, where they stand in it."""
        model, reason, usage = data.get("model"), choice.get("finish_reason"), data.get("usage")
        if isinstance(model, str) and model:
            self.model = model
        if isinstance(reason, str):
            self.finish_reason = reason
        if isinstance(usage, Mapping):
            self.usage = _usage(usage)


def _first_choice(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def _message(turn: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.name is not None:
        data["name"] = turn.name
    return data


def _usage(data: Mapping[str, Any]) -> Usage:
    details = data.get("completion_tokens_details")
    prompt, completion = _count(data, "prompt_tokens"), _count(data, "completion_tokens")
    reasoning = _count(details, "reasoning_tokens") if isinstance(details, Mapping) else 0
    total = _count(data, "total_tokens")
    if reasoning and total == prompt + completion + reasoning:
        completion += (
            reasoning  # some servers count reasoning apart; here it is a part of the completion, as with OpenAI
        )
    return Usage(prompt, completion, total or prompt + completion, reasoning)


def _count(data: Mapping[str, Any], key: str) -> int:
    value = data.get(key)
    return value if type(value) is int and value > 0 else 0
