"""A gateway that asks providers only for what its recording doesn't answer any more."""

from __future__ import annotations

import json
from typing import Any

from agentloom.files import read_bytes
from agentloom.providers.base import EmbeddingRequest, EmbeddingResponse, OnDelta, Request, Response
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.mock import MockProvider
from agentloom.providers.recorder import Recorder, key_for
from agentloom.providers.recording import Recording
from agentloom.providers.replies import Found, Replies


class PartlyRecordedGateway(ProviderGateway):
    """Answers from a recording where that was recorded for the very request; everything else is asked anew.

    With a ``recorder``, the turns of a step that come from the recording are written again together with its new ones.
    """

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recorder: Recorder | None = None
        self.replies = Replies(recording, by_attempt=True)
        self._mock = MockProvider()
        self._raw = _raw(recording)

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Make one call, unless its reply is recorded."""
        found = self._found(request)
        if found is not None and found.entry is not None:
            return await self._mock.give(found.entry, request, on_delta)
        return await super().complete(request, on_delta)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResponse:
        """Turn texts into vectors, unless those are recorded."""
        found = self._found(request)
        if found is not None and found.entry is not None:
            return await self._mock.give_vectors(found.entry, request)
        return await super().embed(request)

    def _found(self, request: Request | EmbeddingRequest) -> Found | None:
        found = self.replies.next(request)
        if found.mismatch is not None or found.entry is None:
            return None
        if self.recorder is not None:
            raw = self._raw[found.key]
            entry = raw[found.at] if isinstance(raw, list) else raw
            self.recorder.carry(key_for(request, {"request_hash": found.key}), entry)
        return found


def _raw(recording: Recording) -> dict[str, Any]:
    """Return a recording's file as it stands there, with fields that we don't know."""
    if recording.path is None:
        return {}
    data: dict[str, Any] = json.loads(read_bytes(recording.path).decode("utf-8-sig"))
    return data
