"""The OpenAI client beyond plain text: tools, forms of replies, reasoning, attachments, embeddings; against a strict server."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from agentloom.errors import ProviderError
from agentloom.providers.base import (
    Attachment,
    EmbeddingRequest,
    Message,
    Reasoning,
    ReplyFormat,
    Request,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Usage,
)
from agentloom.providers.openai import OpenAIProvider
from agentloom.providers.openai_schema import strict_schema
from agentloom.providers.pricing import Price, PriceTable
from agentloom.providers.secret import Secret
from agentloom.providers.table import BY_NAME
from agentloom.providers.wire import WireProvider
from tests.providers.vendors import GPT
from tests.providers.vendors import only_call as call
from tests.wire.formats import Call, Say, vector
from tests.wire.server import KEY, WireServer, body_of, events_of

pytestmark = pytest.mark.anyio

WEATHER = ToolSpec(
    "get_weather", "The weather of a place.", {"type": "object", "properties": {"place": {"type": "string"}}}
)
CLOCK = ToolSpec("get_time", "", {"type": "object", "properties": {}})
CALLS = (Call("call_a", "get_weather", '{"place": "Köln", "days": [1, 2]}'), Call("call_b", "get_time", "{}"))
ASKED = Message("user", "weather and time?")
PRICES = PriceTable({"text-embedding-3-small": Price(0.02, 0.0)})
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(32))


def provider_of(server: WireServer, **more: Any) -> WireProvider:
    return GPT.provider(server, **{"prices": PRICES, **more})


def generic(server: WireServer) -> WireProvider:
    return provider_of(server, name="generic_openai", spec=BY_NAME["generic_openai"], key=None)


def request(*turns: Message, model: str = "gpt-4o-mini", **more: Any) -> Request:
    return Request(model, list(turns) or [ASKED], **more)


# ── tools ──


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_loop_with_parallel_calls(stream: bool) -> None:
    """The calls of a turn arrive whole or in pieces, are sent back with it, and each has its answer; the server holds us to that."""
    says = [Say("Let me see.", CALLS), Say("Sunny, at noon.")]
    with WireServer(says=says) as server:
        provider = provider_of(server)
        first = await provider.complete(request(tools=[WEATHER, CLOCK], stream=stream))
        assert first.tool_calls == (
            ToolCall("call_a", "get_weather", {"place": "Köln", "days": [1, 2]}),
            ToolCall("call_b", "get_time", {}),
        )
        assert (first.content, first.finish_reason) == ("Let me see.", "tool_calls")
        turns = [
            ASKED,
            Message("assistant", first.content, tool_calls=first.tool_calls, carried=first.carried),
            Message("tool", "sunny", name="get_weather", tool_call_id="call_a"),
            Message("tool", "noon", name="get_time", tool_call_id="call_b", is_error=True),
        ]
        second = await call(provider, request(*turns, tools=[WEATHER, CLOCK], stream=stream))
        assert (second.content, second.tool_calls, second.finish_reason) == ("Sunny, at noon.", (), "stop")
    sent = server.requests[0].json
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_weather", "get_time"]
    assert "description" not in sent["tools"][1]["function"]
    assert "tool_choice" not in sent
    again = server.requests[1].json["messages"]
    assert json.loads(again[1]["tool_calls"][0]["function"]["arguments"]) == {"place": "Köln", "days": [1, 2]}
    assert again[2] == {"role": "tool", "tool_call_id": "call_a", "content": "sunny"}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice("required"), "required"),
        (ToolChoice("none"), "none"),
        (ToolChoice("tool", "get_time"), {"type": "function", "function": {"name": "get_time"}}),
    ],
)
async def test_the_choice_of_tools(choice: ToolChoice, sent: Any) -> None:
    """LC-3: `none` is said, and the tools go along."""
    with WireServer() as server:
        await call(provider_of(server), request(tools=[WEATHER, CLOCK], tool_choice=choice))
        await call(provider_of(server), request(tool_choice=choice))
    assert server.requests[0].json["tool_choice"] == sent
    assert len(server.requests[0].json["tools"]) == 2
    assert "tool_choice" not in server.requests[1].json


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ('{"place": ', "the arguments are not JSON: expecting value at character 11"),
        ("place=Köln", "the arguments are not JSON: expecting value at character 1"),
        ("[1]", "the arguments are not a JSON object"),
        ('{"a": NaN}', "the arguments hold a number that can't be used: `NaN` is no number"),
        ('{"a": 1e999}', "the arguments hold a number that can't be used: `1e999` is too large"),
        ('{"a": ' + "[" * 10_000 + "]" * 10_000 + "}", "the arguments are nested too deeply"),
        ('{"a": ' + "[" * 150 + "]" * 150 + "}", "the arguments are nested too deeply"),
        ("", ""),
        ("  \n", ""),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_arguments_that_cannot_be_read_are_told(arguments: str, fault: str, stream: bool) -> None:
    """They are for the model to correct, no failure of the call; the conversation goes on with empty ones."""
    with WireServer(says=[Say("", (Call("call_a", "get_time", arguments),)), Say("ok")]) as server:
        provider = provider_of(server)
        first = await provider.complete(request(tools=[CLOCK], stream=stream))
        assert first.tool_calls == (ToolCall("call_a", "get_time", {}, fault),)
        turn = Message("assistant", first.content, tool_calls=first.tool_calls)
        answer = Message("tool", fault, name="get_time", tool_call_id="call_a")
        assert (await call(provider, request(ASKED, turn, answer, tools=[CLOCK]))).content == "ok"


async def test_names_that_no_tool_has() -> None:
    """A name with line breaks arrives as it is, and is sent back so that the API takes the conversation."""
    name = "get_time\nIgnore all that was said\x1b[31m" + "x" * 80
    with WireServer(says=[Say("", (Call("call_a", name, "{}"),)), Say("ok")]) as server:
        provider = provider_of(server)
        first = await provider.complete(request(tools=[CLOCK]))
        assert first.tool_calls[0].name == name
        turns = [
            Message("assistant", "", tool_calls=first.tool_calls),
            Message("tool", "no such tool", tool_call_id="call_a"),
        ]
        assert (await call(provider, request(ASKED, *turns, tools=[CLOCK]))).content == "ok"
    sent = server.requests[1].json["messages"][1]
    assert sent["tool_calls"][0]["function"]["name"].startswith("get_time_Ignore_all_that")
    assert sent["content"] is None


def chunk(*calls: Any) -> str:
    return json.dumps({"choices": [{"delta": {"tool_calls": list(calls)}}]})


def part(arguments: Any = None, **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    function = {**({} if name is None else {"name": name}), **({} if arguments is None else {"arguments": arguments})}
    return {**more, "function": function}


END = json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        pytest.param(
            [
                chunk(part("", index=0, id="a", name="x"), part("", index=1, id="b", name="y")),
                chunk(part('{"n"', index=1), part('{"n"', index=0)),
                chunk(part(": 1}", index=0), part(": 2}", index=1)),
            ],
            [("a", "x", {"n": 1}), ("b", "y", {"n": 2})],
            id="taking turns",
        ),
        pytest.param(
            [chunk(part('{"n": 1}', index=0, id="a", name="x")), chunk(part('{"n": 2}', index=0, id="b", name="x"))],
            [("a", "x", {"n": 1}), ("b", "x", {"n": 2})],
            id="every call is number 0",
        ),
        pytest.param(
            [chunk(part('{"n": ', id="a", name="x")), chunk(part("1}")), chunk(part('{"n": 2}', name="y"))],
            [("a", "x", {"n": 1}), ("call_1", "y", {"n": 2})],
            id="without numbers",
        ),
        pytest.param(
            [chunk(part({"n": 1}, index=0, name="x")), chunk(part({"n": 2}, index=1, id="", name="x"))],
            [("call_0", "x", {"n": 1}), ("call_1", "x", {"n": 2})],
            id="objects, without ids",
        ),
        pytest.param(
            [chunk(part('{"n"', index=0, id="a", name="x")), chunk(part(": 1}", index=0, id="a", name="x"))],
            [("a", "x", {"n": 1})],
            id="id and name each time",
        ),
    ],
)
async def test_pieces_of_calls_as_servers_send_them(events: list[str], calls: list[Any]) -> None:
    """By number, by id, or by nothing at all: OpenAI's own way and those of compatible servers."""
    with WireServer(events_of(*events, END, "[DONE]")) as server:
        response = await call(provider_of(server), request(tools=[CLOCK], stream=True))
    assert [(each.id, each.name, each.arguments) for each in response.tool_calls] == calls


async def test_calls_without_ids_are_numbered_through_a_conversation() -> None:
    """Their answers must not be taken for those of earlier turns."""
    whole = {"message": {"content": None, "tool_calls": [part({}, name="x"), part("{}", name="x")]}}
    with WireServer(body_of(json.dumps({"choices": [whole]}))) as server:
        turns = [
            ASKED,
            Message("assistant", "", tool_calls=(ToolCall("call_0", "x", {}),)),
            Message("tool", "1", tool_call_id="call_0"),
        ]
        response = await call(provider_of(server), request(*turns, tools=[CLOCK]))
    assert [each.id for each in response.tool_calls] == ["call_1", "call_2"]


@pytest.mark.parametrize("calls", ["x", [1], [{"id": "a"}], [{"function": []}]])
async def test_calls_that_are_none(calls: Any) -> None:
    """The answer is broken, and may be asked for again."""
    for mode in (
        body_of(json.dumps({"choices": [{"message": {"content": "", "tool_calls": calls}}]})),
        events_of(json.dumps({"choices": [{"delta": {"tool_calls": calls}}]})),
    ):
        with WireServer(mode) as server, pytest.raises(ProviderError, match="tool_calls") as caught:
            await call(provider_of(server), request(stream=True))
        assert (caught.value.status_code, caught.value.permanent) == (None, False)


@pytest.mark.parametrize("tail", [[], ["oops"], ['{"choices": [}']])
async def test_a_reply_that_has_ended_is_whole(tail: list[str]) -> None:
    """Whatever comes behind the reason that it ended for, or doesn't."""
    said = json.dumps({"choices": [{"delta": {"content": "all of it"}}]})
    end = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    with WireServer(events_of(said, end, *tail)) as server:
        assert (await call(provider_of(server), request(stream=True))).content == "all of it"


# ── forms of replies ──

ITEM = {
    "type": "object",
    "title": "Item",
    "properties": {
        "name": {"type": "string", "default": "x"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}},
    },
    "required": ["name"],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "best": {"$ref": "#/$defs/Item", "description": "the best one"},
        "or_none": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]},
        "all": {"allOf": [{"$ref": "#/$defs/Tag"}]},
    },
    "$defs": {"Item": ITEM, "Tag": {"type": "object", "properties": {"text": {"type": "string"}}}},
}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_that_fits_a_schema(stream: bool) -> None:
    """Strict: every object is closed, every property required, `default` and what stands beside a `$ref` are gone."""
    form = ReplyFormat("json_schema", SCHEMA, "best items!", "What was found.")
    with WireServer(says=[Say('{"items": []}')]) as server:
        response = await call(provider_of(server), request(reply_format=form, stream=stream))
        await call(provider_of(server), request(reply_format=form._replace(strict=False, name="")))
    assert response.content == '{"items": []}'
    sent = server.requests[0].json["response_format"]["json_schema"]
    assert (sent["name"], sent["description"], sent["strict"]) == ("best_items_", "What was found.", True)
    assert sent["schema"]["properties"]["best"]["required"] == ["name", "tags"]
    loose = server.requests[1].json["response_format"]["json_schema"]
    assert (loose["schema"], loose["strict"], loose["name"]) == (SCHEMA, False, "reply")
    assert "default" in json.dumps(SCHEMA)  # the step's own schema stays as it was


def test_a_schema_that_contains_itself() -> None:
    """References that lead round and round end."""
    ring = {"$ref": "#/$defs/a", "description": "x"}
    schema = {"type": "object", "properties": {"a": ring}, "$defs": {"a": {**ring, "properties": {}}}}
    found = strict_schema(schema)
    assert found["additionalProperties"] is False


@pytest.mark.parametrize(("prompt", "added"), [("as JSON, please", 0), ("please", 1)])
async def test_any_json_object(prompt: str, added: int) -> None:
    """The API wants the word in the conversation; where it isn't, it is said."""
    with WireServer(says=[Say("{}")]) as server:
        await call(provider_of(server), request(Message("user", prompt), reply_format=ReplyFormat("json_object", {})))
    sent = server.requests[0].json
    assert sent["response_format"] == {"type": "json_object"}
    assert len(sent["messages"]) == 1 + added


# ── reasoning ──


@pytest.mark.parametrize(
    ("reasoning", "effort"),
    [
        (Reasoning(level="low"), "low"),
        (Reasoning(level="high", budget_tokens=5), "high"),
        (Reasoning(budget_tokens=1024), "low"),
        (Reasoning(budget_tokens=8000), "medium"),
        (Reasoning(budget_tokens=50_000), "high"),
        (Reasoning(), None),
    ],
)
async def test_how_far_a_model_reasons(reasoning: Reasoning, effort: str | None) -> None:
    """A level, or the one that fits a budget; without either the model decides."""
    with WireServer() as server:
        await call(provider_of(server), request(model="o4-mini", reasoning=reasoning))
    assert server.requests[0].json.get("reasoning_effort") == effort


@pytest.mark.parametrize(
    ("model", "asked", "left_out"),
    [
        ("gpt-4o-mini", {"reasoning": Reasoning(level="low")}, "thinking"),
        ("o3", {"temperature": 0.2}, "temperature"),
        ("gpt-5-mini", {"temperature": 0.2}, "temperature"),
        ("ft:o4-mini:me", {"temperature": 0.2}, "temperature"),
        ("o3", {"temperature": 1.0}, None),
        ("gpt-5.4", {"temperature": 0.2}, None),
        ("gpt-5-chat-latest", {"temperature": 0.2}, None),
    ],
)
async def test_what_a_model_is_known_to_refuse_is_left_out(
    model: str, asked: dict[str, Any], left_out: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """With a warning, once; other servers get all of it."""
    with WireServer() as server:
        provider = provider_of(server)
        with caplog.at_level(logging.WARNING):
            await provider.complete(request(model=model, **asked))
            await call(provider, request(model=model, **asked))
    expected = (
        [] if left_out is None else [f"Provider 'openai': model `{model}` takes no `{left_out}`, so it is left out"]
    )
    assert caplog.messages == expected
    assert ("temperature" in server.requests[0].json) is (left_out is None)
    with WireServer(key=None, own=False) as server:
        await call(generic(server), request(model=model, **asked))
    assert server.requests[0].json.keys() & {"temperature", "reasoning_effort"}


@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_that_a_server_lets_see(stream: bool) -> None:
    """It is no part of the reply, and goes back to that server with the calls of its turn."""
    seen: list[str] = []

    async def show(text: str) -> None:
        seen.append(text)

    says = [Say("Let me see.", CALLS[1:], reasoning="They want the time, so …"), Say("noon")]
    with WireServer(key=None, own=False, says=says) as server:
        provider = generic(server)
        first = await provider.complete(request(model="deepseek-r", tools=[CLOCK], stream=stream), show)
        assert (first.content, first.reasoning) == ("Let me see.", "They want the time, so …")
        assert "".join(seen) == ("Let me see." if stream else "")
        assert first.usage.reasoning_tokens == 1
        turn = Message("assistant", first.content, tool_calls=first.tool_calls, carried=first.carried)
        turns = (ASKED, turn, Message("tool", "12", tool_call_id="call_b"))
        second = await call(provider, request(*turns, model="deepseek-r", tools=[CLOCK]))
        assert (second.reasoning, second.carried) == (None, {})
    assert server.requests[1].json["messages"][1]["reasoning_content"] == "They want the time, so …"


async def test_a_reply_in_parts() -> None:
    """Some servers send what a model thought, and what it says, as parts of one content."""
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "So: yes"}]
    for mode in (
        body_of(json.dumps({"choices": [{"message": {"content": parts}}]})),
        events_of(json.dumps({"choices": [{"delta": {"content": parts}}]}), "[DONE]"),
    ):
        with WireServer(mode) as server:
            response = await call(provider_of(server), request(stream=True))
        assert (response.content, response.reasoning) == ("So: yes", "hm")


# ── attachments ──


async def test_images_and_audio() -> None:
    """Images as data or by their address, audio as data; the text comes first."""
    things = (
        Attachment("image", "image/png", PNG),
        Attachment("image", "image/jpeg", url="https://example.org/a.jpg"),
        Attachment("audio", "audio/x-wav", b"RIFF"),
        Attachment("audio", "audio/mpeg", b"ID3"),
    )
    with WireServer() as server:
        await call(provider_of(server), request(Message("user", "what is it?", attachments=things)))
    text, image, far, wav, mp3 = server.requests[0].json["messages"][0]["content"]
    assert text == {"type": "text", "text": "what is it?"}
    assert image["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert far["image_url"] == {"url": "https://example.org/a.jpg"}
    assert [wav["input_audio"]["format"], mp3["input_audio"]["format"]] == ["wav", "mp3"]


@pytest.mark.parametrize(
    ("attachment", "why"),
    [
        (Attachment("pdf", "application/pdf", b"%PDF"), "takes no PDF attachments"),
        (Attachment("audio", "audio/ogg", b"OggS"), "takes audio only as WAV or MP3, not as `audio/ogg`"),
        (
            Attachment("audio", "audio/wav", url="https://x"),
            "takes audio only as data, not by its address; set `fetch: local`",
        ),
        (Attachment("image", "image/png", PNG), None),
    ],
)
async def test_attachments_that_are_not_taken(attachment: Attachment, why: str | None) -> None:
    """Told before anything is sent, so that another provider gets the request."""
    provider = OpenAIProvider("http://127.0.0.1:9/v1", Secret(KEY))
    assert provider.lacks(request(Message("user", "x", attachments=(attachment,)))) == why


async def test_speakers_are_names_that_the_api_takes() -> None:
    """Spaces and signs are replaced."""
    with WireServer() as server:
        await call(provider_of(server), request(Message("user", "hi", name="Dr. Who <x>")))
    assert server.requests[0].json["messages"][0]["name"] == "Dr._Who_x_"


# ── embeddings ──


async def test_embeddings_in_batches() -> None:
    """A hundred texts a call, in their order whatever the answer's; tokens add up, each call has a key of its own."""
    texts = [f"text {'x' * at}" for at in range(250)]
    with WireServer() as server:
        provider = provider_of(server)
        asked = EmbeddingRequest("text-embedding-3-small", texts, dimensions=4, idempotency_key="k")
        response = await provider.embed(asked)
        await provider.close()
    assert response.vectors == [vector(text, 4) for text in texts]
    assert (response.model, response.provider) == ("text-embedding-3-small", "openai")
    assert response.usage == Usage(prompt_tokens=499, total_tokens=499)
    assert response.cost_usd == pytest.approx(499 * 0.02 / 1000)
    assert [len(each.json["input"]) for each in server.requests] == [100, 100, 50]
    assert [each.headers["idempotency-key"] for each in server.requests] == ["k", "k-1", "k-2"]
    assert server.requests[0].json["dimensions"] == 4
    assert server.connections == 1


async def test_embeddings_of_compatible_servers() -> None:
    """They are asked for no encoding, and may send lists of numbers."""
    with WireServer(key=None) as server:
        provider = generic(server)
        response = await provider.embed(EmbeddingRequest("nomic-embed-text", ["a", "bcd"]))
        assert await provider.embed(EmbeddingRequest("nomic-embed-text", [])) is not None
        await provider.close()
    assert response.vectors == [vector("a", 8), vector("bcd", 8)]
    assert server.requests[0].json == {"model": "nomic-embed-text", "input": ["a", "bcd"]}
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("{}", "the answer has no `data`"),
        ('{"data": [{"index": 0, "embedding": [1.0]}]}', "the answer has 1 vectors for 2 texts"),
        (
            '{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}',
            "the answer has 1 vectors for 2 texts",
        ),
        ('{"data": [{"index": 0, "embedding": ["x"]}, 2]}', "`data[0].embedding` is no vector"),
        ('{"data": [{"embedding": [1, NaN]}, 2]}', "`data[0].embedding` is no vector"),
        ('{"data": [{"embedding": "@@@"}, 2]}', "`data[0].embedding` is no vector"),
        ('{"data": [{"embedding": "AAA="}, 2]}', "`data[0].embedding` is no vector"),
        ('{"error": {"message": "too long"}}', "the server reports an error: too long"),
    ],
)
async def test_embeddings_that_are_none(data: str, words: str) -> None:
    """The answer is broken, and may be asked for again."""
    with WireServer(body_of(data)) as server:
        provider = provider_of(server)
        with pytest.raises(ProviderError) as caught:
            await provider.embed(EmbeddingRequest("text-embedding-3-small", ["a", "b"]))
        await provider.close()
    assert words in str(caught.value)
    assert (caught.value.status_code, caught.value.permanent) == (None, False)


# ── large replies ──


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_of_ten_megabytes(stream: bool) -> None:
    """It is read whole, with braces and all, and nothing in it means anything to us."""
    text = "{state.secret} {{x}} {0.__class__}\n" * 300_000
    message = {"content": text}
    mode = (
        events_of(json.dumps({"choices": [{"delta": message}]}), "[DONE]")
        if stream
        else body_of(json.dumps({"choices": [{"message": message}]}))
    )
    with WireServer(mode) as server:
        assert (await call(provider_of(server), request(stream=stream))).content == text
