"""The vendors' own Python clients against the same loopback server: so its answers are theirs, and what we send is what they send."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from google import genai
from google.genai import errors, types

from agentloom.providers.base import Attachment, Message, Reasoning, ReplyFormat, ToolCall, ToolChoice, ToolSpec
from agentloom.providers.google import GoogleProvider
from agentloom.providers.schemas import anthropic_schema
from agentloom.providers.secret import Secret
from tests.providers.vendors import ASKED, CLAUDE, GEMINI, TIME, WEATHER
from tests.wire.anthropic_format import signed
from tests.wire.formats import KEY, Call, Say, vector
from tests.wire.google_format import camel
from tests.wire.google_format import signed as signed_call
from tests.wire.server import REPLY, WireServer

pytestmark = pytest.mark.anyio

CALLS = (Call("toolu_1", "get_weather", '{"place": "Köln"}'), Call("toolu_2", "get_time", "{}"))
LOOK = Say("let me look", CALLS, reasoning="Köln lies on the Rhine")
PNG = b"\x89PNG"


def client_of(server: WireServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key=KEY, base_url=server.url, max_retries=0)


@pytest.fixture
def claude() -> Iterator[tuple[anthropic.Anthropic, WireServer]]:
    """Anthropic's client and its server, which calls tools first and then answers."""
    with CLAUDE.serve(says=[LOOK, Say("22 degrees")]) as server, client_of(server) as client:
        yield client, server


@pytest.fixture
def gemini() -> Iterator[tuple[genai.Client, WireServer]]:
    """Google's client and its server, which calls tools first and then answers."""
    with GEMINI.serve(says=[LOOK, Say("22 degrees")]) as server:
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url, api_version="v1beta"))
        yield client, server
        client.close()


# ── Anthropic ──

TOOLS: Any = [
    {"name": "get_weather", "description": "The weather.", "input_schema": dict(WEATHER.parameters)},
    {"name": "get_time", "description": "The time.", "input_schema": {"type": "object", "properties": {}}},
]
HI: Any = [{"role": "user", "content": "grüß mich 👋"}]


def test_anthropic_text_and_stream() -> None:
    """Text, reason, usage and model, whole and streamed."""
    with CLAUDE.serve() as server, client_of(server) as client:
        whole = client.messages.create(model=CLAUDE.model, max_tokens=9, messages=HI)
        with client.messages.stream(model=CLAUDE.model, max_tokens=9, messages=HI) as stream:
            pieces = list(stream.text_stream)
            streamed = stream.get_final_message()
    assert len(pieces) == 6
    for message in (whole, streamed):
        assert [block.text for block in message.content if block.type == "text"] == [REPLY]
        assert (message.stop_reason, message.model) == ("end_turn", CLAUDE.model)
        assert (message.usage.output_tokens, message.usage.cache_read_input_tokens) == (len(REPLY.split()), 2)


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_tools_and_thinking(claude: tuple[anthropic.Anthropic, WireServer], stream: bool) -> None:
    """The client's own reading of calls and signed thinking, and the turn of results that it builds from them."""
    client, _ = claude
    more: Any = {
        "model": CLAUDE.model,
        "max_tokens": 4096,
        "tools": TOOLS,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    }
    if stream:
        with client.messages.stream(messages=HI, **more) as events:
            first = events.get_final_message()
    else:
        first = client.messages.create(messages=HI, **more)
    assert first.stop_reason == "tool_use"
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "tool_use"]
    thinking, _, one, two = first.content
    assert thinking.type == "thinking"
    assert (thinking.thinking, thinking.signature) == (LOOK.reasoning, signed(LOOK.reasoning))
    assert one.type == two.type == "tool_use"
    assert (one.input, two.input) == ({"place": "Köln"}, {})
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "x"} for call in (one, two)]
    turns: Any = [*HI, {"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = client.messages.create(messages=turns, **more)
    assert [block.text for block in second.content if block.type == "text"] == ["22 degrees"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400", anthropic.BadRequestError),
        ("401", anthropic.AuthenticationError),
        ("403", anthropic.PermissionDeniedError),
        ("404", anthropic.NotFoundError),
        ("429", anthropic.RateLimitError),
        ("500", anthropic.InternalServerError),
        ("529", anthropic.InternalServerError),
    ],
)
def test_anthropic_errors(status: str, kind: type[anthropic.APIStatusError]) -> None:
    """The client finds status and message where it looks for them."""
    with (
        CLAUDE.serve(status) as server,
        client_of(server) as client,
        pytest.raises(kind, match=f"refused with {status}") as caught,
    ):
        client.messages.create(model=CLAUDE.model, max_tokens=9, messages=HI)
    assert caught.value.status_code == int(status)


async def test_what_we_send_to_anthropic_is_what_its_client_sends() -> None:
    """The same question in both ways: the same body."""
    data = base64.b64encode(PNG).decode()
    turns: Any = [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
                {"type": "text", "text": "look"},
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "get_time", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x", "is_error": True}]},
    ]
    with CLAUDE.serve() as server, client_of(server) as client:
        client.messages.create(
            model="claude-opus-5",
            max_tokens=100,
            system="be brief",
            messages=turns,
            tools=TOOLS[1:],
            tool_choice={"type": "tool", "name": "get_time"},
        )
        await CLAUDE.call(
            server,
            CLAUDE.ask(
                Message("system", "be brief"),
                Message("user", "look", attachments=(Attachment("image", "image/png", PNG),)),
                Message("assistant", "", tool_calls=(ToolCall("1", "get_time", {}),)),
                Message("tool", "x", name="get_time", tool_call_id="1", is_error=True),
                model="claude-opus-5",
                max_tokens=100,
                tools=[TIME],
                tool_choice=ToolChoice("tool", "get_time"),
            ),
        )
        client.messages.create(
            model="claude-opus-5",
            max_tokens=9000,
            messages=[{"role": "user", "content": [{"type": "text", "text": "grüß mich 👋"}]}],
            thinking={"type": "adaptive", "display": "summarized"},
            output_config={
                "effort": "low",
                "format": {
                    "type": "json_schema",
                    "schema": anthropic.transform_schema({"type": "object", "properties": {"n": {"type": "integer"}}}),
                },
            },
            stream=True,
        ).close()
        await CLAUDE.call(
            server,
            CLAUDE.ask(
                ASKED,
                model="claude-opus-5",
                max_tokens=9000,
                reasoning=Reasoning(None, "low"),
                reply_format=ReplyFormat("json_schema", {"type": "object", "properties": {"n": {"type": "integer"}}}),
                stream=True,
            ),
        )
    theirs, ours, theirs_too, ours_too = [request.json for request in server.requests]
    assert ours == theirs
    assert ours_too == theirs_too


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {"n": {"type": "integer", "title": "N", "description": "D"}},
            "required": ["n"],
        },
        {
            "type": "array",
            "items": {"anyOf": [{"type": "null"}, {"enum": ["a", 1, None]}, {"const": "x"}]},
            "minItems": 1,
        },
        {
            "$ref": "#/$defs/A",
            "$defs": {"A": {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}}},
        },
        {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "boolean"}}}]},
        {"allOf": [{"type": "number"}]},
    ],
)
def test_anthropic_schemas(schema: dict[str, Any]) -> None:
    """What we make of a schema is what the vendor's client makes of it."""
    assert anthropic_schema(schema) == anthropic.transform_schema(schema)


# ── Google ──


def declared(spec: ToolSpec) -> types.FunctionDeclaration:
    return types.FunctionDeclaration(name=spec.name, description=spec.description)


def test_google_text_and_stream() -> None:
    """Text, reason, usage and model, whole and streamed."""
    with GEMINI.serve() as server:
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url))
        whole = client.models.generate_content(model=GEMINI.model, contents="hi")
        parts = list(client.models.generate_content_stream(model=GEMINI.model, contents="hi"))
        client.close()
    assert (whole.text, "".join(part.text or "" for part in parts)) == (REPLY, REPLY)
    assert len(parts) == 6
    for answer in (whole, parts[-1]):
        assert answer.candidates
        assert answer.usage_metadata
        assert answer.candidates[0].finish_reason is types.FinishReason.STOP
        assert answer.usage_metadata.candidates_token_count == len(REPLY.split())
        assert answer.model_version == "gemini-2.5-flash-001"


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3-flash"])
def test_google_tools_and_thinking(gemini: tuple[genai.Client, WireServer], model: str) -> None:
    """The client's own reading of calls, thoughts and signatures, and the turn of results that it builds from them."""
    client, _ = gemini
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared(WEATHER), declared(TIME)])],
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=100),
    )
    first = client.models.generate_content(model=model, contents="hi", config=config)
    assert first.candidates
    assert first.usage_metadata
    content = first.candidates[0].content
    assert content
    assert content.parts
    thought, text, one, two = content.parts
    assert (thought.thought, thought.text, text.text) == (True, LOOK.reasoning, "let me look")
    assert one.function_call
    assert two.function_call
    assert (one.function_call.args, two.function_call.args) == ({"place": "Köln"}, {})
    assert one.thought_signature == base64.b64decode(signed_call("get_weather"))
    assert first.usage_metadata.thoughts_token_count == len(LOOK.reasoning.split())
    results = [
        types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"result": "x"}))
        for call in (one.function_call, two.function_call)
    ]
    turns: Any = [
        types.Content(role="user", parts=[types.Part(text="hi")]),
        content,
        types.Content(role="user", parts=results),
    ]
    assert client.models.generate_content(model=model, contents=turns, config=config).text == "22 degrees"


def test_google_embeddings() -> None:
    """Vectors in the order of the texts."""
    with GEMINI.serve() as server:
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url))
        found = client.models.embed_content(
            model="gemini-embedding-001",
            contents=["a", "bb"],
            config=types.EmbedContentConfig(output_dimensionality=3),
        )
        client.close()
    assert found.embeddings
    assert [one.values for one in found.embeddings] == [vector("a", 3), vector("bb", 3)]


@pytest.mark.parametrize("status", ["400", "403", "404", "429", "500", "503"])
def test_google_errors(status: str) -> None:
    """The client finds status and message where it looks for them."""
    options = types.HttpRetryOptions(attempts=1)
    with GEMINI.serve(status) as server:
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.url, retry_options=options))
        with pytest.raises(errors.APIError, match=f"refused with {status}") as caught:
            client.models.generate_content(model=GEMINI.model, contents="hi")
        client.close()
    assert caught.value.code == int(status)


async def test_what_we_send_to_google_is_what_its_client_sends(gemini: tuple[genai.Client, WireServer]) -> None:
    """The same question in both ways: the same body and the same address."""
    client, server = gemini
    contents: Any = [
        types.Content(
            role="user",
            parts=[types.Part.from_bytes(data=PNG, mime_type="image/png"), types.Part(text="look")],
        ),
        types.Content(
            role="model", parts=[types.Part(function_call=types.FunctionCall(id="1", name="get_time", args={}))]
        ),
        types.Content(
            role="user",
            parts=[
                types.Part(function_response=types.FunctionResponse(id="1", name="get_time", response={"error": "x"}))
            ],
        ),
    ]
    client.models.generate_content(
        model=GEMINI.model,
        contents=contents,
        config=types.GenerateContentConfig(
            system_instruction=types.Content(parts=[types.Part(text="be brief")]),
            temperature=0.5,
            max_output_tokens=9000,
            tools=[types.Tool(function_declarations=[declared(TIME)])],
            tool_config=types.ToolConfig(
                function_calling_config=types.FunctionCallingConfig(
                    mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["get_time"]
                )
            ),
            thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=50),
        ),
    )
    await GEMINI.call(
        server,
        GEMINI.ask(
            Message("system", "be brief"),
            Message("user", "look", attachments=(Attachment("image", "image/png", PNG),)),
            Message("assistant", "", tool_calls=(ToolCall("1", "get_time", {}),)),
            Message("tool", "x", name="get_time", tool_call_id="1", is_error=True),
            temperature=0.5,
            max_tokens=9000,
            tools=[TIME],
            tool_choice=ToolChoice("tool", "get_time"),
            reasoning=Reasoning(50),
        ),
    )
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}
    client.models.generate_content(
        model=GEMINI.model,
        contents=types.Content(role="user", parts=[types.Part(text="grüß mich 👋")]),
        config=types.GenerateContentConfig(
            response_mime_type="application/json",
            response_schema={**schema, "property_ordering": ["n"]},
        ),
    )
    provider = GoogleProvider(server.url, Secret(KEY))
    await provider.complete(GEMINI.ask(ASKED, reply_format=ReplyFormat("json_schema", schema)))
    await provider.close()
    theirs, ours, theirs_too, ours_too = server.requests
    assert (ours.json, ours.path) == (camel(theirs.json), theirs.path)
    assert ours_too.json == camel(theirs_too.json)
