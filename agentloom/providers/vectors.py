"""What clients of embeddings have in common: their calls in batches, the vectors in a reply, tokens added up."""

from __future__ import annotations

import sys
from abc import abstractmethod
from array import array
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

from agentloom.providers.base import EmbeddingRequest, EmbeddingResponse, Usage
from agentloom.providers.wire import R, Sent, WireProvider

BATCH = 100
"""How many texts are embedded in one call."""


class Embedded(NamedTuple):
    """What one answer holds of vectors, with the tokens that they took and the name of the model if it is told."""

    vectors: Sequence[Sequence[float]]
    usage: Usage
    model: str = ""


class VectorProvider(WireProvider[R]):
    """A client of a server that turns texts into vectors as well."""

    embeds = True

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Turn texts into vectors, a hundred a call."""
        started = perf_counter()
        vectors: list[Sequence[float]] = []
        usage, model = Usage(), request.model
        for at, texts in enumerate(batches_of(request.inputs)):
            sent = self._embedding_sent(request, texts)
            data = await self._http.post(sent.url, sent.payload, headers_of(request, at))
            self._raise_error_in(data)
            found = self._embedded(data, texts)
            vectors.extend(found.vectors)
            usage, model = plus(usage, found.usage), found.model or model
        return EmbeddingResponse(
            vectors,
            model,
            self.name,
            usage,
            self._prices.cost((request.model, model), usage),
            (perf_counter() - started) * 1000,
        )

    @abstractmethod
    def _embedding_sent(self, request: EmbeddingRequest, texts: Sequence[str]) -> Sent:
        """Return what is sent for one batch of texts."""

    @abstractmethod
    def _embedded(self, data: Mapping[str, Any], texts: Sequence[str]) -> Embedded:
        """Return what an answer holds. Raises ``ProviderError`` unless there is one vector a text."""


def batches_of(inputs: Sequence[str], size: int = BATCH) -> Iterator[Sequence[str]]:
    """Yield the texts in the batches in which they are sent."""
    for at in range(0, len(inputs), size):
        yield inputs[at : at + size]


def headers_of(request: EmbeddingRequest, batch: int) -> dict[str, str]:
    """Return the headers of a batch (from 0). Each has an idempotency key of its own, since each is another request."""
    return {name: f"{key}-{batch}" if batch else key for name, key in request.headers.items()}


def plus(one: Usage, other: Usage) -> Usage:
    """Return the tokens of two calls together."""
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.total_tokens + other.total_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
    )


def vector_of(value: Any) -> list[float] | None:
    """Return a vector as it stands in a reply: a list of finite numbers, or base64 of 32-bit floats; None for anything else."""
    if isinstance(value, str):
        numbers = array("f")
        try:
            numbers.frombytes(b64decode(value, validate=True))
        except ValueError:
            return None
        if sys.byteorder == "big":
            numbers.byteswap()
        value = numbers.tolist()
    if not isinstance(value, list) or not value:
        return None
    if not all(type(item) is float or type(item) is int for item in value):
        return None
    vector = [float(item) for item in value]
    return vector if all(map(isfinite, vector)) else None
