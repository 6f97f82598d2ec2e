"""The Ollama client against a strict server on loopback: what is sent, what is read, and what can go wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom.errors import ProviderError
from agentloom.providers.base import (
    Attachment,
    EmbeddingRequest,
    Message,
    Reasoning,
    ReplyFormat,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Usage,
)
from agentloom.providers.ndjson import LineParser
from agentloom.providers.ollama import OllamaProvider
from agentloom.providers.secret import Secret
from agentloom.providers.sse import Event
from agentloom.providers.thinking import ThinkingFilter
from tests.providers.vendors import ASKED, LLAMA, SHORT
from tests.wire.formats import Call, Say, vector
from tests.wire.server import MODES, REPLY, body_of, events_of

pytestmark = pytest.mark.anyio

TOOL = ToolSpec("get_weather", "The weather.", {"type": "object", "properties": {"place": {"type": "string"}}})
CALLS = (Call("", "get_weather", '{"place": "Köln"}'), Call("", "get_weather", '{"place": "Bonn"}'))
serve, request, call, failure = LLAMA.serve, LLAMA.ask, LLAMA.call, LLAMA.failure


# ── text ──


async def test_the_request_holds_what_was_asked_for_and_nothing_else() -> None:
    """`stream` is always said, since it is on by default there; options stand apart."""
    with serve() as server:
        await call(server, request())
        await call(server, request(temperature=0.5, max_tokens=9, stream=True), key=Secret("for-the-proxy"))
    first, second = server.requests
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "grüß mich 👋"}]
    assert first.json == {"model": "llama3.2", "messages": messages, "stream": False}
    assert second.json == {
        "model": "llama3.2",
        "messages": messages,
        "stream": True,
        "options": {"temperature": 0.5, "num_predict": 9},
    }
    assert (first.path, "authorization" in first.headers) == ("/api/chat", False)
    assert second.headers["authorization"] == "Bearer for-the-proxy"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["ok", "plain", "bytewise", "gzip"])
async def test_an_answer_is_read_however_it_arrives(mode: str, stream: bool) -> None:
    """Whole, in lines, compressed, in single bytes, or whole although a stream was asked for; it costs nothing."""
    seen: list[str] = []
    with serve(mode) as server:
        response = await call(server, request(stream=stream), seen)
    assert (response.content, response.finish_reason, response.model) == (REPLY, "stop", "llama3.2")
    assert response.usage == Usage(5, 8, 13)
    assert (response.cost_usd, response.provider, response.reasoning) == (0.0, "ollama", None)
    if stream:
        assert ("".join(seen), len(seen)) == (REPLY, 1 if mode == "plain" else 6)
        assert response.time_to_first_token_ms is not None
    else:
        assert (seen, response.time_to_first_token_ms) == ([], None)


def test_lines_are_cut_anywhere() -> None:
    """Inside a character, at a line break, without the last one."""
    data = '{"a": "ü"}\r\n\n{"b": 1}\n{"c"'.encode()
    expected = [Event('{"a": "ü"}'), Event('{"b": 1}'), Event('{"c"', complete=False)]
    for size in range(1, len(data) + 1):
        parser = LineParser()
        found = [event for at in range(0, len(data), size) for event in parser.feed(data[at : at + size])]
        assert found + parser.finish() == expected


# ── tools ──


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_loop_with_parallel_calls(stream: bool) -> None:
    """Arguments are objects, answers go by the tool's name, and what it thought goes back with the calls; `tool_choice` is unknown there."""
    says = [Say("", CALLS, reasoning="Two places."), Say("Sunny in both.")]
    with serve(says=says) as server:
        first = await call(server, request(ASKED, model="qwen3", tools=[TOOL], stream=stream))
        assert first.tool_calls == (
            ToolCall("call_0", "get_weather", {"place": "Köln"}),
            ToolCall("call_1", "get_weather", {"place": "Bonn"}),
        )
        assert (first.content, first.finish_reason, first.reasoning) == ("", "tool_calls", "Two places.")
        turns = [
            ASKED,
            Message("assistant", "", tool_calls=first.tool_calls, carried=first.carried),
            Message("tool", "sunny", name="get_weather", tool_call_id="call_0"),
            Message("tool", "sunny", name="get_weather", tool_call_id="call_1"),
        ]
        choice = ToolChoice("required")
        second = await call(server, request(*turns, model="qwen3", tools=[TOOL], tool_choice=choice, stream=stream))
        assert (second.content, second.tool_calls) == ("Sunny in both.", ())
    sent = server.requests[1].json["messages"]
    assert sent[1]["tool_calls"][1] == {"function": {"name": "get_weather", "arguments": {"place": "Bonn"}}}
    assert sent[1]["thinking"] == "Two places."
    assert sent[2] == {"role": "tool", "content": "sunny", "tool_name": "get_weather"}


@pytest.mark.parametrize(
    ("call_data", "expected"),
    [
        ({"function": {"name": "x", "arguments": "{oops"}}, ("call_0", "x", "the arguments are not JSON")),
        ({"function": {"name": "x", "arguments": [1]}}, ("call_0", "x", "the arguments are not a JSON object")),
        ({"id": "c9", "function": {"name": "a\nb", "arguments": '{"n": 1}'}}, ("c9", "a\nb", "")),
        ({"function": None}, ("call_0", "", "")),
        (7, ("call_0", "", "")),
    ],
)
async def test_calls_as_models_write_them(call_data: Any, expected: tuple[str, str, str]) -> None:
    """What can't be read is the model's to correct."""
    data = {"message": {"content": "", "tool_calls": [call_data]}, "done": True, "done_reason": "stop"}
    with serve(body_of(json.dumps(data))) as server:
        response = await call(server, request(tools=[TOOL]))
    found = response.tool_calls[0]
    assert (found.id, found.name) == expected[:2]
    assert found.fault.startswith(expected[2])
    assert bool(found.fault) == bool(expected[2])


# ── forms, reasoning, images ──


async def test_forms_of_replies() -> None:
    """A schema goes along as it stands, or the word `json`."""
    schema = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
    with serve(says=[Say("{}")]) as server:
        await call(server, request(reply_format=ReplyFormat("json_schema", schema, "x")))
        await call(server, request(reply_format=ReplyFormat("json_object", {})))
    assert [each.json["format"] for each in server.requests] == [schema, "json"]


@pytest.mark.parametrize(
    ("model", "reasoning", "think"),
    [
        ("qwen3", Reasoning(level="high"), True),
        ("qwen3:8b", Reasoning(), True),
        ("gpt-oss:20b", Reasoning(level="high"), "high"),
        ("gpt-oss", Reasoning(budget_tokens=100), "medium"),
        ("qwen3", None, None),
    ],
)
async def test_thinking(model: str, reasoning: Reasoning | None, think: Any) -> None:
    """Yes or no, and a level for the models that take only that."""
    with serve(says=[Say("4", reasoning="2 + 2")]) as server:
        response = await call(server, request(model=model, reasoning=reasoning))
    assert server.requests[0].json.get("think") == think
    assert (response.content, response.reasoning) == ("4", "2 + 2")


@pytest.mark.parametrize(
    ("text", "answer", "thoughts"),
    [
        ("<think>2 + 2</think>4", "4", "2 + 2"),
        (" \n<think>\n2 < 3\n</think>\n\n4\n", "4\n", "\n2 < 3\n"),
        ("<think>a</thin</think>b", "b", "a</thin"),
        ("<think></think>4", "4", None),
        ("<think>never ends", "", "never ends"),
        ("<think>never ends</thi", "", "never ends</thi"),
        ("<thinking>4</thinking>", "<thinking>4</thinking>", None),
        ("<thi", "<thi", None),
        ("  4 <think>x</think>", "  4 <think>x</think>", None),
        ("<think>a</think>say <think>b</think>", "say <think>b</think>", "a"),
        ("", "", None),
        (" \n ", " \n ", None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_inside_the_text(text: str, answer: str, thoughts: str | None, stream: bool) -> None:
    """`<think>` at the beginning is taken out, wherever the pieces are cut; later it is part of the answer."""
    for size in range(1, len(text) + 2):
        taken = ThinkingFilter()
        parts = [taken.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join([*parts, taken.finish()]) == answer
        assert ("".join(taken.thoughts) or None) == thoughts
    seen: list[str] = []
    with serve(says=[Say(text)]) as server:
        response = await call(server, request(stream=stream), seen)
    assert (response.content, response.reasoning) == (answer, thoughts)
    assert "".join(seen) == (answer if stream else "")


async def test_images() -> None:
    """As base64 beside the text."""
    image = Attachment("image", "image/png", b"\x89PNG1234")
    with serve() as server:
        await call(server, request(Message("user", "what is it?", attachments=(image,))))
    assert server.requests[0].json["messages"][0] == {
        "role": "user",
        "content": "what is it?",
        "images": ["iVBORzEyMzQ="],
    }


@pytest.mark.parametrize(
    ("attachment", "why"),
    [
        (Attachment("pdf", "application/pdf", b"%PDF"), "takes no PDF attachments"),
        (Attachment("audio", "audio/wav", b"RIFF"), "takes no audio attachments"),
        (
            Attachment("image", "image/png", url="https://x/a.png"),
            "takes images only as data, not by their address; set `fetch: local`",
        ),
        (Attachment("image", "image/png", b"x"), None),
    ],
)
async def test_attachments_that_are_not_taken(attachment: Attachment, why: str | None) -> None:
    """Told before anything is sent."""
    assert OllamaProvider().lacks(request(Message("user", "x", attachments=(attachment,)))) == why


# ── embeddings ──


async def test_embeddings_in_batches() -> None:
    """A hundred texts a call, in their order."""
    texts = ["x" * at for at in range(1, 151)]
    with serve() as server:
        provider = OllamaProvider(server.url)
        response = await provider.embed(EmbeddingRequest("nomic-embed-text", texts, dimensions=3))
        await provider.close()
    assert response.vectors == [vector(text, 3) for text in texts]
    assert (response.usage, response.cost_usd) == (Usage(150, 0, 150), 0.0)
    assert [len(each.json["input"]) for each in server.requests] == [100, 50]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{}", "the answer has 0 vectors for 1 texts"),
        ('{"embeddings": [[1], [2]]}', "the answer has 2 vectors for 1 texts"),
        ('{"embeddings": [["x"]]}', "or some are none"),
        ('{"error": "out of memory"}', "the server reports an error: out of memory"),
    ],
)
async def test_embeddings_that_are_none(body: str, words: str) -> None:
    """The answer is broken, and may be asked for again."""
    with serve(body_of(body)) as server:
        provider = OllamaProvider(server.url)
        with pytest.raises(ProviderError) as caught:
            await provider.embed(EmbeddingRequest("nomic-embed-text", ["x"]))
        await provider.close()
    assert words in str(caught.value)
    assert (caught.value.status_code, caught.value.permanent) == (None, False)


# ── what can go wrong ──


@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_is_not_there(stream: bool) -> None:
    """The cure is said, and no attempt helps."""
    with serve() as server:
        with pytest.raises(ProviderError) as caught:
            await call(server, request(model="missing:7b", stream=stream))
        provider = OllamaProvider(server.url)
        with pytest.raises(ProviderError, match="run `ollama pull missing`"):
            await provider.embed(EmbeddingRequest("missing", ["x"]))
        await provider.close()
    assert str(caught.value) == (
        "Provider 'ollama': API error 404: model 'missing:7b' not found; run `ollama pull missing:7b`"
    )
    assert (caught.value.status_code, caught.value.permanent) == (404, True)


async def test_a_server_that_does_not_run() -> None:
    """The cure is said; it may run later."""
    with serve() as server:
        url = server.url
    provider = OllamaProvider(url)
    with pytest.raises(ProviderError) as caught:
        await provider.complete(request())
    await provider.close()
    assert str(caught.value).startswith(f"Provider 'ollama': can't connect to {url}/api/chat")
    assert str(caught.value).endswith("is the server running? `ollama serve` starts it")
    assert (caught.value.status_code, caught.value.permanent) == (None, False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [code for code in MODES if code.isdigit() and code != "404"])
async def test_every_status_is_handed_on(status: str, stream: bool) -> None:
    """GW-7, in the words of Ollama's errors."""
    error = await failure(status, stream=stream)
    assert str(error) == f"Provider 'ollama': API error {status}: refused with {status}"
    assert (error.status_code, error.permanent) == (int(status), False)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("date", 30.0)])
async def test_retry_after(header: str, seconds: float) -> None:
    """GW-5: seconds or a date."""
    assert (await failure(f"503/{header}", stream=True)).retry_after == seconds


@pytest.mark.parametrize(
    ("mode", "stream", "words"),
    [
        ("malformed", False, "the answer is not JSON"),
        ("malformed", True, 'the answer is not JSON: {"choices": [}'),
        ("html", True, "the answer is not JSON: <html>"),
        ("empty", False, "the answer is empty"),
        ("empty", True, "the answer broke off before its end"),
        ("array", False, "the answer is JSON, but not an object"),
        (body_of("{}"), False, "the answer has no `message`"),
        (body_of('{"message": {"content": 7}}'), False, "the answer's `message.content` is not a text"),
        (events_of('{"message": {"content": [7]}}'), True, "the answer's `message.content` is not a text"),
        (body_of('{"error": "out of memory"}'), False, "the server reports an error: out of memory"),
        (body_of("[" * 100_000), False, "the answer is not JSON: [[["),
        (events_of("[" * 100_000), True, "the answer is not JSON: [[["),
        ("cut-event", True, "the answer broke off before its end"),
        ("cut-between-events", True, "the answer broke off before its end"),
        ("cut-connection", True, "broke off its answer, or speaks no proper HTTP"),
        ("cut-character", True, "broke off its answer, or speaks no proper HTTP"),
        ("cut-body", False, "broke off its answer, or speaks no proper HTTP"),
        ("close", False, "broke off its answer, or speaks no proper HTTP"),
        ("reset", True, "dropped the connection"),
    ],
)
async def test_a_broken_answer_may_be_tried_again(mode: Any, stream: bool, words: str) -> None:
    """GW-1: what isn't a status is transient."""
    error = await failure(mode, stream=stream)
    assert words in str(error)
    assert (error.status_code, error.permanent) == (None, False)


@pytest.mark.parametrize("mode", ["cut-event", "cut-connection", "cut-character", "malformed"])
async def test_what_arrived_before_the_break_was_shown(mode: str) -> None:
    """Never half a character."""
    seen: list[str] = []
    await failure(mode, stream=True, seen=seen)
    assert "".join(seen) == REPLY[:8]


async def test_an_error_in_the_middle_of_a_stream() -> None:
    """Ollama tells of it in a line of its own, after what came before."""
    lines = ('{"message": {"content": "Once"}, "done": false}', '{"error": "an error was encountered: killed"}')
    seen: list[str] = []
    error = await failure(events_of(*lines), stream=True, seen=seen)
    assert str(error) == "Provider 'ollama': the server reports an error: an error was encountered: killed"
    assert seen == ["Once"]


@pytest.mark.parametrize(("mode", "stream"), [("slow", True), ("drip", False), ("slow-stream", True)])
async def test_silence_has_an_end(mode: str, stream: bool) -> None:
    """PR-6: after 120 s, or less if the program says so."""
    error = await failure(mode, stream=stream, timeout=SHORT)
    assert str(error).endswith("/api/chat within 0.2 s")
