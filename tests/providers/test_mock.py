"""The mock provider: lookup, turns, placeholder, latency and streaming (RP-2, RP-3, RP-5)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.providers.base import Message, ReplyFormat, Request, Usage
from agentloom.providers.hashes import request_hash
from agentloom.providers.mock import MockProvider, words
from agentloom.providers.recording import read_recording

pytestmark = pytest.mark.anyio


def ask(step_id: str = "a", text: str = "hello", **more: Any) -> Request:
    return Request("gpt-4o-mini", [Message("user", text)], step_id=step_id, **more)


def mock_of(data: dict[str, Any], **more: Any) -> MockProvider:
    return MockProvider(read_recording({"_version": 2, **data}, Path("responses.json")), **more)


async def say(provider: MockProvider, request: Request) -> str:
    return (await provider.complete(request)).content


async def test_an_entry_is_the_whole_reply() -> None:
    """Everything recorded comes back; the provider is the mock, which really answered."""
    provider = mock_of(
        {
            "a": {
                "content": "billing",
                "model": "gpt-4o-mini-2024-07-18",
                "usage": {"prompt_tokens": 12, "completion_tokens": 3, "reasoning_tokens": 1},
                "cost_usd": 0.25,
                "latency_ms": 900,
                "finish_reason": "length",
                "provider": "openai",
            }
        }
    )
    response = await provider.complete(ask())
    assert (response.content, response.model, response.provider) == ("billing", "gpt-4o-mini-2024-07-18", "mock")
    assert response.usage == Usage(12, 3, 15, 1)
    assert (response.cost_usd, response.finish_reason, response.latency_ms) == (0.25, "length", 0.0)


async def test_turns_are_played_in_order_and_stay_at_the_last() -> None:
    """A list is one entry a turn, per step."""
    provider = mock_of({"a": [{"content": "1"}, {"content": "2"}], "b": {"content": "b"}})
    assert [await say(provider, ask(step)) for step in "aababa"] == ["1", "2", "b", "2", "b", "2"]


async def test_step_id_wins_over_hash_over_placeholder(caplog: pytest.LogCaptureFixture) -> None:
    """RP-3, and a miss is told once per step."""
    request = ask("unknown")
    provider = mock_of({"a": {"content": "by id"}, request_hash(request): {"content": "by hash"}})
    with caplog.at_level(logging.WARNING):
        assert await say(provider, ask("a")) == "by id"
        assert await say(provider, request) == "by hash"
        assert caplog.messages == []
        for _ in range(2):
            missed = await provider.complete(ask("unknown", "other words"))
    assert (missed.content, missed.usage, missed.cost_usd, missed.model) == (
        "Mock response",
        Usage(),
        0.0,
        "gpt-4o-mini",
    )
    assert caplog.messages == [
        "Step 'unknown' has no response in responses.json, using the placeholder 'Mock response'"
    ]


async def test_without_a_recording_the_placeholder_is_no_surprise(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody asked for recorded replies, so there is nothing to warn of."""
    provider = MockProvider()
    assert await say(provider, ask()) == "Mock response"
    assert await say(provider, ask(reply_format=ReplyFormat("json_object", {}))) == "{}"
    assert caplog.messages == []


async def test_steps_of_a_subworkflow_are_found_by_path_or_by_id() -> None:
    """The whole path is the more exact key."""
    provider = mock_of({"sub.a": {"content": "path"}, "a": {"content": "id"}})
    assert [await say(provider, ask(step)) for step in ("sub.a", "other.a", "a")] == ["path", "id", "id"]


async def test_streaming_delivers_words_that_add_up() -> None:
    """Each piece arrives by itself; the reply is whole."""
    provider = mock_of({"a": {"content": "Dear Ann,\n\n  your invoice is right. "}})
    pieces: list[str] = []

    async def show(text: str) -> None:
        pieces.append(text)

    response = await provider.complete(ask(stream=True), show)
    assert pieces == ["Dear", " Ann,", "\n\n  your", " invoice", " is", " right.", " "]
    assert "".join(pieces) == response.content
    assert response.time_to_first_token_ms == 0.0


@given(st.text(alphabet=st.sampled_from(" \n\tab\u00e9\U0001f600\u2028")))
def test_words_lose_nothing(text: str) -> None:
    """Joined pieces are the text again, and none is empty."""
    assert "".join(words(text)) == text
    assert all(words(text))


async def test_latency_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant is exact, normal is spread by a tenth and repeatable, replay takes the entry's own time."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds * 1000)

    monkeypatch.setattr(anyio, "sleep", sleep)
    data = {"a": {"content": "one two three four", "latency_ms": 80}}
    await say(mock_of(data, latency_ms=40), ask())
    await say(mock_of(data, latency_model="replay", latency_ms=40), ask())
    assert slept == [40.0, 80.0]

    slept.clear()
    for _ in range(2):
        provider = mock_of(data, latency_model="normal", latency_ms=1000, seed=7)
        for _ in range(200):
            await say(provider, ask())
    assert slept[:200] == slept[200:]
    assert len(set(slept)) > 100
    assert 600 < min(slept) < 900 < sum(slept) / 400 < 1100 < max(slept) < 1400

    slept.clear()
    await say(mock_of(data, latency_model="normal", latency_ms=0), ask())
    assert slept == [1.0]

    slept.clear()

    async def show(text: str) -> None:
        pass

    response = await mock_of(data, latency_ms=40).complete(ask(stream=True), show)
    assert slept == [10.0] * 4
    assert (response.latency_ms, response.time_to_first_token_ms) == (40.0, 10.0)


async def test_no_latency_never_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default costs nothing."""

    async def sleep(seconds: float) -> None:
        raise AssertionError("slept")

    monkeypatch.setattr(anyio, "sleep", sleep)
    assert await say(MockProvider(), ask(stream=True)) == "Mock response"
