"""The OpenAI wire format (`/chat/completions`, `/embeddings`), spoken by `openai` and by every server behind `generic_openai`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import anyio

from agentloom.errors import ProviderError
from agentloom.providers.base import (
    BaseProvider,
    EmbeddingRequest,
    EmbeddingResponse,
    OnDelta,
    Request,
    Response,
    Usage,
)
from agentloom.providers.http import DRAIN_SECONDS, MAX_REPLY_BYTES, HttpClient, endpoint
from agentloom.providers.openai_reply import Malformed, Reply, first_choice, usage_of
from agentloom.providers.openai_request import lacks, payload_of
from agentloom.providers.pricing import PriceTable
from agentloom.providers.secret import Secret
from agentloom.providers.sse import Event
from agentloom.providers.table import BY_NAME, ProviderSpec
from agentloom.providers.vectors import batches_of, headers_of, plus, vector_of

log = logging.getLogger(__name__)


class OpenAIProvider(BaseProvider):
    """A client of one server that speaks OpenAI's wire format. Connections are opened by the first call."""

    embeds = True

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
        self._embeddings_url = endpoint(base_url, "/embeddings")
        self._spec = spec
        self._own = spec.name == "openai"
        self._prices = prices or PriceTable()
        self._warned: set[str] = set()
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
        return lacks(request)

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call; see ``Provider``."""
        payload = payload_of(request, self._own, self.name, self._warn_once)
        started = perf_counter()
        if request.stream:
            reply = await self._stream(payload, request.headers, started, on_delta)
        else:
            reply = self._whole(await self._http.post(self._url, payload, request.headers))
        carried = reply.carried
        return Response(
            content="".join(reply.pieces),
            model=reply.model or request.model,
            provider=self.name,
            usage=reply.usage,
            cost_usd=self._prices.cost((request.model, reply.model), reply.usage),
            finish_reason=reply.finish_reason,
            latency_ms=(perf_counter() - started) * 1000,
            time_to_first_token_ms=reply.first_ms,
            tool_calls=reply.tool_calls(sum(len(turn.tool_calls) for turn in request.messages)),
            reasoning=reply.reasoning,
            carried={self.name: carried} if carried else {},
        )

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Turn texts into vectors, a hundred a call."""
        started = perf_counter()
        vectors: list[Sequence[float]] = []
        usage, model = Usage(), request.model
        for at, texts in enumerate(batches_of(request.inputs)):
            payload: dict[str, Any] = {"model": request.model, "input": list(texts)}
            if request.dimensions is not None:
                payload["dimensions"] = request.dimensions
            if self._own:
                payload["encoding_format"] = "base64"  # a quarter of the digits
            data = await self._http.post(self._embeddings_url, payload, headers_of(request, at))
            self._raise_error_in(data)
            vectors.extend(self._vectors(data, len(texts)))
            model = data["model"] if isinstance(data.get("model"), str) and data["model"] else model
            told = data.get("usage")
            usage = plus(usage, usage_of(told)) if isinstance(told, Mapping) else usage
        return EmbeddingResponse(
            vectors,
            model,
            self.name,
            usage,
            self._prices.cost((request.model, model), usage),
            (perf_counter() - started) * 1000,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _warn_once(self, message: str) -> None:
        """Log what a model doesn't take of a request, once for each way of saying it."""
        if message not in self._warned:
            self._warned.add(message)
            log.warning("Provider '%s': %s", self.name, message)

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

    def _whole(self, data: Mapping[str, Any]) -> Reply:
        self._raise_error_in(data)
        choice = first_choice(data)
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, Mapping):
            raise self._http.error("the answer has no `choices[0].message`")
        reply = Reply()
        self._take(reply, message, "")
        reply.note(data, choice)
        return reply

    async def _stream(
        self, payload: Mapping[str, Any], headers: Mapping[str, str], started: float, on_delta: OnDelta | None
    ) -> Reply:
        reply = Reply()
        async with self._http.stream(self._url, payload, headers) as events:
            try:
                async for event in events:
                    if event.data.strip() == "[DONE]":
                        reply.done = True
                        break
                    text = self._text_of(event, reply)
                    if text:
                        if reply.first_ms is None:
                            reply.first_ms = (perf_counter() - started) * 1000
                        if on_delta is not None:
                            await on_delta(text)
            except ProviderError as error:
                if reply.finish_reason is None or error.permanent or error.status_code is not None:
                    raise
                return reply  # it is whole; that its connection isn't ended properly costs it nothing
            with anyio.move_on_after(DRAIN_SECONDS):
                async for _ in events:
                    pass  # read to the end, so that the connection can be used again
        if not reply.done and reply.finish_reason is None:
            raise self._broke_off()
        return reply

    def _text_of(self, event: Event, reply: Reply) -> str:
        """Take what one event says; return its text."""
        try:
            data = self._http.json_object(event.data)
        except ProviderError:
            if event.complete:
                raise
            raise self._broke_off() from None
        self._raise_error_in(data)
        choice = first_choice(data) or {}
        reply.note(data, choice)
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(message, Mapping):
            # The server ignored `stream` and sent the whole answer.
            reply.done = True
            return self._take(reply, message, "")
        return self._take(reply, delta, "delta.") if isinstance(delta, Mapping) else ""

    def _take(self, reply: Reply, message: Mapping[str, Any], where: str) -> str:
        try:
            return reply.take(message, where)
        except Malformed as error:
            raise self._http.error(str(error)) from None

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
