"""The mock provider: recorded or placeholder replies, offline."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Literal

from agentloom.providers.base import BaseProvider, EmbeddingRequest, EmbeddingResponse, OnDelta, Request, Response
from agentloom.providers.recording import Entry, Recording

if TYPE_CHECKING:
    from random import Random

LatencyModel = Literal["constant", "normal", "replay"]

PLACEHOLDER = "Mock response"
PLACEHOLDER_JSON = "{}"
"""The placeholder for a request that asks for JSON."""

PLACEHOLDER_DIMENSIONS = 8
"""How long a placeholder vector is if the request doesn't say."""

_NORMAL_SPREAD = 0.1  # standard deviation as a part of the mean
_NORMAL_MINIMUM_MS = 1.0

log = logging.getLogger(__name__)


class MockProvider(BaseProvider):
    """Answers from a recording: by step id, then by the request's hash, then with a placeholder.

    A list of turns is played in order and stays at its last. ``latency_ms`` is how long a call takes: exactly (`constant`), on average
    with a spread of a tenth (`normal`, at least 1 ms, repeatable with ``seed``), or not at all in favour of the entry's own (`replay`).
    """

    embeds = True

    def __init__(
        self,
        recording: Recording | None = None,
        *,
        latency_model: LatencyModel = "constant",
        latency_ms: float = 0.0,
        seed: int | None = None,
        name: str = "mock",
    ) -> None:
        self.name = name
        self._recording = recording
        self._latency_model = latency_model
        self._latency_ms = latency_ms
        self._seed = seed
        self._random: Random | None = None
        self._played: dict[str, int] = {}
        self._missed: set[str] = set()

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Return the next recorded turn, or the placeholder (no tokens, no cost) with a warning if there is a recording."""
        entry = self._next(request)
        wait = self._wait_ms(entry)
        first: float | None = None
        if request.stream and on_delta is not None:
            first = await self._stream(entry.content, wait, on_delta)
        elif wait > 0:
            await _sleep(wait)
        return Response(
            content=entry.content,
            model=entry.model or request.model,
            provider=self.name,
            usage=entry.usage,
            cost_usd=entry.cost_usd,
            finish_reason=entry.finish_reason or ("tool_calls" if entry.tool_calls else "stop"),
            latency_ms=wait,
            time_to_first_token_ms=first,
            tool_calls=entry.tool_calls,
        )

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Return vectors that depend on nothing but the texts, at no cost."""
        vectors = [placeholder_vector(text, request.dimensions or PLACEHOLDER_DIMENSIONS) for text in request.inputs]
        return EmbeddingResponse(vectors, request.model, self.name)

    def _next(self, request: Request) -> Entry:
        found = self._recording.key_of(request) if self._recording is not None else None
        if found is None or self._recording is None:
            self._warn_of_miss(request)
            return Entry(PLACEHOLDER if request.reply_format is None else PLACEHOLDER_JSON)
        key, _ = found
        turns = self._recording.turns[key]
        played = self._played.get(key, 0)
        self._played[key] = played + 1
        return turns[min(played, len(turns) - 1)]

    def _warn_of_miss(self, request: Request) -> None:
        if self._recording is None or request.step_id in self._missed:
            return
        self._missed.add(request.step_id)
        where = self._recording.path or "the recording"
        log.warning("Step '%s' has no response in %s, using the placeholder '%s'", request.step_id, where, PLACEHOLDER)

    def _wait_ms(self, entry: Entry) -> float:
        if self._latency_model == "replay":
            return entry.latency_ms
        if self._latency_model == "normal":
            if self._random is None:
                from random import Random  # only where chance is asked for

                self._random = Random(self._seed)
            drawn = self._random.gauss(self._latency_ms, self._latency_ms * _NORMAL_SPREAD)
            return max(_NORMAL_MINIMUM_MS, drawn)
        return self._latency_ms

    async def _stream(self, content: str, wait_ms: float, on_delta: OnDelta) -> float | None:
        """Deliver the text word by word, the wait spread evenly; returns the milliseconds to the first piece."""
        chunks = words(content)
        pause = wait_ms / max(1, len(chunks))
        for chunk in chunks:
            if pause > 0:
                await _sleep(pause)
            await on_delta(chunk)
        return pause if chunks else None


def placeholder_vector(text: str, dimensions: int) -> list[float]:
    """Return a vector made of the bytes of the text's SHA-256, each within -1 and 1, over and over."""
    from hashlib import sha256

    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return [(digest[at % len(digest)] - 128) / 128 for at in range(dimensions)]


def words(text: str) -> list[str]:
    """Cut a text into pieces of one word each, with the space before it; joined they are the text again."""
    return re.findall(r"\s*\S+|\s+\Z", text)


async def _sleep(milliseconds: float) -> None:
    from anyio import sleep  # only where a latency is asked for

    await sleep(milliseconds / 1000)
