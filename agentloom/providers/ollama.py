"""Ollama's own wire format: `/api/chat`, streamed as JSON lines, and `/api/embed`. Its models cost nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import anyio
import httpx

from agentloom.errors import ProviderError
from agentloom.providers.base import (
    BaseProvider,
    EmbeddingRequest,
    EmbeddingResponse,
    Message,
    OnDelta,
    Request,
    Response,
    ToolCall,
    Usage,
)
from agentloom.providers.http import DRAIN_SECONDS, MAX_REPLY_BYTES, HttpClient, endpoint
from agentloom.providers.reading import count_of, read_arguments
from agentloom.providers.schemas import in_words
from agentloom.providers.secret import Secret
from agentloom.providers.sse import Event
from agentloom.providers.table import BY_NAME
from agentloom.providers.thinking import ThinkingFilter
from agentloom.providers.vectors import batches_of, headers_of, plus, vector_of

THINKING = "thinking"
LEVELS_ONLY = "gpt-oss"
"""Models of this name are told how far to think by a level; the others take yes or no."""


class OllamaProvider(BaseProvider):
    """A client of one Ollama server. Connections are opened by the first call; ``key`` is for a server behind a proxy that wants one."""

    embeds = True

    def __init__(
        self,
        base_url: str = "http://localhost:11434",
        key: Secret | None = None,
        *,
        name: str = "ollama",
        timeout: float | None = None,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.name = name
        self._url = endpoint(base_url, "/api/chat")
        self._embed_url = endpoint(base_url, "/api/embed")
        self._http = HttpClient(
            name,
            headers={} if key is None else {"Authorization": f"Bearer {key.value}"},
            key=key,
            timeout=BY_NAME["ollama"].timeout if timeout is None else timeout,
            max_bytes=max_bytes,
        )

    def __repr__(self) -> str:
        return f"<OllamaProvider {self.name}>"

    def lacks(self, request: Request) -> str | None:
        """Return what of a request can't be sent. `tool_choice` is unknown to the API, and not asked for."""
        for attachment in request.attachments:
            if attachment.kind != "image":
                return f"takes no {'PDF' if attachment.kind == 'pdf' else attachment.kind} attachments"
            if not attachment.data:
                return "takes images only as data, not by their address; set `fetch: local`"
        return None

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call; see ``Provider``."""
        payload = self._payload(request)
        started = perf_counter()
        try:
            if request.stream:
                reply = await self._stream(payload, request.headers, started, on_delta)
            else:
                reply = self._whole(await self._http.post(self._url, payload, request.headers))
        except ProviderError as error:
            raise self._with_cure(error, request.model) from error
        before = sum(len(turn.tool_calls) for turn in request.messages)
        calls = tuple(_tool_call(call, before + at) for at, call in enumerate(reply.calls))
        thoughts = "".join([*reply.thoughts, *reply.filter.thoughts])
        return Response(
            content="".join(reply.pieces),
            model=reply.model or request.model,
            provider=self.name,
            usage=reply.usage,
            finish_reason="tool_calls" if calls and reply.finish_reason == "stop" else reply.finish_reason,
            latency_ms=(perf_counter() - started) * 1000,
            time_to_first_token_ms=reply.first_ms,
            tool_calls=calls,
            reasoning=thoughts or None,
            carried={self.name: {THINKING: thoughts}} if thoughts and calls else {},
        )

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Turn texts into vectors, a hundred a call."""
        started = perf_counter()
        vectors: list[Sequence[float]] = []
        usage = Usage()
        for at, texts in enumerate(batches_of(request.inputs)):
            payload: dict[str, Any] = {"model": request.model, "input": list(texts)}
            if request.dimensions is not None:
                payload["dimensions"] = request.dimensions
            try:
                data = await self._http.post(self._embed_url, payload, headers_of(request, at))
                self._raise_error_in(data)
            except ProviderError as error:
                raise self._with_cure(error, request.model) from error
            found = data.get("embeddings")
            read = [vector_of(item) for item in found] if isinstance(found, list) else []
            if len(read) != len(texts) or None in read:
                raise self._http.error(f"the answer has {len(read)} vectors for {len(texts)} texts, or some are none")
            vectors.extend(vector for vector in read if vector is not None)
            count = count_of(data, "prompt_eval_count")
            usage = plus(usage, Usage(count, 0, count))
        took = (perf_counter() - started) * 1000
        return EmbeddingResponse(vectors, request.model, self.name, usage, latency_ms=took)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _payload(self, request: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": request.model,
            "messages": [_message(turn, self.name) for turn in request.messages],
            "stream": request.stream,
        }
        options: dict[str, Any] = {}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        if request.max_tokens is not None:
            options["num_predict"] = request.max_tokens
        if options:
            payload["options"] = options
        if request.tools:
            payload["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in request.tools
            ]
        form = request.reply_format
        if form is not None and request.tools:
            # A form that is enforced leaves a model no way to call a tool.
            told = " ".join(filter(None, [form.description, in_words(form)]))
            payload["messages"].insert(0, {"role": "system", "content": told})
        elif form is not None:
            payload["format"] = "json" if form.type == "json_object" else dict(form.schema)
        if request.reasoning is not None:
            named = request.model.rpartition("/")[2].startswith(LEVELS_ONLY)
            payload["think"] = (request.reasoning.level or "medium") if named else True
        return payload

    def _whole(self, data: Mapping[str, Any]) -> _Reply:
        self._raise_error_in(data)
        reply = _Reply()
        if not isinstance(data.get("message"), Mapping):
            raise self._http.error("the answer has no `message`")
        self._take(data, reply)
        self._end(reply)
        return reply

    async def _stream(
        self, payload: Mapping[str, Any], headers: Mapping[str, str], started: float, on_delta: OnDelta | None
    ) -> _Reply:
        reply = _Reply()

        async def show(text: str) -> None:
            if text:
                if reply.first_ms is None:
                    reply.first_ms = (perf_counter() - started) * 1000
                if on_delta is not None:
                    await on_delta(text)

        async with self._http.stream(self._url, payload, headers, lines=True) as events:
            async for event in events:
                await show(self._take(self._data_of(event), reply))
                if reply.done:
                    break
            with anyio.move_on_after(DRAIN_SECONDS):
                async for _ in events:
                    pass  # read to the end, so that the connection can be used again
        if not reply.done:
            raise self._http.error("the answer broke off before its end")
        await show(self._end(reply))
        return reply

    def _data_of(self, event: Event) -> dict[str, Any]:
        try:
            data = self._http.json_object(event.data)
        except ProviderError:
            if event.complete:
                raise
            raise self._http.error("the answer broke off before its end") from None
        self._raise_error_in(data)
        return data

    def _take(self, data: Mapping[str, Any], reply: _Reply) -> str:
        """Take what an object of the reply holds; return the text of its answer."""
        message = data.get("message")
        text = ""
        if isinstance(message, Mapping):
            content, thought, calls = message.get("content"), message.get(THINKING), message.get("tool_calls")
            if not isinstance(content, str | None):
                raise self._http.error("the answer's `message.content` is not a text")
            if content:
                text = reply.filter.feed(content)
            if isinstance(thought, str) and thought:
                reply.thoughts.append(thought)
            if isinstance(calls, list):
                reply.calls.extend(calls)
        if isinstance(data.get("model"), str) and data["model"]:
            reply.model = data["model"]
        if data.get("done") is True:
            reply.done = True
            reason = data.get("done_reason")
            reply.finish_reason = reason if isinstance(reason, str) else None
            prompt, completion = count_of(data, "prompt_eval_count"), count_of(data, "eval_count")
            reply.usage = Usage(prompt, completion, prompt + completion)
        if text:
            reply.pieces.append(text)
        return text

    def _end(self, reply: _Reply) -> str:
        """Return what was held back of the answer's text."""
        text = reply.filter.finish()
        if text:
            reply.pieces.append(text)
        return text

    def _raise_error_in(self, data: Mapping[str, Any]) -> None:
        """Raise the error that the server reports inside an answer that began well."""
        error = data.get("error")
        if error:
            raise self._http.error(f"the server reports an error: {self._http.shown(str(error))}")

    def _with_cure(self, error: ProviderError, model: str) -> ProviderError:
        """Return an error with what helps, where that is known: a model that isn't there, a server that doesn't run."""
        if error.status_code == 404 and "not found" in str(error):
            text = str(error).removeprefix(f"Provider '{self.name}': ")
            return self._http.error(f"{text}; run `ollama pull {model}`", status=404, permanent=True)
        if isinstance(error.__cause__, httpx.ConnectError):
            text = str(error).removeprefix(f"Provider '{self.name}': ")
            return self._http.error(f"{text}; is the server running? `ollama serve` starts it")
        return error


@dataclass(slots=True)
class _Reply:
    """What has arrived of one reply."""

    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    first_ms: float | None = None
    done: bool = False
    filter: ThinkingFilter = field(default_factory=ThinkingFilter)


def _message(turn: Message, provider: str) -> dict[str, Any]:
    data: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.role == "tool":
        data["tool_name"] = turn.name or ""
    if turn.attachments:
        data["images"] = [b64encode(attachment.data).decode("ascii") for attachment in turn.attachments]
    if turn.tool_calls:
        calls = [{"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in turn.tool_calls]
        data["tool_calls"] = calls
        kept = turn.carried.get(provider)
        if isinstance(kept, Mapping) and isinstance(kept.get(THINKING), str):
            data[THINKING] = kept[THINKING]
    return data


def _tool_call(data: Any, number: int) -> ToolCall:
    """Return a call of a reply; calls have no ids of their own everywhere, so they are numbered."""
    function = data.get("function") if isinstance(data, Mapping) else None
    known = function if isinstance(function, Mapping) else {}
    name, id = known.get("name"), data.get("id") if isinstance(data, Mapping) else None
    arguments, fault = read_arguments(known.get("arguments"))
    given = id if isinstance(id, str) and id else f"call_{number}"
    return ToolCall(given, name if isinstance(name, str) else "", arguments, fault)
