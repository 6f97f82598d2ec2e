"""What clients of embeddings have in common: batches, the vectors in a reply, tokens added up."""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from agentloom.providers.base import EmbeddingRequest, Usage

BATCH = 100
"""How many texts are embedded in one call."""


def batches_of(inputs: Sequence[str], size: int = BATCH) -> Iterator[Sequence[str]]:
    """Yield the texts in the batches in which they are sent."""
    for at in range(0, len(inputs), size):
        yield inputs[at : at + size]


def headers_of(request: EmbeddingRequest, batch: int) -> dict[str, str]:
    """Return the headers of a batch (from 0). Each has an idempotency key of its own, since each is another request."""
    key = request.idempotency_key
    return {"Idempotency-Key": f"{key}-{batch}" if batch else key} if key else {}


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
