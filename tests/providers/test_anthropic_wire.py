"""Anthropic's client against a strict server on loopback: what each model is sent, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom.errors import ProviderError
from agentloom.providers.anthropic import NEWEST, version_of
from agentloom.providers.base import (
    Attachment,
    EmbeddingRequest,
    Message,
    Reasoning,
    ReplyFormat,
    ToolCall,
    ToolChoice,
    Usage,
)
from tests.providers.vendors import ASKED, CLAUDE, TIME, WEATHER, streamed
from tests.wire.anthropic_format import MODELS, TYPES, signed
from tests.wire.formats import Call, Say
from tests.wire.server import body_of, events_of

pytestmark = pytest.mark.anyio

CALLS = (Call("toolu_1", "get_weather", '{"place": "Köln"}'), Call("toolu_2", "get_time", "{}"))
SCHEMA = {
    "type": "object",
    "properties": {"label": {"enum": ["a", "b"]}, "score": {"type": "number", "minimum": 0}},
    "required": ["label"],
}
sent = CLAUDE.sent


# ── text ──


async def test_the_request_holds_what_was_asked_for_and_nothing_else() -> None:
    """`max_tokens` is always said, since the API wants it; the system prompt stands apart."""
    with CLAUDE.serve() as server:
        await CLAUDE.call(server, CLAUDE.ask(idempotency_key="k"))
        await CLAUDE.call(server, CLAUDE.ask(temperature=0.0, max_tokens=5, stream=True))
    first, second = server.requests
    messages = [{"role": "user", "content": [{"type": "text", "text": "grüß mich 👋"}]}]
    plain = {"model": CLAUDE.model, "messages": messages, "system": "be brief"}
    assert first.json == {**plain, "max_tokens": 4096}
    assert second.json == {**plain, "max_tokens": 5, "temperature": 0.0, "stream": True}
    assert (first.method, first.path) == ("POST", "/v1/messages")
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert first.headers["idempotency-key"] == "k"
    assert second.headers["accept"] == "text/event-stream"


async def test_usage_counts_cached_tokens_as_prompt() -> None:
    """They are tokens of the prompt, whatever they cost; thinking is a part of the reply."""
    with CLAUDE.serve(says=[Say("two words", reasoning="one two three")]) as server:
        for stream in (False, True):
            usage = (await CLAUDE.call(server, CLAUDE.ask(stream=stream))).usage
            assert usage == Usage(prompt_tokens=3 + 2 + 3, completion_tokens=5, total_tokens=13, reasoning_tokens=3)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
    ],
)
@streamed
async def test_why_a_reply_ended(stop: str, reason: str, stream: bool) -> None:
    """In OpenAI's words, so that a workflow needs not ask who answered; a word without a counterpart stays."""
    with CLAUDE.serve(says=[Say("x", finish=stop)]) as server:
        assert (await CLAUDE.call(server, CLAUDE.ask(stream=stream))).finish_reason == reason


@streamed
async def test_a_refusal_without_text_is_a_reply(stream: bool) -> None:
    """An empty one, whose reason is told."""
    with CLAUDE.serve(says=[Say("", finish="refusal")]) as server:
        response = await CLAUDE.call(server, CLAUDE.ask(stream=stream))
    assert (response.content, response.finish_reason) == ("", "content_filter")


async def test_a_conversation_takes_the_form_that_the_api_wants() -> None:
    """System turns go to the top, neighbours of one role become one turn, empty turns go, and the user begins."""
    body = await sent(
        Message("system", "one"),
        Message("assistant", "hello"),
        Message("user", "a"),
        Message("system", "two"),
        Message("user", "b"),
        Message("assistant", ""),
    )
    assert body["system"] == "one\n\ntwo"
    texts = [(turn["role"], [block["text"] for block in turn["content"]]) for turn in body["messages"]]
    assert texts == [("user", ["(The conversation goes on.)"]), ("assistant", ["hello"]), ("user", ["a", "b"])]


async def test_speakers_stand_in_the_text_where_there_are_several() -> None:
    """The format has no names for turns."""
    alone = await sent(Message("user", "a", name="ann"), Message("assistant", "b"), Message("user", "c", name="ann"))
    assert [turn["content"][0]["text"] for turn in alone["messages"]] == ["a", "b", "c"]
    several = await sent(Message("user", "a", name="ann"), Message("assistant", "b", name="bob"), Message("user", "c"))
    assert [turn["content"][0]["text"] for turn in several["messages"]] == ["ann: a", "bob: b", "c"]


@pytest.mark.parametrize("kind", sorted(TYPES.values()))
async def test_an_error_inside_a_stream_has_the_status_of_its_kind(kind: str) -> None:
    """The server has said 200 already."""
    event = json.dumps({"type": "error", "error": {"type": kind, "message": "no luck"}})
    with CLAUDE.serve(events_of(event)) as server, pytest.raises(ProviderError) as caught:
        await CLAUDE.call(server, CLAUDE.ask(stream=True))
    status = next(code for code, name in TYPES.items() if name == kind)
    assert str(caught.value) == f"Provider 'anthropic': API error {status}: no luck"
    assert caught.value.status_code == status


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (
            [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}],
            "has no beginning",
        ),
        (
            [
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 7}},
            ],
            "`text` is not a text",
        ),
        (
            [
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "tool_use", "id": "", "name": "f"},
                },
                {"type": "message_stop"},
            ],
            "`tool_use` has no `id`",
        ),
        ([{"type": "message_stop"}], ""),
        ([{"type": "a_new_event"}, {"type": "ping"}, {"type": "message_stop"}], ""),
    ],
)
async def test_odd_events(events: list[dict[str, Any]], words: str) -> None:
    """What is unknown is passed over, as the documentation asks; what is wrong is told."""
    with CLAUDE.serve(events_of(*map(json.dumps, events))) as server:
        if not words:
            assert (await CLAUDE.call(server, CLAUDE.ask(stream=True))).content == ""
            return
        with pytest.raises(ProviderError, match=words):
            await CLAUDE.call(server, CLAUDE.ask(stream=True))


# ── tools ──


@streamed
async def test_a_tool_loop_with_parallel_calls(stream: bool) -> None:
    """Both calls come back with their text; their results go into one user turn, in order, failures marked as such."""
    says = [Say("let me look", CALLS), Say("22 degrees")]
    with CLAUDE.serve(says=says) as server:
        first = await CLAUDE.call(server, CLAUDE.ask(tools=[WEATHER, TIME], stream=stream))
        calls = (ToolCall("toolu_1", "get_weather", {"place": "Köln"}), ToolCall("toolu_2", "get_time", {}))
        assert (first.content, first.tool_calls, first.finish_reason) == ("let me look", calls, "tool_calls")
        assert first.carried == {}
        turns = [
            ASKED,
            Message("assistant", first.content, tool_calls=first.tool_calls, carried=first.carried),
            Message("tool", "22 °C", name="get_weather", tool_call_id="toolu_1"),
            Message("tool", "broken", name="get_time", tool_call_id="toolu_2", is_error=True),
            Message("user", "and?"),
        ]
        second = await CLAUDE.call(server, CLAUDE.ask(*turns, tools=[WEATHER, TIME], stream=stream))
    assert second.content == "22 degrees"
    body = server.requests[1].json
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "let me look"},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"place": "Köln"}},
                {"type": "tool_use", "id": "toolu_2", "name": "get_time", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "22 °C"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "broken", "is_error": True},
                {"type": "text", "text": "and?"},
            ],
        },
    ]
    assert body["tools"] == [
        {"name": "get_weather", "description": "The weather.", "input_schema": WEATHER.parameters},
        {"name": "get_time", "description": "The time.", "input_schema": {"type": "object", "properties": {}}},
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [("", ""), ('{"a": ', "the arguments are not JSON"), ("[1]", "the arguments are not a JSON object")],
)
async def test_arguments_that_cannot_be_read_are_told(text: str, fault: str) -> None:
    """And come back to the API as no arguments."""
    events = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "1", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    with CLAUDE.serve(events_of(*map(json.dumps, events))) as server:
        response = await CLAUDE.call(server, CLAUDE.ask(stream=True))
    (call,) = response.tool_calls
    assert call.arguments == {}
    assert call.fault.startswith(fault)
    assert bool(call.fault) == bool(fault)


CHOICES = [
    (ToolChoice(), CLAUDE.model, None, False),
    (ToolChoice("required"), CLAUDE.model, {"type": "any"}, False),
    (ToolChoice("tool", "get_time"), CLAUDE.model, {"type": "tool", "name": "get_time"}, False),
    (ToolChoice("required"), "claude-opus-5-5", None, True),
    (ToolChoice("tool", "get_time"), "claude-opus-5-5", None, True),
]


@pytest.mark.parametrize(("choice", "model", "wire", "is_told"), CHOICES)
async def test_the_choice_of_a_tool(
    choice: ToolChoice, model: str, wire: dict[str, str] | None, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """LC-3; a model that refuses to be forced is told in words, and the log says so."""
    body = await sent(tools=[WEATHER, TIME], tool_choice=choice, model=model)
    assert body.get("tool_choice") == wire
    assert ("calling" in body["system"]) == is_told
    assert ("can't be made to call a tool" in caplog.text) == is_told


async def test_no_tools_are_no_tools() -> None:
    """LC-3: `none` takes the tools away; only a history of calls keeps them, which the API wants described."""
    body = await sent(tools=[WEATHER], tool_choice=ToolChoice("none"))
    assert "tools" not in body
    assert "tool_choice" not in body
    turns = [
        ASKED,
        Message("assistant", "", tool_calls=(ToolCall("1", "get_weather", {}),)),
        Message("tool", "x", name="get_weather", tool_call_id="1"),
    ]
    body = await sent(*turns, tools=[WEATHER], tool_choice=ToolChoice("none"))
    assert (len(body["tools"]), body["tool_choice"]) == (1, {"type": "none"})
    body = await sent(*turns)
    stand_in = {"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}
    assert (body["tools"], body["tool_choice"]) == ([stand_in], {"type": "none"})


async def test_empty_texts_are_left_out_beside_others() -> None:
    """The API refuses them: what a template left empty doesn't spoil the turns around it."""
    asked = {"role": "user", "content": [{"type": "text", "text": ASKED.content}]}
    assert (await sent(Message("user", ""), ASKED))["messages"] == [asked]
    assert (await sent(Message("user", " \n"), ASKED))["messages"] == [asked]
    empty = Message(
        "assistant",
        "\n\n",
        carried={"anthropic": {"model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "\n\n"}]}},
    )
    two = (await sent(ASKED, empty, Message("user", "Go on."), model="claude-sonnet-4-5"))["messages"]
    assert [block["text"] for block in two[0]["content"]] == [ASKED.content, "Go on."]


# ── thinking ──

THOUGHTS = [
    (CLAUDE.model, Reasoning(2048), {"type": "enabled", "budget_tokens": 2048}, None, 4096),
    (CLAUDE.model, Reasoning(8000), {"type": "enabled", "budget_tokens": 8000}, None, 12096),
    (CLAUDE.model, Reasoning(10), {"type": "enabled", "budget_tokens": 1024}, None, 4096),
    (CLAUDE.model, Reasoning(None, "high"), {"type": "enabled", "budget_tokens": 24576}, None, 28672),
    (CLAUDE.model, Reasoning(), {"type": "enabled", "budget_tokens": 8192}, None, 12288),
    (CLAUDE.model, Reasoning(-1), {"type": "enabled", "budget_tokens": 8192}, None, 12288),
    (CLAUDE.model, Reasoning(0), None, None, 4096),
    ("claude-sonnet-4-6", Reasoning(2048), {"type": "enabled", "budget_tokens": 2048}, None, 4096),
    ("claude-sonnet-4-6", Reasoning(None, "low"), {"type": "adaptive", "display": "summarized"}, "low", 4096),
    ("claude-opus-4-7", Reasoning(2048), {"type": "adaptive", "display": "summarized"}, "low", 4096),
    ("claude-opus-4-7", Reasoning(8192), {"type": "adaptive", "display": "summarized"}, "medium", 12288),
    ("claude-opus-4-7", Reasoning(30000), {"type": "adaptive", "display": "summarized"}, "high", 34096),
    ("claude-opus-5", Reasoning(), {"type": "adaptive", "display": "summarized"}, None, 12288),
    ("claude-opus-5-5", Reasoning(None, "medium"), {"type": "adaptive", "display": "summarized"}, "medium", 12288),
    ("claude-opus-5-5", None, None, None, 12288),
]


@pytest.mark.parametrize(("model", "reasoning", "thinking", "effort", "most"), THOUGHTS)
async def test_how_far_a_model_is_asked_to_think(
    model: str, reasoning: Reasoning | None, thinking: Any, effort: str | None, most: int
) -> None:
    """A budget or a level in the terms of each model, and room for it beside the reply; every one is accepted by the server."""
    body = await sent(model=model, reasoning=reasoning)
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort
    assert body["max_tokens"] == most


async def test_max_tokens_leaves_room_for_a_reply() -> None:
    """What the step asks for stands if the budget leaves anything of it; else it is what the reply may take."""
    assert (await sent(max_tokens=9000, reasoning=Reasoning(2048)))["max_tokens"] == 9000
    assert (await sent(max_tokens=500, reasoning=Reasoning(2048)))["max_tokens"] == 2548


async def test_a_temperature_is_left_out_where_none_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    """Newer models refuse it, and so does one that thinks; the log says it once."""
    assert (await sent(temperature=0.3))["temperature"] == 0.3
    assert (await sent(temperature=1, reasoning=Reasoning(2048)))["temperature"] == 1
    assert caplog.messages == []
    assert "temperature" not in await sent(temperature=0.3, reasoning=Reasoning(2048))
    with CLAUDE.serve() as server:
        provider = CLAUDE.provider(server)
        for _ in range(3):
            await provider.complete(CLAUDE.ask(model="claude-opus-4-7", temperature=0.3))
        await provider.close()
    assert "temperature" not in server.requests[2].json
    assert caplog.messages == [
        "Provider 'anthropic': a model that thinks takes no `temperature`; it is left out",
        "Provider 'anthropic': `claude-opus-4-7` takes no `temperature`; it is left out",
    ]


@streamed
@pytest.mark.parametrize("model", [CLAUDE.model, "claude-opus-5-5"])
async def test_signed_thinking_comes_back_unchanged_with_the_results(model: str, stream: bool) -> None:
    """The server checks the signature, and refuses a turn whose thinking is missing; another model gets none of it."""
    says = [Say("let me look", CALLS, reasoning="Köln lies on the Rhine"), Say("22 degrees")]
    options: dict[str, Any] = {"tools": [WEATHER, TIME], "reasoning": Reasoning(2048), "stream": stream}
    with CLAUDE.serve(says=says) as server:
        first = await CLAUDE.call(server, CLAUDE.ask(model=model, **options))
        assert first.reasoning == "Köln lies on the Rhine"
        turns = [
            ASKED,
            Message("assistant", first.content, tool_calls=first.tool_calls, carried=first.carried),
            *(Message("tool", "x", name=call.name, tool_call_id=call.id) for call in first.tool_calls),
        ]
        second = await CLAUDE.call(server, CLAUDE.ask(*turns, model=model, **options))
        await CLAUDE.call(server, CLAUDE.ask(*turns, model="claude-opus-4-7", **options))
    assert second.content == "22 degrees"
    content = server.requests[1].json["messages"][1]["content"]
    thinking = {"type": "thinking", "thinking": "Köln lies on the Rhine", "signature": signed("Köln lies on the Rhine")}
    assert content[0] == thinking
    assert [block["type"] for block in content] == ["thinking", "text", "tool_use", "tool_use"]
    assert json.loads(json.dumps(first.carried)) == first.carried
    content = server.requests[2].json["messages"][1]["content"]
    assert [block["type"] for block in content] == ["text", "tool_use", "tool_use"]


async def test_hidden_thinking_is_carried_too() -> None:
    """A block that nobody can read, and one whose text the API keeps to itself."""
    blocks = [
        {"type": "redacted_thinking", "data": "abc"},
        {"type": "thinking", "thinking": "", "signature": signed("")},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "1", "name": "get_time", "input": {}},
    ]
    answer = {"type": "message", "content": blocks, "stop_reason": "tool_use", "usage": {}}
    with CLAUDE.serve(body_of(json.dumps(answer))) as server:
        first = await CLAUDE.call(server)
    assert first.reasoning is None
    assert first.carried == {"anthropic": {"model": CLAUDE.model, "content": [*blocks[:2], blocks[3]]}}


# ── the form of replies ──


async def test_a_schema_holds_the_models_that_can_be_held() -> None:
    """Structured outputs take a part of the language; the reply is checked against all of it anyway."""
    wanted = ReplyFormat("json_schema", SCHEMA, description="A verdict.")
    for model in (CLAUDE.model, "claude-sonnet-4-6", "claude-opus-5-5"):
        body = await sent(model=model, reply_format=wanted)
        assert body["output_config"]["format"] == {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {"label": {"enum": ["a", "b"]}, "score": {"type": "number"}},
                "required": ["label"],
                "additionalProperties": False,
            },
        }
        assert body["system"] == "be brief\n\nA verdict."
        assert body["messages"][-1]["role"] == "user"


LOOSE = {"type": "object", "properties": {"any": {"type": "object"}}}
RING = {"type": "object", "properties": {"next": {"$ref": "#"}}}
IN_WORDS = [
    ("claude-3-5-haiku-20241022", ReplyFormat("json_schema", SCHEMA), None, True),
    ("claude-3-5-haiku-20241022", ReplyFormat("json_object", {}), None, True),
    (
        "claude-3-5-haiku-20241022",
        ReplyFormat("json_schema", {"type": "array", "items": {"type": "string"}}),
        None,
        False,
    ),
    (CLAUDE.model, ReplyFormat("json_object", {}), None, True),
    (CLAUDE.model, ReplyFormat("json_object", {}), Reasoning(2048), False),
    (CLAUDE.model, ReplyFormat("json_schema", SCHEMA, strict=False), None, True),
    (CLAUDE.model, ReplyFormat("json_schema", LOOSE), None, True),
    (CLAUDE.model, ReplyFormat("json_schema", RING), None, True),
    ("claude-sonnet-4-6", ReplyFormat("json_object", {}), None, False),
    ("claude-opus-5-5", ReplyFormat("json_schema", LOOSE), None, False),
]


@pytest.mark.parametrize(("model", "wanted", "reasoning", "is_begun"), IN_WORDS)
async def test_other_models_are_told_and_their_reply_begun(
    model: str, wanted: ReplyFormat, reasoning: Reasoning | None, is_begun: bool
) -> None:
    """A suffix of the system prompt, and a reply that begins with `{` where the model takes that."""
    body = await sent(model=model, reply_format=wanted, reasoning=reasoning)
    assert "format" not in body.get("output_config", {})
    assert "JSON" in body["system"]
    assert ('"type"' in body["system"]) == (wanted.type == "json_schema")
    begun = {"role": "assistant", "content": [{"type": "text", "text": "{"}]}
    assert (body["messages"][-1] == begun) == is_begun


@streamed
@pytest.mark.parametrize(
    ("said", "content"), [('"a": 1}', '{"a": 1}'), ('{"a": 1}', '{"a": 1}'), (' {"a": 1}', ' {"a": 1}'), ("", "")]
)
async def test_the_beginning_belongs_to_the_reply(said: str, content: str, stream: bool) -> None:
    """Also in what is streamed; a model that begins anew is taken at its word."""
    seen: list[str] = []
    with CLAUDE.serve(says=[Say(said)]) as server:
        request = CLAUDE.ask(reply_format=ReplyFormat("json_object", {}), stream=stream)
        assert (await CLAUDE.call(server, request, seen)).content == content
    assert "".join(seen) == (content if stream else "")


# ── attachments ──

PNG = Attachment("image", "image/png", b"\x89PNG")
PDF = Attachment("pdf", "application/pdf", b"%PDF-")


async def test_attachments_stand_before_the_text() -> None:
    """As data or as an address; an empty prompt beside them leaves no empty text, which the API refuses."""
    body = await sent(
        Message("user", "look", attachments=(PNG, PDF)),
        Message("assistant", "yes"),
        Message(
            "user",
            "",
            attachments=(
                Attachment("image", "", url="https://example.com/a"),
                Attachment("pdf", "", url="https://e/b"),
            ),
        ),
    )
    assert body["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
        {"type": "text", "text": "look"},
    ]
    assert body["messages"][2]["content"] == [
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a"}},
        {"type": "document", "source": {"type": "url", "url": "https://e/b"}},
    ]


async def test_what_the_api_does_not_take() -> None:
    """Sounds, and texts to make vectors of."""
    with CLAUDE.serve() as server:
        provider = CLAUDE.provider(server)
        sound = Message("user", "x", attachments=(Attachment("audio", "audio/wav", b"x"),))
        assert provider.lacks(CLAUDE.ask(sound)) == "takes no audio attachments"
        assert provider.lacks(CLAUDE.ask(Message("user", "x", attachments=(PNG, PDF)))) is None
        assert not provider.embeds
        with pytest.raises(ProviderError, match="has no embeddings"):
            await provider.embed(EmbeddingRequest("claude", ["x"]))
        await provider.close()
    assert server.requests == []


# ── names of models ──


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-3-7-sonnet-20250219", (3, 7)),
        ("claude-3-opus-latest", (3, 0)),
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-opus-4-1-20250805", (4, 1)),
        ("claude-haiku-4-5", (4, 5)),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", (4, 5)),
        ("anthropic/claude-opus-4.6", (4, 6)),
        ("claude-opus-4@20250514", (4, 0)),
        ("claude-fable-5-2", (5, 2)),
        ("claude-opus-5", (5, 0)),
        ("claude-2.1", (2, 1)),
        ("claude-mythos-preview", NEWEST),
        ("Claude-Opus-5-5", (5, 5)),
    ],
)
def test_the_version_in_a_name(model: str, version: tuple[int, int]) -> None:
    """A date is no version, and a name without one is new."""
    assert version_of(model) == version


@pytest.mark.parametrize("model", MODELS)
async def test_no_model_refuses_what_it_is_sent(model: str) -> None:
    """Whatever is asked for, in any mix: what a model doesn't take is left out, or said in other words."""
    reasonings = [None] if model.startswith("claude-3-5") else [None, Reasoning(2048), Reasoning(None, "high")]
    choices = [ToolChoice(), ToolChoice("required"), ToolChoice("tool", "get_time"), ToolChoice("none")]
    formats = [ReplyFormat("json_object", {}), ReplyFormat("json_schema", SCHEMA), ReplyFormat("json_schema", RING)]
    asked: list[dict[str, Any]] = [{"tools": [WEATHER, TIME], "tool_choice": choice} for choice in choices]
    asked += [{"reply_format": each} for each in formats]
    with CLAUDE.serve() as server:
        provider = CLAUDE.provider(server)
        for reasoning in reasonings:
            for more in asked:
                for options in ({}, {"temperature": 0.2, "max_tokens": 100}):
                    await provider.complete(CLAUDE.ask(model=model, reasoning=reasoning, **more, **options))
        await provider.close()
