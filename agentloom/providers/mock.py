"""The mock provider: recorded or placeholder replies, offline."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Literal

from agentloom.providers.base import BaseProvider, EmbeddingRequest, EmbeddingResponse, OnDelta, Request, Response
from agentloom.providers.recording import Entry, Recording
from agentloom.providers.replies import Replies

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

    A list of turns is played in order and stays at its last; a turn that was recorded for the very request goes first. ``latency_ms`` is
    how long a call takes: exactly (`constant`), on average with a spread of a tenth (`normal`, at least 1 ms, repeatable with ``seed``),
    or not at all in favour of the entry's own (`replay`).

    ``strict`` takes no placeholder, and no reply to another request: both raise ``RecordingMismatchError``. ``by_attempt`` begins each attempt
    of a step at its first turn, as it was recorded; a strict replay does so, too.
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
        strict: bool = False,
        by_attempt: bool = False,
    ) -> None:
        self.name = name
        self._replies = None if recording is None else Replies(recording, by_attempt=strict or by_attempt)
        self._latency_model = latency_model
        self._latency_ms = latency_ms
        self._seed = seed
        self._random: Random | None = None
        self._missed: set[str] = set()
        self._strict = strict

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Return the next recorded turn, or the placeholder (no tokens, no cost) with a warning if there is a recording."""
        entry = self._next(request) or Entry(PLACEHOLDER if request.reply_format is None else PLACEHOLDER_JSON)
        return await self.give(entry, request, on_delta)

    async def give(self, entry: Entry, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Return a recorded turn as the reply to a request."""
        wait = self._wait_ms(entry)
        first: float | None = None
        if request.stream and on_delta is not None:
            first = await self._stream(entry, wait, on_delta)
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
            reasoning=entry.reasoning,
        )

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Return the recorded vectors; without any, vectors that depend on nothing but the texts, at no cost."""
        entry = self._next(request)
        if entry is None or entry.embeddings is None:
            dimensions = request.dimensions or PLACEHOLDER_DIMENSIONS
            vectors = [placeholder_vector(text, dimensions) for text in request.inputs]
            return EmbeddingResponse(vectors, request.model, self.name)
        return await self.give_vectors(entry, request)

    async def give_vectors(self, entry: Entry, request: EmbeddingRequest) -> EmbeddingResponse:
        """Return recorded vectors as the reply to a request."""
        wait = self._wait_ms(entry)
        if wait > 0:
            await _sleep(wait)
        return EmbeddingResponse(
            entry.embeddings or (), entry.model or request.model, self.name, entry.usage, entry.cost_usd, wait
        )

    @property
    def replies(self) -> Replies | None:
        """What it answers from, and how each step was answered."""
        return self._replies

    def _next(self, request: Request | EmbeddingRequest) -> Entry | None:
        """Return the recorded reply to a request; None for the placeholder. Raises ``RecordingMismatchError`` where that is strict."""
        if self._replies is None:
            return None
        entry, _, _, mismatch, _ = self._replies.next(request)
        if mismatch is not None and self._strict:
            raise mismatch.error(self._replies.where)
        if entry is None and request.step_id not in self._missed:
            self._missed.add(request.step_id)
            log.warning(
                "Step '%s' has no response in %s, using the placeholder '%s'",
                request.step_id, self._replies.where, PLACEHOLDER,
            )  # fmt: skip
        return entry

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

    async def _stream(self, entry: Entry, wait_ms: float, on_delta: OnDelta) -> float | None:
        """Deliver the text in the pieces that it came in, or word by word; returns the milliseconds to the first piece.

        The wait is spread evenly, but with `replay` the first piece takes its recorded time.
        """
        chunks = entry.chunks if "".join(entry.chunks) == entry.content else words(entry.content)
        if not chunks:
            if wait_ms > 0:
                await _sleep(wait_ms)
            return None
        first = pause = wait_ms / len(chunks)
        if self._latency_model == "replay" and entry.time_to_first_token_ms is not None:
            first = min(entry.time_to_first_token_ms, wait_ms)
            pause = (wait_ms - first) / max(1, len(chunks) - 1)
        for at, chunk in enumerate(chunks):
            if (gap := pause if at else first) > 0:
                await _sleep(gap)
            await on_delta(chunk)
        return first


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
