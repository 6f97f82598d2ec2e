"""Ollama's own wire format: `/api/chat`, streamed as JSON lines, and `/api/embed`. Its models cost nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from agentloom.errors import ProviderError
from agentloom.providers.base import (
    EmbeddingRequest,
    EmbeddingResponse,
    Message,
    OnDelta,
    Request,
    Response,
    ToolCall,
    Usage,
)
from agentloom.providers.http import endpoint
from agentloom.providers.reading import count_of, read_arguments
from agentloom.providers.schemas import in_words
from agentloom.providers.thinking import ThinkingFilter
from agentloom.providers.vectors import Embedded, VectorProvider, vector_of
from agentloom.providers.wire import Reply, Sent

THINKING = "thinking"
LEVELS_ONLY = "gpt-oss"
"""Models of this name are told how far to think by a level; the others take yes or no."""


@dataclass(slots=True)
class OllamaReply(Reply):
    """What has arrived of one reply: its calls as they came, and its text, which may begin with reasoning."""

    asked: list[Any] = field(default_factory=list)
    filter: ThinkingFilter = field(default_factory=ThinkingFilter)


class OllamaProvider(VectorProvider[OllamaReply]):
    """A client of one Ollama server; ``key`` is for a server behind a proxy that wants one."""

    vendor = "ollama"
    reply_type = OllamaReply
    lines = True

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
        with self._curing(request.model):
            return await super().complete(request, on_delta)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Turn texts into vectors; see ``Provider``."""
        with self._curing(request.model):
            return await super().embed(request)

    @contextmanager
    def _curing(self, model: str) -> Iterator[None]:
        """Add to an error what helps, where that is known: a model that isn't there, a server that doesn't run."""
        try:
            yield
        except ProviderError as error:
            text = str(error).removeprefix(f"Provider '{self.name}': ")
            if error.status_code == 404 and "not found" in text:
                text = f"{text}; run `ollama pull {model}`"
                raise self._http.error(text, status=404, permanent=True) from error
            if isinstance(error.__cause__, httpx.ConnectError):
                raise self._http.error(f"{text}; is the server running? `ollama serve` starts it") from error
            raise

    def _embedding_sent(self, request: EmbeddingRequest, texts: Sequence[str]) -> Sent:
        payload: dict[str, Any] = {"model": request.model, "input": list(texts)}
        if request.dimensions is not None:
            payload["dimensions"] = request.dimensions
        return Sent(endpoint(self._base, "/api/embed"), payload)

    def _embedded(self, data: Mapping[str, Any], texts: Sequence[str]) -> Embedded:
        found = data.get("embeddings")
        read = [vector_of(item) for item in found] if isinstance(found, list) else []
        vectors = [vector for vector in read if vector is not None]
        if len(vectors) != len(texts) or len(read) != len(texts):
            raise self._http.error(f"the answer has {len(read)} vectors for {len(texts)} texts, or some are none")
        count = count_of(data, "prompt_eval_count")
        return Embedded(vectors, Usage(count, 0, count))

    def _sent(self, request: Request) -> Sent:
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
        return Sent(endpoint(self._base, "/api/chat"), payload)

    def _take_whole(self, data: Mapping[str, Any], reply: OllamaReply) -> None:
        if not isinstance(data.get("message"), Mapping):
            raise self._http.error("the answer has no `message`")
        reply.pieces.extend(self._take_event(data, reply))
        reply.pieces.append(reply.filter.finish())  # where nothing says that it is done

    def _take_event(self, data: Mapping[str, Any], reply: OllamaReply) -> Iterable[str]:
        message = data.get("message")
        pieces: list[str] = []
        if isinstance(message, Mapping):
            content, thought, calls = message.get("content"), message.get(THINKING), message.get("tool_calls")
            if not isinstance(content, str | None):
                raise self._http.error("the answer's `message.content` is not a text")
            if content:
                pieces.append(reply.filter.feed(content))
            if isinstance(thought, str) and thought:
                reply.reasoning.append(thought)
            if isinstance(calls, list):
                reply.asked.extend(calls)
        if isinstance(data.get("model"), str) and data["model"]:
            reply.model = data["model"]
        if data.get("done") is True:
            reply.done = True
            reason = data.get("done_reason")
            reply.finish_reason = reason if isinstance(reason, str) else None
            prompt, completion = count_of(data, "prompt_eval_count"), count_of(data, "eval_count")
            reply.usage = Usage(prompt, completion, prompt + completion)
            pieces.append(reply.filter.finish())  # what was held back, as it might have been a mark
        return [piece for piece in pieces if piece]

    def _finish(self, reply: OllamaReply, request: Request) -> None:
        """Read the calls, the thinking, and what must come back with them."""
        before = sum(len(turn.tool_calls) for turn in request.messages)
        reply.calls.extend(_tool_call(call, before + at) for at, call in enumerate(reply.asked))
        reply.reasoning.extend(reply.filter.thoughts)
        if reply.calls:
            if reply.finish_reason == "stop":
                reply.finish_reason = "tool_calls"
            if reply.reasoning:
                reply.carried = {THINKING: "".join(reply.reasoning)}

    def _raise_error_in(self, data: Mapping[str, Any]) -> None:
        error = data.get("error")
        if error:
            raise self._http.error(f"the server reports an error: {self._http.shown(str(error))}")


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
