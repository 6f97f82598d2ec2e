"""Ollama's wire format as its documentation tells of it: `/api/chat` and `/api/embed`.

After https://docs.ollama.com/api and the pages on thinking, tool calling, structured outputs, vision and embeddings. The real server passes
over fields that it doesn't know; this one refuses them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.wire.formats import (
    Known,
    Received,
    Refused,
    Say,
    check_base64,
    check_fields,
    json_body,
    pieces_of,
    vector,
    words_in,
)

CHAT_FIELDS: Known = {
    "model": str,
    "messages": list,
    "tools": list,
    "format": (str, dict),
    "options": dict,
    "stream": bool,
    "think": (bool, str),
    "keep_alive": (str, int, float),
}
EMBED_FIELDS: Known = {"model": str, "input": (str, list), "truncate": bool, "dimensions": int, "options": dict}
MESSAGE_FIELDS: Known = {
    "role": str,
    "content": str,
    "images": list,
    "tool_calls": list,
    "tool_name": str,
    "thinking": str,
}
OPTIONS: Known = {"temperature": (int, float), "num_predict": int, "num_ctx": int, "seed": int, "stop": list}
ROLES = ("system", "user", "assistant", "tool")
THINKERS = ("qwen3", "deepseek-r1", "gpt-oss")
DIMENSIONS = 8


class OllamaFormat:
    """See the module. Models whose name begins with `missing` aren't there."""

    first = 0
    stream_type = "application/x-ndjson"

    def check(self, received: Received, key: str | None, *, own: bool) -> dict[str, Any]:
        """Return the request's JSON."""
        if received.path not in ("/api/chat", "/api/embed"):
            raise Refused(404, "404 page not found")
        if received.method != "POST":
            raise Refused(405, "405 method not allowed")
        body = json_body(received)
        if received.path == "/api/embed":
            check_fields(body, EMBED_FIELDS, ("model", "input"), "")
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            if not all(isinstance(text, str) for text in texts):
                raise Refused(400, "invalid input type")
        else:
            _check_chat(body)
        if body["model"].startswith("missing"):
            raise Refused(404, f"model '{body['model']}' not found")
        return body

    def whole(self, received: Received, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return the whole answer."""
        if "input" in request:
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            return {
                "model": request["model"],
                "embeddings": [vector(text, request.get("dimensions", DIMENSIONS)) for text in texts],
                "total_duration": 14143917,
                "load_duration": 1019500,
                "prompt_eval_count": sum(len(text.split()) for text in texts),
            }
        say = _able_to(request, say)
        message: dict[str, Any] = {"role": "assistant", "content": say.text}
        if say.reasoning:
            message["thinking"] = say.reasoning
        if say.calls:
            message["tool_calls"] = [_call(call, at) for at, call in enumerate(say.calls)]
        return {**_head(request), "message": {**message, **say.more}, **_tail(request, say)}

    def frames(self, request: dict[str, Any], say: Say) -> list[bytes]:
        """Return a streamed answer: thinking, the text, each call, and an object with the counts."""
        say = _able_to(request, say)
        parts: list[dict[str, Any]] = [{"content": "", "thinking": piece} for piece in pieces_of(say.reasoning)]
        parts += [{"content": piece} for piece in pieces_of(say.text)]
        parts += [{"content": "", "tool_calls": [_call(call, at)]} for at, call in enumerate(say.calls)]
        lines = [{**_head(request), "message": {"role": "assistant", **part}, "done": False} for part in parts]
        lines.append({**_head(request), "message": {"role": "assistant", "content": ""}, **_tail(request, say)})
        return [self.frame(json.dumps(line, ensure_ascii=False)) for line in lines]

    def frame(self, data: str) -> bytes:
        """Return one line of that data."""
        return f"{data}\n".encode()

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """Return the body of a refusal."""
        return {"error": message}

    def streams(self, request: dict[str, Any]) -> bool:
        """Tell whether a request asks for a stream: unless it says otherwise."""
        return "messages" in request and request.get("stream", True)


def _able_to(request: dict[str, Any], say: Say) -> Say:
    """Return what a model can say: none that is held to a form can call a tool."""
    return replace(say, calls=()) if request.get("format") else say


def _head(request: dict[str, Any]) -> dict[str, Any]:
    return {"model": request["model"], "created_at": "2026-11-30T12:00:00.385406455Z"}


def _tail(request: dict[str, Any], say: Say) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": say.finish or "stop",
        "total_duration": 5191566416,
        "load_duration": 2154458,
        "prompt_eval_count": words_in(request["messages"]),
        "prompt_eval_duration": 383809000,
        "eval_count": len(say.text.split()) + len(say.calls),
        "eval_duration": 4799921000,
    }


def _call(call: Any, at: int) -> dict[str, Any]:
    return {"function": {"index": at, "name": call.name, "arguments": json.loads(call.arguments)}}


def _check_chat(body: dict[str, Any]) -> None:
    check_fields(body, CHAT_FIELDS, ("model", "messages"), "")
    for at, message in enumerate(body["messages"]):
        where = f"messages[{at}]"
        check_fields(message, MESSAGE_FIELDS, ("role",), where)
        if message["role"] not in ROLES:
            raise Refused(400, f"invalid role: {message['role']}")
        if "content" not in message and not message.get("tool_calls"):
            raise Refused(400, f"Missing required parameter: '{where}.content'")
        if (message["role"] == "tool") != ("tool_name" in message):
            raise Refused(400, f"'{where}.tool_name' goes with the role 'tool', and with no other")
        for image in message.get("images", ()):
            check_base64(image, f"{where}.images")
        for call in message.get("tool_calls", ()):
            function = call.get("function") if isinstance(call, dict) else None
            known: Known = {"index": int, "name": str, "arguments": dict}
            check_fields(function, known, ("name",), f"{where}.tool_calls.function")
    for tool in body.get("tools", ()):
        check_fields(tool, {"type": str, "function": dict}, ("type", "function"), "tools")
        described: Known = {"name": str, "description": str, "parameters": dict}
        check_fields(tool["function"], described, ("name", "parameters"), "tools.function")
    check_fields(body.get("options", {}), OPTIONS, (), "options")
    if isinstance(body.get("format"), str) and body["format"] != "json":
        raise Refused(400, 'invalid format: expected "json" or a JSON schema')
    think = body.get("think")
    if think is not None:
        if not body["model"].startswith(THINKERS):
            raise Refused(400, f'"{body["model"]}" does not support thinking')
        if isinstance(think, str) and think not in ("low", "medium", "high"):
            raise Refused(400, f'invalid think value: "{think}"')
        if isinstance(think, str) != body["model"].startswith("gpt-oss"):
            raise Refused(400, f'think value "{think}" is not supported for this model')
