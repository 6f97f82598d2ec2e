"""What holds for several vendors' clients alike, above all Anthropic's and Google's: replies, and what goes wrong."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest

from agentloom.errors import ProviderError, RateLimitError
from agentloom.providers.gateway import ProviderGateway
from tests.providers.vendors import CLAUDE, GEMINI, GPT, LLAMA, SHORT, Vendor, streamed
from tests.wire.formats import KEY, Call, Say
from tests.wire.server import MODES, REPLY, WireServer, body_of, events_of

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("vendor", [CLAUDE, GEMINI], ids=lambda vendor: vendor.name)
every = pytest.mark.parametrize("vendor", [CLAUDE, GEMINI, GPT, LLAMA], ids=lambda vendor: vendor.name)


@both
@streamed
@pytest.mark.parametrize("mode", ["ok", "plain", "bytewise", "gzip"])
async def test_an_answer_is_read_however_it_arrives(vendor: Vendor, mode: str, stream: bool) -> None:
    """Whole, streamed, compressed, in single bytes, or whole although a stream was asked for."""
    seen: list[str] = []
    with vendor.serve(mode) as server:
        response = await vendor.call(server, vendor.ask(stream=stream), seen)
    assert (response.content, response.finish_reason, response.provider) == (REPLY, "stop", vendor.name)
    assert (response.tool_calls, response.reasoning, response.carried) == ((), None, {})
    assert response.usage.completion_tokens == len(REPLY.split())
    assert response.usage.total_tokens == response.usage.prompt_tokens + response.usage.completion_tokens
    priced = (response.usage.prompt_tokens * 1.0 + response.usage.completion_tokens * 2.0) / 1000
    assert response.cost_usd == pytest.approx(priced)
    if stream:
        assert "".join(seen) == REPLY
        assert len(seen) == (1 if mode == "plain" else 6)
        assert response.time_to_first_token_ms is not None
        assert 0 < response.time_to_first_token_ms <= response.latency_ms
    else:
        assert (seen, response.time_to_first_token_ms) == ([], None)


@every
async def test_the_first_words_arrive_before_the_last_are_sent(vendor: Vendor) -> None:
    """A stream is not collected: the server holds the rest back until the first piece was seen."""
    seen: list[str] = []
    with vendor.serve("slow-stream") as server:
        provider = vendor.provider(server)

        async def show(text: str) -> None:
            seen.append(text)
            server.let_go()

        response = await provider.complete(vendor.ask(stream=True), show)
        await provider.close()
    assert (response.content, len(seen)) == (REPLY, 6)


@every
async def test_connections_are_used_again(vendor: Vendor) -> None:
    """Whole, streamed and refused calls leave the connection open; `close` closes it, and a later call opens a new one."""
    with vendor.serve("ok", "ok", "429", "ok", "ok") as server:
        provider = vendor.provider(server)
        await provider.complete(vendor.ask())
        await provider.complete(vendor.ask(stream=True))
        with pytest.raises(RateLimitError):
            await provider.complete(vendor.ask())
        await provider.complete(vendor.ask(stream=True))
        assert server.connections == 1
        await provider.close()
        await provider.complete(vendor.ask())
        assert server.connections == 2
        await provider.close()
        await provider.close()


@both
async def test_a_stream_that_never_ends_after_its_last_event_is_finished(vendor: Vendor) -> None:
    """A reply that is whole is not lost because the body is never closed."""
    with vendor.serve("lingering") as server:
        assert (await vendor.call(server, vendor.ask(stream=True), timeout=SHORT)).content == REPLY


@every
@pytest.mark.parametrize("mode", ["slow", "slow-body", "slow-stream"])
async def test_a_cancelled_call_leaves_nothing_open(vendor: Vendor, mode: str) -> None:
    """Cancelling while the server is silent ends the call at once, and the provider works on."""
    with vendor.serve(mode, "ok") as server:
        provider = vendor.provider(server)
        async with anyio.create_task_group() as group:
            group.start_soon(provider.complete, vendor.ask(stream=mode == "slow-stream"))
            await anyio.to_thread.run_sync(server.wait_for, 1)
            group.cancel_scope.cancel()
        assert (await provider.complete(vendor.ask())).content == REPLY
        await provider.close()


# ── what can go wrong ──


@both
@streamed
@pytest.mark.parametrize("status", [code for code in MODES if code.isdigit()])
async def test_every_status_is_handed_on(vendor: Vendor, status: str, stream: bool) -> None:
    """GW-7: the status and the server's own words; GW-1 decides what it means."""
    seen: list[str] = []
    error = await vendor.failure(status, stream=stream, seen=seen)
    assert str(error) == f"Provider '{vendor.name}': API error {status}: refused with {status}"
    assert (error.status_code, error.retry_after, error.permanent, seen) == (int(status), None, False, [])
    assert isinstance(error, RateLimitError) == (status == "429")


@both
@pytest.mark.parametrize(
    ("mode", "seconds"), [("429/7", 7.0), ("503/1.5", 1.5), ("529/date", 30.0), ("429/date", 30.0), ("429/soon", None)]
)
async def test_retry_after(vendor: Vendor, mode: str, seconds: float | None) -> None:
    """GW-5: seconds or a date."""
    assert (await vendor.failure(mode, stream=False)).retry_after == seconds


@both
@pytest.mark.parametrize(
    ("mode", "stream", "words"),
    [
        ("malformed", False, "the answer is not JSON"),
        ("malformed", True, "the answer is not JSON"),
        ("html", False, "the answer is not JSON: <html>"),
        ("html", True, "the answer is not JSON: <html>"),
        ("empty", False, "the answer is empty"),
        ("array", False, "the answer is JSON, but not an object"),
        (body_of("{}"), False, "the answer has no `"),
        (events_of("{}"), True, "the answer broke off before its end"),
        (events_of(), True, "the answer broke off before its end"),
        (body_of("[" * 100_000), False, "the answer is not JSON: [[["),
        (events_of("[" * 100_000), True, "the answer is not JSON: [[["),
        ("error-in-body", False, "the server reports an error: model not loaded"),
        ("cut-event", True, "the answer broke off before its end"),
        ("cut-connection", True, "broke off its answer, or speaks no proper HTTP"),
        ("cut-character", True, "broke off its answer, or speaks no proper HTTP"),
        ("cut-body", False, "broke off its answer, or speaks no proper HTTP"),
        ("close", True, "broke off its answer, or speaks no proper HTTP"),
        ("not-http", False, "broke off its answer, or speaks no proper HTTP"),
        ("reset", True, "dropped the connection"),
        ("bad-gzip", True, "can't be decompressed"),
    ],
)
async def test_a_broken_answer_has_no_status_and_may_be_tried_again(
    vendor: Vendor, mode: Any, stream: bool, words: str
) -> None:
    """GW-1: a stream cut in the middle of a character or of an event is a clear, transient failure, as everything that is no status."""
    error = await vendor.failure(mode, stream=stream)
    assert words in str(error)
    assert (error.status_code, error.retry_after, error.permanent) == (None, None, False)
    assert "\n" not in str(error)
    assert len(str(error)) < 700


@both
@pytest.mark.parametrize(("mode", "stream"), [("slow", False), ("slow", True), ("slow-stream", True), ("drip", True)])
async def test_silence_has_an_end(vendor: Vendor, mode: str, stream: bool) -> None:
    """PR-6: a timeout has no status."""
    error = await vendor.failure(mode, stream=stream, timeout=SHORT)
    assert str(error).endswith(" within 0.2 s")
    assert (error.status_code, error.permanent) == (None, False)


@every
@streamed
@pytest.mark.parametrize("mode", ["huge", "bomb"])
async def test_an_answer_without_end_is_not_read(vendor: Vendor, mode: str, stream: bool) -> None:
    """Bytes count after decompression; also in a single line that never ends."""
    error = await vendor.failure(mode, stream=stream, max_bytes=1_000_000)
    assert str(error) == f"Provider '{vendor.name}': the answer is larger than 1000000 bytes"
    assert error.permanent


@both
@streamed
async def test_long_replies(vendor: Vendor, stream: bool) -> None:
    """Ten megabytes in one, and thousands of pieces."""
    text = "ü" * (12_000 if stream else 5_000_000)
    with vendor.serve(says=[Say(text)]) as server:
        assert (await vendor.call(server, vendor.ask(stream=stream))).content == text


@both
@pytest.mark.parametrize("depth", [200, 10_000])
async def test_arguments_that_are_nested_without_end(vendor: Vendor, depth: int) -> None:
    """A call whose arguments nobody can use is told to the model, or the answer is no answer; nothing falls over."""
    deep = '{"a": ' * depth + "1" + "}" * depth
    if vendor is CLAUDE:
        block = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
        events = [
            json.dumps({"type": "content_block_start", "index": 0, "content_block": block}),
            json.dumps(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": deep}}
            ),
            json.dumps({"type": "message_stop"}),
        ]
    else:
        call = '{"functionCall": {"name": "f", "args": ' + deep + "}}"
        events = ['{"candidates": [{"content": {"parts": [' + call + ']}, "finishReason": "STOP"}]}']
    with vendor.serve(events_of(*events)) as server:
        if vendor is GEMINI and depth > 1000:
            with pytest.raises(ProviderError, match="the answer is not JSON"):
                await vendor.call(server, vendor.ask(stream=True))
            return
        (found,) = (await vendor.call(server, vendor.ask(stream=True))).tool_calls
    assert (found.arguments, found.fault) == ({}, "the arguments are nested too deeply")


@both
async def test_names_of_tools_are_handed_on_as_they_are(vendor: Vendor) -> None:
    """With line breaks and all; it is for the loop to say that there is no such tool."""
    with vendor.serve(says=[Say("", (Call("1", "a\nb\x1b[31m", "{}"),))]) as server:
        (found,) = (await vendor.call(server)).tool_calls
    assert found.name == "a\nb\x1b[31m"


# ── keys ──


@both
async def test_a_key_travels_in_a_header_only(vendor: Vendor, caplog: pytest.LogCaptureFixture) -> None:
    """Never in an address, which lands in the errors of clients and in the logs of proxies; and in no error and no log of ours."""
    with caplog.at_level(logging.DEBUG), vendor.serve("ok", "ok", "401") as server:
        await vendor.call(server)
        await vendor.call(server, vendor.ask(stream=True))
        closed = server.url
    assert all(KEY not in request.path and "key" not in request.path for request in server.requests)
    provider = vendor.client(closed, CLAUDE.provider(server)._http._key)
    with pytest.raises(ProviderError) as caught:
        await provider.complete(vendor.ask())
    await provider.close()
    assert "can't connect to" in str(caught.value)
    assert KEY not in f"{caught.value} {caplog.text} {provider!r}"


@both
@streamed
async def test_a_key_that_the_server_repeats_is_cut_out(vendor: Vendor, stream: bool) -> None:
    """Keys appear in no error."""
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}})
    error = await vendor.failure(body_of(body, 401), stream=stream)
    assert str(error).endswith("API error 401: Incorrect API key provided: <secret>.")


@both
async def test_a_wrong_key_is_one_refused_request(vendor: Vendor) -> None:
    """401 and 400 are permanent for a step (GW-1); one request each."""
    with vendor.serve(key="sk-another") as server, pytest.raises(ProviderError) as caught:
        await vendor.call(server)
    assert caught.value.status_code == (401 if vendor is CLAUDE else 400)
    assert len(server.requests) == 1


@both
@streamed
async def test_a_500_is_answered_by_the_fallback(vendor: Vendor, stream: bool) -> None:
    """The other vendor answers, with the name that it knows; once text has come, nobody else is asked (GW-2)."""
    other = GEMINI if vendor is CLAUDE else CLAUDE
    with vendor.serve("500", "cut-event") as first, other.serve() as second:
        gateway = ProviderGateway()
        gateway.register(vendor.provider(first), priority=0)
        gateway.register(other.provider(second), model_aliases={vendor.model: other.model})
        response = await gateway.complete(vendor.ask(stream=stream))
        assert (response.provider, response.content) == (other.name, REPLY)
        with pytest.raises(ProviderError):
            await gateway.complete(vendor.ask(stream=True))
        await gateway.close()
    assert len(second.requests) == 1


@both
async def test_base_addresses_with_a_version_are_taken_too(vendor: Vendor) -> None:
    """Whoever copies an address from another tool's settings has it with its version."""
    with vendor.serve() as server:
        for version in ("", "/v1" if vendor is CLAUDE else "/v1beta"):
            assert (await vendor.call(server, base_url=server.url + version)).content == REPLY


def test_the_server_refuses_what_it_does_not_know() -> None:
    """Or the tests would show nothing: a field too many, one too few, of the wrong type, in the vendor's own words."""
    import httpx

    context = httpx.create_ssl_context()  # once: that takes longer than a request

    def refused(server: WireServer, path: str, body: dict[str, Any], **headers: str) -> str:
        found = httpx.post(server.url + path, json=body, headers=headers, trust_env=False, verify=context)
        assert found.status_code in (400, 401, 404), found.text
        return str(found.json()["error"]["message"])

    claude: dict[str, Any] = {"model": CLAUDE.model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    with CLAUDE.serve() as server:
        path = CLAUDE.path
        assert "invalid x-api-key" in refused(server, path, claude)
        assert "anthropic-version" in refused(server, path, claude, **{"x-api-key": KEY})
        assert "unknown" in refused(server, path, {**claude, "unknown": 1}, **headers)
        assert "max_tokens" in refused(server, path, {**claude, "max_tokens": "9"}, **headers)
        assert "model: nobody" in refused(server, path, {**claude, "model": "nobody"}, **headers)
        assert "must define tools" in refused(
            server,
            path,
            {
                **claude,
                "messages": [
                    *claude["messages"],
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
                ],
            },
            **headers,
        )
    gemini: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    with GEMINI.serve() as server:
        path, headers = GEMINI.path, {"x-goog-api-key": KEY}
        assert "API key not valid" in refused(server, path, gemini)
        assert "query parameters" in refused(server, f"{path}?key={KEY}", gemini, **headers)
        assert "unknown" in refused(server, path, {**gemini, "unknown": 1}, **headers)
        assert "contents" in refused(server, path, {"contents": []}, **headers)
        assert "exactly one" in refused(server, path, {"contents": [{"parts": [{}]}]}, **headers)
