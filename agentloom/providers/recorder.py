"""Recording a run: every reply that providers give, and if asked what tools give, written down as it comes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import anyio
import anyio.to_thread

from agentloom.files import in_plain_words
from agentloom.providers.asked import asked
from agentloom.providers.base import (
    EmbeddingRequest,
    EmbeddingResponse,
    OnDelta,
    Provider,
    Request,
    Response,
    Usage,
)
from agentloom.providers.hashes import download_key, request_hash, without_secret_name
from agentloom.providers.recording_file import News, RecordingFile
from agentloom.providers.surroundings import AttemptId, current_attempt, current_secrets
from agentloom.providers.table import HIDDEN_KEY, SHORTEST_KEY

log = logging.getLogger(__name__)


class Recorder:
    """Writes the replies of one run into a file, after each of them.

    A step's turns are those of its last attempt: when a step is tried again, what was recorded of the attempt before is replaced.
    ``kept`` are the keys that were written, ``changed`` tells whether anything was.

    ``hidden`` are texts that are never written: the keys of providers. ``tools`` says that calls of tools are recorded, too.
    """

    def __init__(self, file: RecordingFile, *, tools: bool = False, hidden: tuple[str, ...] = ()) -> None:
        self.file = file
        self.with_tools = tools
        self._hidden = tuple(text for text in hidden if len(text) >= SHORTEST_KEY)
        self._turns: dict[str, list[Mapping[str, Any]]] = {}
        self._calls: dict[str, list[Mapping[str, Any]]] = {}
        self._attempts: dict[str, AttemptId | None] = {}
        self._failed = False
        self.kept: set[str] = set()
        self.changed = False
        self._turn = anyio.Lock()
        self._wanted = self._written = 0

    async def keep(self, key: str, entry: Mapping[str, Any]) -> None:
        """Write down a turn of a key, which is a step's id with its path, or a request's hash."""
        self._begin(key, key, self._turns)
        self._turns[key].append(self.without_keys(entry))
        self.kept.add(key)
        self.file.set(key, self._turns[key])
        if not self.with_tools:
            self.file.forget_tools(key)
        await self._flush()

    def carry(self, key: str, entry: Mapping[str, Any]) -> None:
        """Take over a turn that a recording holds already: it is written again if another turn of the key has to be."""
        self._begin(key, key, self._turns)
        self._turns[key].append(entry)

    def carry_tool(self, step: str, call: Mapping[str, Any]) -> None:
        """Take over a call of a tool that a recording holds already, as ``carry`` does."""
        self._begin(f"{step} tools", step, self._calls)
        self._calls[step].append(call)

    async def keep_tool(self, step: str, call: Mapping[str, Any]) -> None:
        """Write down what a tool gave to a step."""
        self._begin(f"{step} tools", step, self._calls)
        self._calls[step].append(self.without_keys(call))
        self.kept.add(step)
        self.file.set_tools(step, self._calls[step])
        await self._flush()

    def close(self) -> None:
        """Have everything written to the disk. A file that can't be written is warned about: the run itself is done."""
        self._write(self.file.news(), sync=True)

    def without_keys(self, value: Any) -> Any:
        """Return plain data without the keys of providers in its texts."""
        if isinstance(value, str):
            for text in self._hidden:
                value = value.replace(text, HIDDEN_KEY)
            return value
        if isinstance(value, Mapping):
            return {key: self.without_keys(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.without_keys(item) for item in value]
        return value

    def _begin(self, name: str, key: str, kept: dict[str, list[Mapping[str, Any]]]) -> None:
        """Begin a key anew with the run, and with each attempt of its step."""
        attempt = current_attempt()
        if key not in kept or self._attempts.get(name) != attempt:
            kept[key] = []
        self._attempts[name] = attempt

    async def _flush(self) -> None:
        """Write what is there by now, in a thread. Whoever waits meanwhile is served by the next write, all together.

        Called off or not: what was paid for is written.
        """
        self._wanted += 1
        mine = self._wanted
        with anyio.CancelScope(shield=True):
            async with self._turn:
                if self._written < mine:
                    upto, news = self._wanted, self.file.news()
                    await anyio.to_thread.run_sync(self._write, news)
                    self._written = upto

    def _write(self, news: News, sync: bool = False) -> None:
        self.changed = True
        try:
            self.file.write_down(news, sync)
        except OSError as error:
            if not self._failed:
                log.warning("Recording '%s' can't be written any more: %s", self.file.path, in_plain_words(error))
            self._failed = True


class RecordingProvider:
    """A provider whose replies are recorded; otherwise it is the one inside."""

    def __init__(self, provider: Provider, recorder: Recorder) -> None:
        self.name = provider.name
        self.embeds = provider.embeds
        self.provider = provider
        self.recorder = recorder

    def serves(self, model: str) -> bool:
        """Tell what the provider inside says."""
        return self.provider.serves(model)

    def lacks(self, request: Request) -> str | None:
        """Tell what the provider inside says."""
        return self.provider.lacks(request)

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make the call, and write down its reply. A call that fails leaves nothing in the recording."""
        began = anyio.current_time()
        chunks: list[str] = []

        async def take(text: str) -> None:
            chunks.append(text)
            if on_delta is not None:
                await on_delta(text)

        response = await self.provider.complete(request, take if on_delta is not None else None)
        took = response.latency_ms or (anyio.current_time() - began) * 1000
        entry = _entry(request, response, chunks, took)
        await self.recorder.keep(key_for(request, entry), entry)
        return response

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Make the call, and write down its vectors, unless they are secret: no hash could stand for them in a replay."""
        began = anyio.current_time()
        response = await self.provider.embed(request)
        vectors = [list(vector) for vector in response.vectors]
        if current_secrets().result(request.step_id, vectors) != vectors:
            log.warning("Step '%s' writes its vectors to a secret key: they are not recorded", request.step_id)
            return response
        entry: dict[str, Any] = {
            "embeddings": vectors,
            "model": response.model,
            "provider": response.provider,
            "usage": _usage(response.usage),
            "cost_usd": response.cost_usd,
            "latency_ms": round(response.latency_ms or (anyio.current_time() - began) * 1000, 3),
            "request_hash": request_hash(request),
            "asked": asked(request),
        }
        await self.recorder.keep(key_for(request, entry), entry)
        return response

    async def close(self) -> None:
        """Close the provider inside."""
        await self.provider.close()


def _entry(request: Request, response: Response, chunks: list[str], took: float) -> dict[str, Any]:
    """Return a reply as a recording holds it, without secrets."""
    secrets = current_secrets()
    content = secrets.reply(request.step_id, response.content, request.reply_format is not None)
    content = secrets.text(content)
    entry: dict[str, Any] = {
        "content": content,
        "model": response.model,
        "provider": response.provider,
        "usage": _usage(response.usage),
        "cost_usd": response.cost_usd,
        "latency_ms": round(took, 3),
        "finish_reason": response.finish_reason,
    }
    if response.time_to_first_token_ms is not None:
        entry["time_to_first_token_ms"] = round(response.time_to_first_token_ms, 3)
    if response.reasoning is not None:
        entry["reasoning"] = secrets.text(secrets.reply(request.step_id, response.reasoning))
    if response.tool_calls:
        entry["tool_calls"] = [
            {
                **call.to_dict(),
                "name": without_secret_name(call.name, request, secrets),
                "arguments": secrets.value(dict(call.arguments)),
                **({"fault": secrets.text(call.fault)} if call.fault else {}),
            }
            for call in response.tool_calls
        ]
    if chunks and "".join(chunks) == content:  # not of a reply in which something was replaced
        entry["chunks"] = chunks
    downloads = {
        download_key(each.origin): {
            "media_type": each.media_type,
            "sha256": each.digest or sha256(each.data).hexdigest(),
        }
        for each in request.attachments
        if each.origin
    }
    if downloads:
        entry["downloads"] = downloads
    entry["request_hash"] = request_hash(request)
    entry["asked"] = asked(request)
    return entry


def key_for(request: Request | EmbeddingRequest, entry: Mapping[str, Any]) -> str:
    """Return the key of a reply. Keys with a leading underscore are no replies, so a step with such an id is known by its request."""
    step = request.step_id
    return step if step and not step.startswith("_") else str(entry["request_hash"])


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
