"""The OpenAI wire format (`/chat/completions`, `/embeddings`), spoken by `openai` and by every server behind `generic_openai`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentloom.providers.base import EmbeddingRequest, Request, Usage
from agentloom.providers.http import endpoint
from agentloom.providers.openai_reply import ChatReply, Malformed, first_choice, usage_of
from agentloom.providers.openai_request import lacks, payload_of
from agentloom.providers.vectors import Embedded, VectorProvider, vector_of
from agentloom.providers.wire import Sent


class OpenAIProvider(VectorProvider[ChatReply]):
    """A client of one server that speaks OpenAI's wire format."""

    vendor = "openai"
    reply_type = ChatReply
    end_mark = "[DONE]"

    @property
    def _own(self) -> bool:
        """Whether the models are OpenAI's own, which are known."""
        return self._spec.name == "openai"

    def lacks(self, request: Request) -> str | None:
        """Return what of a request can't be sent."""
        return lacks(request)

    def _sent(self, request: Request) -> Sent:
        payload = payload_of(request, self._own, self.name, self._warn_once)
        return Sent(endpoint(self._base, "/chat/completions"), payload)

    def _embedding_sent(self, request: EmbeddingRequest, texts: Sequence[str]) -> Sent:
        payload: dict[str, Any] = {"model": request.model, "input": list(texts)}
        if request.dimensions is not None:
            payload["dimensions"] = request.dimensions
        if self._own:
            payload["encoding_format"] = "base64"  # a quarter of the digits
        return Sent(endpoint(self._base, "/embeddings"), payload)

    def _embedded(self, data: Mapping[str, Any], texts: Sequence[str]) -> Embedded:
        vectors, model, usage = self._vectors(data, len(texts)), data.get("model"), data.get("usage")
        told = usage_of(usage) if isinstance(usage, Mapping) else Usage()
        return Embedded(vectors, told, model if isinstance(model, str) else "")

    def _vectors(self, data: Mapping[str, Any], wanted: int) -> list[list[float]]:
        """Return the vectors in a reply, in the order of their texts."""
        items = data.get("data")
        if not isinstance(items, list):
            raise self._http.error("the answer has no `data`")
        found: dict[int, list[float]] = {}
        for at, item in enumerate(items):
            known = item if isinstance(item, Mapping) else {}
            vector = vector_of(known.get("embedding"))
            if vector is None:
                raise self._http.error(f"the answer's `data[{at}].embedding` is no vector")
            index = known.get("index")
            found[index if type(index) is int else at] = vector
        if sorted(found) != list(range(wanted)):
            raise self._http.error(f"the answer has {len(found)} vectors for {wanted} texts")
        return [found[at] for at in range(wanted)]

    def _take_whole(self, data: Mapping[str, Any], reply: ChatReply) -> None:
        choice = first_choice(data)
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, Mapping):
            raise self._http.error("the answer has no `choices[0].message`")
        reply.pieces.extend(self._take(reply, message, ""))
        reply.note(data, choice)

    def _take_event(self, data: Mapping[str, Any], reply: ChatReply) -> Iterable[str]:
        choice = first_choice(data) or {}
        reply.note(data, choice)
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(message, Mapping):
            reply.done = True  # the server ignored `stream` and sent the whole answer
            return self._take(reply, message, "")
        return self._take(reply, delta, "delta.") if isinstance(delta, Mapping) else ()

    def _take(self, reply: ChatReply, message: Mapping[str, Any], where: str) -> Iterable[str]:
        try:
            text = reply.take(message, where)
        except Malformed as error:
            raise self._http.error(str(error)) from None
        return (text,) if text else ()

    def _finish(self, reply: ChatReply, request: Request) -> None:
        reply.finish(request.messages)

    def _raise_error_in(self, data: Mapping[str, Any]) -> None:
        error = data.get("error")
        if not error:
            return
        code = error.get("code") if isinstance(error, Mapping) else None
        message = error.get("message") if isinstance(error, Mapping) else error
        text = str(message or "no reason given")
        if type(code) is int and 400 <= code < 600:
            raise self._http.api_error(code, text)
        raise self._http.error(f"the server reports an error: {self._http.shown(text)}")
