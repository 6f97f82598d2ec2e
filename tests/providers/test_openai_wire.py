"""The OpenAI client against a real server on loopback: what is sent, what is read, and everything that can go wrong."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agentloom.errors import ProviderError, RateLimitError
from agentloom.providers.base import Usage
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.openai import OpenAIProvider
from agentloom.providers.secret import Secret
from agentloom.providers.table import BY_NAME
from tests.providers.vendors import GPT, SHORT
from tests.wire.server import KEY, MODES, REPLY, WireServer, body_of, events_of

pytestmark = pytest.mark.anyio

ask, call, failure, provider_of = GPT.ask, GPT.call, GPT.failure, GPT.provider


# ── what is sent ──


async def test_the_request_holds_what_was_asked_for_and_nothing_else() -> None:
    """Options that aren't set don't travel."""
    with WireServer() as server:
        await call(server, ask())
        await call(server, ask(temperature=0.0, max_tokens=5, stream=True))
    first, second = server.requests
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "grüß mich 👋"}]
    assert first.json == {"model": "gpt-4o-mini", "messages": messages}
    assert second.json == {
        "model": "gpt-4o-mini",
        "messages": messages,
        "temperature": 0.0,
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert (first.method, first.path) == ("POST", "/v1/chat/completions")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.headers["user-agent"].startswith("agentloom/")
    assert second.headers["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("model", "spec", "field"),
    [
        ("gpt-4o-mini", "openai", "max_tokens"),
        ("gpt-5-mini", "openai", "max_completion_tokens"),
        ("o3-mini", "openai", "max_completion_tokens"),
        ("o3-mini-lookalike", "generic_openai", "max_tokens"),
    ],
)
async def test_reasoning_models_take_another_name_for_max_tokens(model: str, spec: str, field: str) -> None:
    """OpenAI's own reasoning models refuse `max_tokens`; compatible servers know nothing else."""
    with WireServer(own=spec == "openai") as server:
        await call(server, ask(model=model, max_tokens=9), spec=BY_NAME[spec])
    assert server.requests[0].json[field] == 9
    assert len(server.requests[0].json) == 3


async def test_a_server_without_a_key_gets_none() -> None:
    """`generic_openai` works without a key."""
    with WireServer(key=None) as server:
        await call(server, ask(), key=None)
    assert "authorization" not in server.requests[0].headers


async def test_a_query_in_the_base_address_stays() -> None:
    """Azure's addresses have one."""
    with WireServer() as server:
        await call(server, ask(), base_url=f"{server.url}?api-version=2025-01-01")
    assert server.requests[0].path == "/v1/chat/completions?api-version=2025-01-01"


async def test_what_cannot_be_sent_is_refused_before_anything_is_sent() -> None:
    """No server would understand it."""
    with WireServer() as server:
        with pytest.raises(ProviderError, match="can't be written as JSON") as caught:
            await call(server, ask(temperature=float("nan")))
        assert caught.value.permanent
    assert server.requests == []


# ── what is read ──

WHOLE = Usage(prompt_tokens=5, completion_tokens=8, total_tokens=13, reasoning_tokens=1)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["ok", "plain", "bytewise", "gzip"])
async def test_an_answer_is_read_however_it_arrives(mode: str, stream: bool) -> None:
    """Whole, streamed, compressed, in single bytes, or whole although a stream was asked for."""
    seen: list[str] = []
    with WireServer(mode) as server:
        response = await call(server, ask(stream=stream), seen)
    assert (response.content, response.usage, response.finish_reason) == (REPLY, WHOLE, "stop")
    assert (response.model, response.provider) == ("gpt-4o-mini-2024-07-18", "openai")
    assert response.cost_usd == pytest.approx((5 * 1.0 + 8 * 2.0) / 1000)
    assert response.latency_ms > 0
    if stream:
        assert "".join(seen) == REPLY
        assert len(seen) == (1 if mode == "plain" else 6)
        assert response.time_to_first_token_ms is not None
        assert 0 < response.time_to_first_token_ms <= response.latency_ms
    else:
        assert (seen, response.time_to_first_token_ms) == ([], None)


@pytest.mark.parametrize("mode", ["odd-stream", "no-done"])
async def test_a_stream_may_use_all_that_the_format_allows(mode: str) -> None:
    """Comments, every line break, data over several lines, no `[DONE]`."""
    seen: list[str] = []
    with WireServer(mode) as server:
        response = await call(server, ask(stream=True), seen)
    assert (response.content, "".join(seen), response.usage) == (REPLY, REPLY, WHOLE)


@pytest.mark.parametrize(("mode", "content"), [("refusal", "I can't."), ("bare", "bare")])
@pytest.mark.parametrize("stream", [False, True])
async def test_sparse_answers(mode: str, content: str, stream: bool) -> None:
    """A refusal is the reply; without usage and model there are no tokens and the name is that of the request."""
    with WireServer(mode) as server:
        response = await call(server, ask(stream=stream))
    assert (response.content, response.usage, response.model, response.cost_usd) == (
        content,
        Usage(),
        "gpt-4o-mini",
        0.0,
    )


async def test_reasoning_that_is_counted_apart_becomes_part_of_the_completion() -> None:
    """Some servers leave it out of `completion_tokens`; it is billed all the same."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115}
    usage_with = {**usage, "completion_tokens_details": {"reasoning_tokens": 100}}
    data = {"choices": [{"message": {"content": "x"}}], "usage": usage_with}
    with WireServer(body_of(json.dumps(data))) as server:
        response = await call(server, ask())
    assert response.usage == Usage(10, 105, 115, 100)


@pytest.mark.parametrize(
    "usage", [None, "many", {"prompt_tokens": "5", "completion_tokens": None, "total_tokens": True}]
)
async def test_odd_usage_counts_as_none(usage: Any) -> None:
    """A reply is worth more than its bookkeeping."""
    data = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    with WireServer(body_of(json.dumps(data))) as server:
        assert (await call(server, ask())).usage == Usage()


# ── connections ──


async def test_a_stream_that_never_ends_after_done_is_finished() -> None:
    """`[DONE]` is the end, whether or not the server closes the body."""
    with WireServer("lingering") as server:
        assert (await call(server, ask(stream=True))).content == REPLY


async def test_many_calls_at_once() -> None:
    """No call waits for another's connection."""
    with WireServer("slow") as server:
        provider = provider_of(server)
        async with anyio.create_task_group() as group:
            for _ in range(150):
                group.start_soon(provider.complete, ask())
            await anyio.to_thread.run_sync(server.wait_for, 150)
            server.let_go()
        await provider.close()
    assert server.connections == 150


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_provider_in_two_event_loops() -> None:
    """A gateway outlives `asyncio.run`: connections of a loop that is gone are not touched again."""
    with WireServer() as server:
        provider = provider_of(server)
        for _ in range(2):
            assert anyio.run(provider.complete, ask()).content == REPLY
        anyio.run(provider.close)
        gc.collect()  # the lost connections complain now, while that is expected
    assert server.connections == 2


# ── what can go wrong ──


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [code for code in MODES if code.isdigit()])
async def test_every_status_is_handed_on(status: str, stream: bool) -> None:
    """GW-7: the status, and the server's own words."""
    seen: list[str] = []
    error = await failure(status, stream=stream, seen=seen)
    assert str(error) == f"Provider 'openai': API error {status}: refused with {status} (code_{status})"
    assert (error.status_code, error.retry_after, error.permanent, seen) == (int(status), None, False, [])
    assert isinstance(error, RateLimitError) == (status == "429")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("date", 30.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("٣", None),
        ("nan", None),
        ("1e3", None),
        ("9" * 400, None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
async def test_retry_after(header: str, seconds: float | None) -> None:
    """GW-5: seconds or a date, measured by the server's own clock; anything else is no Retry-After."""
    if header.isascii():
        assert (await failure(f"429/{header}", stream=False)).retry_after == seconds
    else:
        from agentloom.providers.http import retry_after

        assert retry_after({"retry-after": header}) == seconds


BROKEN: Sequence[tuple[Any, bool, str]] = [
    ("malformed", False, 'the answer is not JSON: {"id"= "chatcmpl-1"'),
    ("malformed", True, 'the answer is not JSON: {"choices": [}'),
    ("html", False, "the answer is not JSON: <html><body>Welcome to nginx</body></html>"),
    ("html", True, "the answer is not JSON: <html><body>Welcome to nginx</body></html>"),
    ("empty", False, "the answer is empty"),
    ("empty", True, "the answer is empty"),
    ("array", False, "the answer is JSON, but not an object"),
    ("array", True, "the answer is JSON, but not an object"),
    ("no-choices", False, "the answer has no `choices[0].message`"),
    ("no-choices", True, "the answer broke off before its end"),
    ("odd-content", False, "the answer's `content` is not a text"),
    ("odd-event", True, "the answer's `delta.content` is not a text"),
    ("error-in-body", False, "the server reports an error: model not loaded"),
    ("error-event", True, "the server reports an error: the model is overloaded"),
    (body_of("[" * 100_000), False, "the answer is not JSON: [[["),
    (events_of("[" * 100_000), True, "the answer is not JSON: [[["),
    (events_of(), True, "the answer broke off before its end"),
    ("cut-event", True, "the answer broke off before its end"),
    ("cut-between-events", True, "the answer broke off before its end"),
    ("cut-connection", True, "broke off its answer, or speaks no proper HTTP"),
    ("cut-character", True, "broke off its answer, or speaks no proper HTTP"),
    ("cut-body", False, "broke off its answer, or speaks no proper HTTP"),
    ("close", False, "broke off its answer, or speaks no proper HTTP"),
    ("not-http", False, "broke off its answer, or speaks no proper HTTP"),
    ("reset", False, "/v1/chat/completions dropped the connection"),
    ("reset", True, "/v1/chat/completions dropped the connection"),
    ("bad-gzip", False, "can't be decompressed"),
    ("bad-gzip", True, "can't be decompressed"),
    ("nested-gzip", False, "compressed in a way that isn't read: gzip, gzip, gzip"),
    ("nested-gzip", True, "compressed in a way that isn't read: gzip, gzip, gzip"),
]


@pytest.mark.parametrize(("mode", "stream", "words"), BROKEN)
async def test_a_broken_answer_has_no_status_and_may_be_tried_again(mode: Any, stream: bool, words: str) -> None:
    """GW-1: what isn't a status is transient; the message says what is wrong, in one line of a sane length."""
    error = await failure(mode, stream=stream)
    assert words in str(error)
    assert (error.status_code, error.retry_after, error.permanent) == (None, None, False)
    assert "\n" not in str(error)
    assert len(str(error)) < 700


@pytest.mark.parametrize("mode", ["cut-event", "cut-connection", "cut-character", "malformed", "reset-stream"])
async def test_what_arrived_before_the_break_was_shown(mode: str) -> None:
    """GW-2: a stream that breaks off has delivered its beginning, never half a character."""
    seen: list[str] = []
    with WireServer(mode) as server:
        provider = provider_of(server)

        async def show(text: str) -> None:
            seen.append(text)
            server.let_go()

        with pytest.raises(ProviderError) as caught:
            await provider.complete(ask(stream=True), show)
        await provider.close()
    assert (seen, caught.value.status_code) == ([REPLY[:8]], None)


async def test_an_error_event_may_carry_a_status() -> None:
    """Servers that have sent 200 already report their limits inside the stream."""
    error = await failure("limit-event", stream=True)
    assert (str(error), error.status_code) == ("Provider 'openai': API error 429: slow down", 429)


@pytest.mark.parametrize(
    ("mode", "stream"),
    [("slow", False), ("slow", True), ("slow-body", False), ("slow-stream", True), ("drip", False), ("drip", True)],
)
async def test_silence_has_an_end(mode: str, stream: bool) -> None:
    """PR-6: also when the server sends a space now and then; a timeout has no status."""
    error = await failure(mode, stream=stream, timeout=SHORT)
    assert str(error).endswith("/v1/chat/completions within 0.2 s")
    assert (error.status_code, error.permanent) == (None, False)


async def test_the_time_limits_are_the_documented_ones() -> None:
    """PR-6: 60 s, Ollama 120 s."""
    assert {name: spec.timeout for name, spec in BY_NAME.items()} == {
        "openai": 60,
        "anthropic": 60,
        "google": 60,
        "ollama": 120,
        "generic_openai": 60,
        "mock": 60,
    }


async def test_a_huge_error_page_is_cut() -> None:
    """The beginning is shown, without control characters."""
    error = await failure("huge-error", stream=False)
    assert error.status_code == 500
    assert len(str(error)) < 600
    assert str(error).isprintable()
    assert str(error).endswith("…")


async def test_redirects_are_not_followed() -> None:
    """The target is named without what may be secret in it."""
    error = await failure("redirect", stream=False)
    assert str(error) == (
        "Provider 'openai': API error 308: redirected to https://elsewhere.example/v1/chat; "
        "redirects are not followed, set the base URL to the server that answers"
    )
    assert error.status_code == 308


async def test_a_server_that_is_not_there() -> None:
    """The address is named, without a status."""
    with WireServer() as server:
        url = server.url
    provider = OpenAIProvider(url, Secret(KEY))
    with pytest.raises(ProviderError) as caught:
        await provider.complete(ask())
    await provider.close()
    assert str(caught.value).startswith(f"Provider 'openai': can't connect to {url}/chat/completions")
    assert caught.value.status_code is None


# ── keys ──


@pytest.mark.parametrize("stream", [False, True])
async def test_a_key_that_the_server_repeats_is_cut_out(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Keys appear neither in errors nor in logs, at any level."""
    with caplog.at_level(logging.DEBUG):
        error = await failure("echo-key", stream=stream)
    assert str(error) == "Provider 'openai': API error 401: Incorrect API key provided: <secret>."
    assert KEY not in caplog.text


async def test_anything_that_looks_like_a_key_is_cut_out() -> None:
    """Servers repeat half-masked keys, and the wrong ones."""
    body = json.dumps({"error": {"message": "Incorrect key: sk-proj-abc***xyz9. See https://example.org/sk-1"}})
    error = await failure(body_of(body, 401), stream=False)
    assert str(error).endswith("Incorrect key: sk-… See https://example.org/sk-1")


async def test_a_provider_does_not_show_its_key() -> None:
    """Neither in `repr` nor formatted, nor in the parts it is made of."""
    provider = OpenAIProvider("http://127.0.0.1:9/v1", Secret(KEY))
    assert KEY not in f"{provider!r} {provider} {Secret(KEY)!r} {Secret(KEY)} {Secret(KEY):>20}"


# ── through the gateway ──


async def test_falling_back_over_the_wire() -> None:
    """A 500 from the first server is answered by the second, with the name it knows."""
    with WireServer("500") as first, WireServer("ok", key=None) as second:
        gateway = ProviderGateway()
        gateway.register(provider_of(first), priority=0)
        generic = OpenAIProvider(second.url, name="generic_openai", spec=BY_NAME["generic_openai"])
        gateway.register(generic, model_aliases={"gpt-4o-mini": "llama3"})
        seen: list[str] = []

        async def show(text: str) -> None:
            seen.append(text)

        response = await gateway.complete(ask(stream=True), show)
        await gateway.close()
    assert (response.provider, response.content, "".join(seen)) == ("generic_openai", REPLY, REPLY)
    assert second.requests[0].json["model"] == "llama3"


async def test_all_servers_refuse() -> None:
    """The status they agree on, and the soonest Retry-After."""
    with WireServer("429/30") as first, WireServer("429/2", key=None) as second:
        gateway = ProviderGateway()
        gateway.register(provider_of(first))
        gateway.register(OpenAIProvider(second.url, name="generic_openai", spec=BY_NAME["generic_openai"]))
        with pytest.raises(ProviderError) as caught:
            await gateway.complete(ask())
        await gateway.close()
    assert (caught.value.status_code, caught.value.retry_after) == (429, 2.0)
    assert str(caught.value) == (
        "All providers failed for model 'gpt-4o-mini': "
        "Provider 'openai': API error 429: refused with 429 (code_429); "
        "Provider 'generic_openai': API error 429: refused with 429 (code_429)"
    )
