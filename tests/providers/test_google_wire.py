"""Google's client against a strict server on loopback: what is sent, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom.errors import ProviderError, RateLimitError
from agentloom.providers.base import (
    Attachment,
    EmbeddingRequest,
    EmbeddingResponse,
    Message,
    Reasoning,
    ReplyFormat,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Usage,
)
from agentloom.providers.google import NO_SIGNATURE, generation_of
from tests.providers.vendors import ASKED, GEMINI, TIME, WEATHER, streamed
from tests.wire.formats import Call, Say, vector
from tests.wire.google_format import MODELS, signed
from tests.wire.server import WireServer, body_of, events_of

pytestmark = pytest.mark.anyio

CALLS = (Call("", "get_weather", '{"place": "Köln"}'), Call("", "get_time", "{}"))
NEWER = "gemini-3-flash"
NEWEST = "gemini-4-neon"
sent = GEMINI.sent


# ── text ──


async def test_the_request_holds_what_was_asked_for_and_nothing_else() -> None:
    """The model stands in the path, the system prompt apart, the key in a header."""
    with GEMINI.serve() as server:
        await GEMINI.call(server, GEMINI.ask(idempotency_key="k"))
        await GEMINI.call(server, GEMINI.ask(temperature=0.0, max_tokens=5, stream=True))
    first, second = server.requests
    plain = {
        "contents": [{"role": "user", "parts": [{"text": "grüß mich 👋"}]}],
        "systemInstruction": {"parts": [{"text": "be brief"}]},
    }
    assert first.json == plain
    assert second.json == {**plain, "generationConfig": {"temperature": 0.0, "maxOutputTokens": 5}}
    assert (first.method, first.path) == ("POST", "/v1beta/models/gemini-2.5-flash:generateContent")
    assert second.path == "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert first.headers["idempotency-key"] == "k"
    assert second.headers["accept"] == "text/event-stream"


async def test_a_model_of_another_collection_and_odd_names() -> None:
    """A name with a slash is a resource; whatever else stands in a name never leaves its place in the path."""
    with GEMINI.serve() as server:
        for model in ("tunedModels/gemini-mine", "gemini-x?key=y#z:w"):
            with pytest.raises(ProviderError, match="API error 404"):
                await GEMINI.call(server, GEMINI.ask(model=model))
    assert [request.path for request in server.requests] == [
        "/v1beta/tunedModels/gemini-mine:generateContent",
        "/v1beta/models/gemini-x%3Fkey%3Dy%23z%3Aw:generateContent",
    ]


@streamed
async def test_usage_counts_thoughts_as_reply(stream: bool) -> None:
    """The API counts them apart from the candidate's tokens; they are billed as output."""
    with GEMINI.serve(says=[Say("two words", reasoning="one two three")]) as server:
        response = await GEMINI.call(server, GEMINI.ask(stream=stream, reasoning=Reasoning()))
    assert response.usage == Usage(prompt_tokens=3, completion_tokens=5, total_tokens=8, reasoning_tokens=3)
    assert (response.content, response.reasoning) == ("two words", "one two three")
    assert response.model == "gemini-2.5-flash-001"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("LANGUAGE", "language"),
    ],
)
@streamed
async def test_why_a_reply_ended(finish: str, reason: str, stream: bool) -> None:
    """In OpenAI's words; a word without a counterpart stays, in lower case."""
    with GEMINI.serve(says=[Say("x", finish=finish)]) as server:
        assert (await GEMINI.call(server, GEMINI.ask(stream=stream))).finish_reason == reason


@streamed
async def test_a_reply_that_was_stopped_before_it_began(stream: bool) -> None:
    """A candidate without content: an empty reply, whose reason is told."""
    answer = json.dumps({"candidates": [{"finishReason": "SAFETY"}], "usageMetadata": {"promptTokenCount": 4}})
    with GEMINI.serve(events_of(answer) if stream else body_of(answer)) as server:
        response = await GEMINI.call(server, GEMINI.ask(stream=stream))
    assert (response.content, response.finish_reason, response.usage.total_tokens) == ("", "content_filter", 4)


@streamed
async def test_a_prompt_that_is_blocked_is_refused_for_good(stream: bool) -> None:
    """The API says so with a status of 200."""
    answer = json.dumps({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    mode = events_of(answer) if stream else body_of(answer)
    with GEMINI.serve(mode) as server, pytest.raises(ProviderError) as caught:
        await GEMINI.call(server, GEMINI.ask(stream=stream))
    assert str(caught.value) == "Provider 'google': the prompt is blocked: PROHIBITED_CONTENT"
    assert caught.value.permanent


@streamed
async def test_a_call_that_the_server_could_not_read_may_be_tried_again(stream: bool) -> None:
    """The model wrote it badly; it is no reply."""
    answer = json.dumps({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]})
    mode = events_of(answer) if stream else body_of(answer)
    with GEMINI.serve(mode) as server, pytest.raises(ProviderError) as caught:
        await GEMINI.call(server, GEMINI.ask(stream=stream))
    assert "can't be read (MALFORMED_FUNCTION_CALL)" in str(caught.value)
    assert (caught.value.status_code, caught.value.permanent) == (None, False)


async def test_speakers_and_the_order_of_turns() -> None:
    """Neighbours of one role become one turn, the user begins, speakers stand in the text where there are several."""
    body = await sent(
        Message("system", "one"),
        Message("assistant", "hello", name="bob"),
        Message("user", "a", name="ann"),
        Message("user", "b"),
        Message("system", "two"),
    )
    assert body["systemInstruction"] == {"parts": [{"text": "one"}, {"text": "two"}]}
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "(The conversation goes on.)"}]},
        {"role": "model", "parts": [{"text": "bob: hello"}]},
        {"role": "user", "parts": [{"text": "ann: a"}, {"text": "b"}]},
    ]


def quota(delay: Any) -> str:
    """Return the body of a refusal as Google writes it."""
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    return json.dumps(
        {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}}, indent=2
    )


@pytest.mark.parametrize(
    ("delay", "seconds"), [("34s", 34.0), ("34.5s", 34.5), ("34.074824224s", 34.074824224), ("soon", None), (34, None)]
)
async def test_the_wait_that_an_error_asks_for(delay: Any, seconds: float | None) -> None:
    """GW-5: Google says it in the body (`RetryInfo`), also inside a stream."""
    with GEMINI.serve(body_of(quota(delay), 429)) as server, pytest.raises(RateLimitError) as caught:
        await GEMINI.call(server)
    assert caught.value.retry_after == seconds
    inside = json.dumps(json.loads(quota(delay)))
    with GEMINI.serve(events_of(inside)) as server, pytest.raises(RateLimitError) as caught:
        await GEMINI.call(server, GEMINI.ask(stream=True))
    assert (caught.value.retry_after, str(caught.value)) == (seconds, "Provider 'google': API error 429: quota")


# ── tools ──


@streamed
@pytest.mark.parametrize("model", [GEMINI.model, NEWER])
@pytest.mark.parametrize("ids", [("", ""), ("fc1", "fc2")])
async def test_a_tool_loop_with_parallel_calls(ids: tuple[str, str], model: str, stream: bool) -> None:
    """Calls with ids of their own or without; results in one turn, in order; the signature comes back where it stood."""
    says = [Say("let me look", tuple(call._replace(id=id_) for call, id_ in zip(CALLS, ids, strict=True))), Say("22")]
    with GEMINI.serve(says=says) as server:
        first = await GEMINI.call(server, GEMINI.ask(model=model, tools=[WEATHER, TIME], stream=stream))
        one, two = (call.id for call in first.tool_calls)
        assert (one, two) == (ids if ids[0] else ("call-1", "call-2"))
        assert first.tool_calls == (ToolCall(one, "get_weather", {"place": "Köln"}), ToolCall(two, "get_time", {}))
        assert (first.content, first.finish_reason) == ("let me look", "tool_calls")
        turns = [
            ASKED,
            Message("assistant", first.content, tool_calls=first.tool_calls, carried=first.carried),
            Message("tool", "22 °C", name="get_weather", tool_call_id=one),
            Message("tool", "broken", name="get_time", tool_call_id=two, is_error=True),
            Message("user", "and?"),
        ]
        second = await GEMINI.call(server, GEMINI.ask(*turns, model=model, tools=[WEATHER, TIME], stream=stream))
    assert second.content == "22"
    given = [{"id": id_} if id_ else {} for id_ in ids]
    body = server.requests[1].json
    assert body["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "let me look"},
                {
                    "functionCall": {"name": "get_weather", "args": {"place": "Köln"}, **given[0]},
                    "thoughtSignature": signed("get_weather"),
                },
                {"functionCall": {"name": "get_time", "args": {}, **given[1]}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {**given[0], "name": "get_weather", "response": {"result": "22 °C"}}},
                {"functionResponse": {**given[1], "name": "get_time", "response": {"error": "broken"}}},
                {"text": "and?"},
            ],
        },
    ]
    assert json.loads(json.dumps(first.carried)) == first.carried
    place = {
        "type": "OBJECT",
        "properties": {"place": {"type": "STRING"}},
        "required": ["place"],
        "propertyOrdering": ["place"],
    }
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "get_weather", "description": "The weather.", "parameters": place},
                {"name": "get_time", "description": "The time."},
            ]
        }
    ]


async def test_calls_that_others_made() -> None:
    """A conversation that another provider began, or another model: newer models take a stand-in for the signature."""
    turns = [
        ASKED,
        Message(
            "assistant",
            "",
            tool_calls=(ToolCall("toolu_1", "get_time", {}), ToolCall("toolu_2", "get_time", {})),
            carried={"anthropic": {"model": "claude", "content": []}, "google": {"model": "gemini-old", "parts": []}},
        ),
        Message("tool", "x", name="get_time", tool_call_id="toolu_1"),
        Message("tool", "y", name="get_time", tool_call_id="toolu_2"),
    ]
    for model, signature in ((NEWER, {"thoughtSignature": NO_SIGNATURE}), (GEMINI.model, {})):
        body = await sent(*turns, model=model, tools=[TIME])
        assert body["contents"][1]["parts"] == [
            {"functionCall": {"id": "toolu_1", "name": "get_time", "args": {}}, **signature},
            {"functionCall": {"id": "toolu_2", "name": "get_time", "args": {}}},
        ]


async def test_ids_are_new_in_a_conversation() -> None:
    """A second turn of calls without ids gets others than the first one."""
    turns = [
        ASKED,
        Message("assistant", "", tool_calls=(ToolCall("call-1", "get_time", {}),)),
        Message("tool", "x", name="get_time", tool_call_id="call-1"),
    ]
    with GEMINI.serve(says=[Say("", CALLS)]) as server:
        response = await GEMINI.call(server, GEMINI.ask(*turns, tools=[WEATHER, TIME]))
    assert [call.id for call in response.tool_calls] == ["call-2", "call-3"]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice(), None),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("tool", "get_time"), {"mode": "ANY", "allowedFunctionNames": ["get_time"]}),
    ],
)
async def test_the_choice_of_a_tool(choice: ToolChoice, config: dict[str, Any] | None) -> None:
    """LC-3."""
    body = await sent(tools=[WEATHER, TIME], tool_choice=choice)
    assert body.get("toolConfig") == (None if config is None else {"functionCallingConfig": config})


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "7"])
async def test_arguments_that_are_no_object_are_told(arguments: str) -> None:
    """And are empty then."""
    with GEMINI.serve(says=[Say("", (Call("", "get_time", arguments),))]) as server:
        (call,) = (await GEMINI.call(server, GEMINI.ask(tools=[TIME]))).tool_calls
    assert call.arguments == {}
    assert call.fault


SCHEMAS = [
    ({"type": ["string", "null"], "title": "T"}, {"type": "STRING", "nullable": True}),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, {"type": "INTEGER", "nullable": True}),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
    ({"type": ["integer", "string"]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
    ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
    ({"enum": ["a", "b", None]}, {"type": "STRING", "enum": ["a", "b"], "nullable": True}),
    ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER"}),
    ({"type": "string", "format": "email", "pattern": "x"}, {"type": "STRING", "pattern": "x"}),
    ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
    ({"type": "array"}, {"type": "ARRAY", "items": {}}),
    (
        {"type": "array", "items": {"$ref": "#/$defs/Item"}, "maxItems": 3},
        {"type": "ARRAY", "items": {"type": "NUMBER"}, "maxItems": 3},
    ),
    ({"$ref": "#/$defs/Item", "description": "D"}, {"type": "NUMBER", "description": "D"}),
    ({"allOf": [{"$ref": "#/$defs/Item"}], "minimum": 1}, {"type": "NUMBER", "minimum": 1}),
    (True, {}),
]


@pytest.mark.parametrize(("schema", "wire"), SCHEMAS)
async def test_schemas_in_the_words_that_the_api_knows(schema: Any, wire: dict[str, Any]) -> None:
    """As argument of a tool and as a reply's form: the server refuses everything else, such as `$ref`, `title` and lists of types."""
    whole = {"type": "object", "properties": {"x": schema}, "$defs": {"Item": {"type": "number", "examples": [1]}}}
    body = await sent(tools=[ToolSpec("f", "F.", whole)])
    (declared,) = body["tools"][0]["functionDeclarations"]
    assert declared["parameters"]["properties"]["x"] == wire
    body = await sent(
        reply_format=ReplyFormat("json_schema", {**whole, "required": ["x"], "additionalProperties": False})
    )
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"x": wire}, "required": ["x"], "propertyOrdering": ["x"]},
    }


TREE = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
WIDE: dict[str, Any] = {
    "$ref": "#/$defs/a0",
    "$defs": {
        f"a{at}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/a{at + 1}"} for side in "lr"}}
        for at in range(40)
    },
}
WIDE["$defs"]["a40"] = {"type": "string"}


@pytest.mark.parametrize("schema", [TREE, WIDE, {"$ref": "https://example.com/schema"}, {"$ref": "#/$defs/none"}])
async def test_schemas_that_cannot_be_said(schema: dict[str, Any]) -> None:
    """A tool's stands beside as JSON Schema, a reply's in the prompt: one that contains itself, grows without end, or points elsewhere."""
    body = await sent(tools=[ToolSpec("f", "F.", schema)])
    assert body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == schema
    body = await sent(reply_format=ReplyFormat("json_schema", schema))
    assert body["generationConfig"] == {"responseMimeType": "application/json"}
    assert json.dumps(schema) in body["systemInstruction"]["parts"][-1]["text"]


async def test_any_json_object() -> None:
    """Only the type of the reply is asked for; a description goes into the system prompt."""
    body = await sent(reply_format=ReplyFormat("json_object", {}, description="A verdict."))
    assert body["generationConfig"] == {"responseMimeType": "application/json"}
    assert body["systemInstruction"]["parts"][-1] == {"text": "A verdict."}


# ── thinking ──

LEVEL, BUDGET = "thinkingLevel", "thinkingBudget"


@pytest.mark.parametrize(
    ("model", "reasoning", "asked", "most"),
    [
        (GEMINI.model, Reasoning(), {"includeThoughts": True}, 8292),
        (GEMINI.model, Reasoning(-1), {"includeThoughts": True, BUDGET: -1}, 8292),
        (GEMINI.model, Reasoning(0), {"includeThoughts": False, BUDGET: 0}, 100),
        (GEMINI.model, Reasoning(50), {"includeThoughts": True, BUDGET: 50}, 100),
        (GEMINI.model, Reasoning(500), {"includeThoughts": True, BUDGET: 500}, 600),
        (GEMINI.model, Reasoning(None, "low"), {"includeThoughts": True, BUDGET: 1024}, 1124),
        (NEWER, Reasoning(None, "low"), {"includeThoughts": True, LEVEL: "low"}, 1124),
        (NEWER, Reasoning(500, "high"), {"includeThoughts": True, BUDGET: 500}, 600),
        (NEWEST, Reasoning(500, "high"), {"includeThoughts": True, LEVEL: "high"}, 600),
        (NEWEST, Reasoning(8000), {"includeThoughts": True, LEVEL: "medium"}, 8100),
        (NEWEST, Reasoning(9000), {"includeThoughts": True, LEVEL: "high"}, 9100),
        (NEWEST, Reasoning(-1), {"includeThoughts": True}, 8292),
        (NEWEST, Reasoning(0), {"includeThoughts": False, LEVEL: "low"}, 100),
    ],
)
async def test_how_far_a_model_is_asked_to_think(
    model: str, reasoning: Reasoning, asked: dict[str, Any], most: int
) -> None:
    """Budgets before the third generation, levels from the fourth on, either in between, never both; `max_tokens` leaves room for a reply."""
    body = await sent(model=model, reasoning=reasoning)
    assert body["generationConfig"] == {"thinkingConfig": asked}
    body = await sent(model=model, reasoning=reasoning, max_tokens=100)
    assert body["generationConfig"]["maxOutputTokens"] == most


@pytest.mark.parametrize(
    ("model", "generation"), [("gemini-2.5-pro", 2), ("models/gemini-3.8-flash", 3), ("gemini-flash-latest", 99)]
)
def test_the_generation_in_a_name(model: str, generation: int) -> None:
    """A name without a number is new."""
    assert generation_of(model) == generation


# ── attachments ──


async def test_attachments_stand_before_the_text() -> None:
    """Images, PDFs and sounds as data, by the names that the documentation uses for their types."""
    body = await sent(
        Message(
            "user",
            "look",
            attachments=(
                Attachment("image", "image/png", b"\x89PNG"),
                Attachment("pdf", "application/pdf", b"%PDF-"),
                Attachment("audio", "audio/mpeg", b"ID3"),
            ),
        ),
        Message("assistant", "yes"),
        Message("user", "", attachments=(Attachment("audio", "audio/wav", b"RIFF"),)),
    )
    assert body["contents"][0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
        {"inlineData": {"mimeType": "audio/mp3", "data": "SUQz"}},
        {"text": "look"},
    ]
    assert body["contents"][2]["parts"] == [{"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}]


async def test_an_address_is_refused_before_anything_is_sent() -> None:
    """The API downloads nothing."""
    with GEMINI.serve() as server:
        provider = GEMINI.provider(server)
        turn = Message("user", "x", attachments=(Attachment("image", "", url="https://example.com/a"),))
        assert provider.lacks(GEMINI.ask(turn)) == (
            "takes attachments only as data, not by their address; set `fetch: local`"
        )
        await provider.close()


# ── embeddings ──


async def embedded(server: WireServer, request: EmbeddingRequest) -> EmbeddingResponse:
    provider = GEMINI.provider(server)
    try:
        return await provider.embed(request)
    finally:
        await provider.close()


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
async def test_texts_become_vectors_in_batches(count: int) -> None:
    """A hundred a call, in their order; the API tells no tokens, so the length of the texts is billed."""
    texts = ["x" * (at + 1) for at in range(count)]
    with GEMINI.serve() as server:
        found = await embedded(server, EmbeddingRequest("gemini-embedding-001", texts, idempotency_key="k"))
    assert found.vectors == [vector(text, 8) for text in texts]
    assert [len(request.json["requests"]) for request in server.requests] == [
        size for size in (*[100] * (count // 100), count % 100) if size
    ]
    assert len({request.headers["idempotency-key"] for request in server.requests}) == len(server.requests)
    tokens = sum(-(-len(text) // 4) for text in texts)
    assert (found.usage, found.cost_usd) == (Usage(tokens, 0, tokens), pytest.approx(tokens / 1000))
    assert (found.provider, found.model) == ("google", "gemini-embedding-001")


async def test_vectors_of_a_length() -> None:
    """`dimensions` is asked for by the API's own name."""
    with GEMINI.serve() as server:
        found = await embedded(server, EmbeddingRequest("gemini-embedding-001", ["a"], 3))
    assert [len(one) for one in found.vectors] == [3]
    assert server.requests[0].json["requests"] == [
        {"model": "models/gemini-embedding-001", "content": {"parts": [{"text": "a"}]}, "outputDimensionality": 3}
    ]
    assert server.requests[0].path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"embeddings": []},
        {"embeddings": [{"values": [1]}]},
        {"embeddings": [{"values": []}, {"values": [1]}]},
        {"embeddings": [{"values": ["1"]}, {"values": [1]}]},
        {"embeddings": [None, {"values": [1]}]},
    ],
)
async def test_answers_that_are_no_vectors(answer: dict[str, Any]) -> None:
    """One for each text, of numbers, or another attempt."""
    with (
        GEMINI.serve(body_of(json.dumps(answer))) as server,
        pytest.raises(ProviderError, match="`embeddings`") as caught,
    ):
        await embedded(server, EmbeddingRequest("gemini-embedding-001", ["a", "b"]))
    assert not caught.value.permanent


@pytest.mark.parametrize("model", MODELS[:-1])
async def test_no_model_refuses_what_it_is_sent(model: str) -> None:
    """Whatever is asked for, in any mix."""
    choices = [ToolChoice(), ToolChoice("required"), ToolChoice("tool", "get_time"), ToolChoice("none")]
    asked: list[dict[str, Any]] = [{"tools": [WEATHER, TIME], "tool_choice": choice} for choice in choices]
    asked += [{"reply_format": each} for each in (ReplyFormat("json_object", {}), ReplyFormat("json_schema", TREE))]
    with GEMINI.serve() as server:
        provider = GEMINI.provider(server)
        for reasoning in (None, Reasoning(2048), Reasoning(None, "high"), Reasoning(100, "low")):
            for more in asked:
                for options in ({}, {"temperature": 0.2, "max_tokens": 100}):
                    await provider.complete(GEMINI.ask(model=model, reasoning=reasoning, **more, **options))
        await provider.close()
