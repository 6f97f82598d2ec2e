"""Replies of any shape: JSON with the names that the formats use, and whatever values; there is an answer or a `ProviderError`."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom.errors import ProviderError
from agentloom.providers.base import Message, Request, ToolCall
from agentloom.providers.ollama import OllamaProvider, OllamaReply
from agentloom.providers.openai import OpenAIProvider
from agentloom.providers.openai_reply import ChatReply
from agentloom.providers.openai_schema import strict_schema
from agentloom.providers.reading import read_arguments
from agentloom.providers.sse import Event

NAMES = [
    "choices",
    "message",
    "delta",
    "content",
    "refusal",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "type",
    "text",
    "thinking",
    "reasoning",
    "reasoning_content",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "completion_tokens_details",
    "reasoning_tokens",
    "model",
    "error",
    "code",
    "data",
    "embedding",
    "embeddings",
    "done",
    "done_reason",
    "eval_count",
    "prompt_eval_count",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["stop", "{}", "text"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)),
    max_leaves=20,
)
FUNCTION = st.fixed_dictionaries({}, optional={"name": VALUES, "arguments": VALUES})
CALL = st.one_of(VALUES, st.fixed_dictionaries({"function": FUNCTION}, optional={"id": VALUES, "index": VALUES}))
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "content": VALUES,
        "tool_calls": st.one_of(VALUES, st.lists(CALL, max_size=3)),
        "thinking": VALUES,
        "reasoning": VALUES,
    },
)
CHOICE = st.one_of(
    VALUES, st.fixed_dictionaries({}, optional={"message": MESSAGE, "delta": MESSAGE, "finish_reason": VALUES})
)
OBJECT = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICE, max_size=2),
        "message": MESSAGE,
        "usage": VALUES,
        "error": VALUES,
        "data": st.lists(st.fixed_dictionaries({"embedding": VALUES}, optional={"index": VALUES}), max_size=2),
        "done": VALUES,
    },
)


ASKED = Request("m", [Message("user", "x")])


def plain(calls: tuple[ToolCall, ...]) -> None:
    """Whatever a call holds can be written as JSON again, and is of the types that it says."""
    for call in calls:
        assert isinstance(call.id, str)
        assert isinstance(call.name, str)
        assert not call.fault or call.arguments == {}
        json.dumps(call.arguments, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(st.lists(OBJECT, min_size=1, max_size=3))
def test_replies_in_the_format_of_openai(objects: list[dict[str, Any]]) -> None:
    """Whole, in pieces, and as vectors."""
    provider = OpenAIProvider("http://127.0.0.1:9/v1")
    reply, whole = ChatReply(), ChatReply()
    try:
        for data in objects:
            reply.pieces.extend(provider._take_event(provider._data_of(Event(json.dumps(data))), reply))
    except ProviderError:
        pass
    provider._finish(reply, ASKED)
    plain(tuple(reply.calls))
    assert all(isinstance(piece, str) for piece in [*reply.pieces, *reply.reasoning])
    try:
        provider._take_whole(objects[0], whole)
    except ProviderError:
        pass
    else:
        provider._finish(whole, ASKED)
        plain(tuple(whole.calls))
        assert whole.usage.total_tokens >= 0
    with contextlib.suppress(ProviderError):
        assert len(provider._vectors(objects[0], 1)) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(OBJECT, min_size=1, max_size=3))
def test_replies_in_the_format_of_ollama(objects: list[dict[str, Any]]) -> None:
    """Line by line."""
    provider = OllamaProvider()
    reply = OllamaReply()
    try:
        for data in objects:
            reply.pieces.extend(provider._take_event(provider._data_of(Event(json.dumps(data))), reply))
    except ProviderError:
        pass
    provider._finish(reply, ASKED)
    plain(tuple(reply.calls))
    assert all(isinstance(piece, str) for piece in [*reply.pieces, *reply.reasoning])


@settings(max_examples=60, deadline=None)
@given(st.one_of(VALUES, st.text(), VALUES.map(json.dumps)))
def test_arguments_of_any_kind(value: Any) -> None:
    """An object, or why there is none."""
    arguments, fault = read_arguments(value)
    assert isinstance(arguments, dict)
    assert not fault or arguments == {}
    assert "\n" not in fault


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["type", "properties", "items", "$ref", "$defs", "allOf", "anyOf", "default", "a"]),
                inner,
            ),
        ),
        max_leaves=15,
    ).filter(lambda schema: isinstance(schema, dict))
)
def test_schemas_of_any_shape(schema: Any) -> None:
    """What is no schema goes along as it stands: the server says what is wrong with it."""
    before = json.dumps(schema)
    strict_schema(schema)
    assert json.dumps(schema) == before
