"""The vendors' own SDKs against the loopback server: what it answers is the wire format, and no invention of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.formats import REPLY, Call, Say, vector
from tests.wire.server import KEY, OLLAMA, WireServer

CALLS = (Call("call_a", "get_weather", '{"place": "Köln"}'), Call("call_b", "get_time", "{}"))
USER: Any = {"role": "user", "content": "weather and time?"}
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"type": "string"}},
    "required": ["kind"],
    "additionalProperties": False,
}


def tool(name: str) -> Any:
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "x", "parameters": parameters}}


TOOLS = [tool("get_weather"), tool("get_time")]


# ── openai ──


def openai_client(server: WireServer) -> Any:
    from openai import OpenAI

    return OpenAI(base_url=server.url, api_key=KEY, max_retries=0)


def test_openai_text() -> None:
    """Whole and streamed, with usage."""
    with WireServer() as server, openai_client(server) as client:
        whole = client.chat.completions.create(model="gpt-4o-mini", messages=[USER], temperature=0, max_tokens=50)
        assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == (REPLY, "stop")
        assert (whole.usage.total_tokens, whole.usage.completion_tokens_details.reasoning_tokens) == (11, 1)
        stream = client.chat.completions.create(
            model="gpt-4o-mini", messages=[USER], stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == REPLY
        assert chunks[-1].usage.total_tokens == 11


def test_openai_tools() -> None:
    """Parallel calls, whole and put together from their pieces; the conversation goes on."""
    with WireServer(says=[Say("", CALLS), Say("", CALLS), Say("Sunny.")]) as server, openai_client(server) as client:
        whole = client.chat.completions.create(model="gpt-4o-mini", messages=[USER], tools=TOOLS)
        message = whole.choices[0].message
        assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == list(CALLS)
        with client.chat.completions.stream(model="gpt-4o-mini", messages=[USER], tools=TOOLS) as stream:
            streamed = stream.get_final_completion().choices[0].message
        assert [call.function.arguments for call in streamed.tool_calls] == [call.arguments for call in CALLS]
        answers = [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in message.tool_calls]
        last = client.chat.completions.create(model="gpt-4o-mini", messages=[USER, message, *answers], tools=TOOLS)
        assert last.choices[0].message.content == "Sunny."


def test_openai_structured_replies() -> None:
    """The SDK writes the strict schema itself, and reads the reply with it."""
    from pydantic import BaseModel

    class Label(BaseModel):
        kind: str
        sure: bool

    with WireServer(says=[Say('{"kind": "refund", "sure": false}')]) as server, openai_client(server) as client:
        parsed = client.chat.completions.parse(model="gpt-4o-mini", messages=[USER], response_format=Label)
        assert parsed.choices[0].message.parsed == Label(kind="refund", sure=False)
        form = {"type": "json_schema", "json_schema": {"name": "label", "strict": True, "schema": SCHEMA}}
        whole = client.chat.completions.create(model="gpt-4o-mini", messages=[USER], response_format=form)
        assert json.loads(whole.choices[0].message.content)["kind"] == "refund"


@pytest.mark.parametrize("encoding", [None, "float"])
def test_openai_embeddings(encoding: str | None) -> None:
    """As base64, which is the SDK's own wish, and as numbers."""
    more: dict[str, Any] = {} if encoding is None else {"encoding_format": encoding}
    with WireServer() as server, openai_client(server) as client:
        found = client.embeddings.create(model="text-embedding-3-small", input=["a", "bcd"], dimensions=4, **more)
    assert {item.index: list(item.embedding) for item in found.data} == {0: vector("a", 4), 1: vector("bcd", 4)}


@pytest.mark.parametrize(
    ("status", "name"), [(400, "BadRequestError"), (401, "AuthenticationError"), (429, "RateLimitError")]
)
def test_openai_errors(status: int, name: str) -> None:
    """The SDK knows them, and finds the message and the code."""
    import openai

    with (
        WireServer(str(status)) as server,
        openai_client(server) as client,
        pytest.raises(getattr(openai, name)) as caught,
    ):
        client.chat.completions.create(model="gpt-4o-mini", messages=[USER])
    assert (caught.value.status_code, caught.value.code) == (status, f"code_{status}")


# ── ollama ──


def ollama_client(server: WireServer) -> Any:
    from ollama import Client

    return Client(host=server.host, trust_env=False)


def serve(*modes: str, says: list[Say] | None = None) -> WireServer:
    return WireServer(*modes, key=None, format=OLLAMA, says=says or [])


def closed(client: Any) -> None:
    """Close the connections of a client that has no `close` of its own."""
    client._client.close()


def test_ollama_text() -> None:
    """Whole and streamed, with counts, and with thinking."""
    says = [Say(REPLY), Say(REPLY, reasoning="hm, they greet")]
    with serve(says=says) as server:
        client = ollama_client(server)
        whole = client.chat(model="llama3.2", messages=[USER], options={"temperature": 0, "num_predict": 50})
        assert (whole.message.content, whole.done, whole.done_reason) == (REPLY, True, "stop")
        assert (whole.prompt_eval_count, whole.eval_count) == (3, 8)
        chunks = list(client.chat(model="qwen3", messages=[USER], stream=True, think=True))
        assert "".join(chunk.message.content or "" for chunk in chunks) == REPLY
        assert "".join(chunk.message.thinking or "" for chunk in chunks) == "hm, they greet"
        assert chunks[-1].done
        closed(client)


@pytest.mark.parametrize("stream", [False, True])
def test_ollama_tools(stream: bool) -> None:
    """Calls with objects for arguments; the conversation goes on."""
    with serve(says=[Say("", CALLS), Say("Sunny.")]) as server:
        client = ollama_client(server)
        found = client.chat(model="llama3.2", messages=[USER], tools=TOOLS, stream=stream)
        parts = list(found) if stream else [found]
        calls = [call for part in parts for call in part.message.tool_calls or ()]
        assert [(call.function.name, dict(call.function.arguments)) for call in calls] == [
            ("get_weather", {"place": "Köln"}),
            ("get_time", {}),
        ]
        asked = {"role": "assistant", "content": "", "tool_calls": calls}
        answers = [{"role": "tool", "tool_name": call.function.name, "content": "x"} for call in calls]
        last = client.chat(model="llama3.2", messages=[USER, asked, *answers], tools=TOOLS)
        assert last.message.content == "Sunny."
        closed(client)


def test_ollama_structured_replies_and_embeddings() -> None:
    """A schema as `format`, and vectors in the order of their texts."""
    with serve(says=[Say('{"kind": "refund"}')]) as server:
        client = ollama_client(server)
        assert json.loads(client.chat(model="llama3.2", messages=[USER], format=SCHEMA).message.content) == {
            "kind": "refund"
        }
        found = client.embed(model="nomic-embed-text", input=["a", "bcd"], dimensions=3)
        assert [list(item) for item in found.embeddings] == [vector("a", 3), vector("bcd", 3)]
        closed(client)


def test_ollama_errors() -> None:
    """A model that isn't there, and an error in the middle of a stream."""
    from ollama import ResponseError

    with serve() as server:
        client = ollama_client(server)
        with pytest.raises(ResponseError, match="model 'missing' not found") as caught:
            client.chat(model="missing", messages=[USER])
        assert caught.value.status_code == 404
        closed(client)
