"""OpenAI's wire format as its API reference tells of it: `/v1/chat/completions` and `/v1/embeddings`.

After https://platform.openai.com/docs/api-reference and the guides on function calling, structured outputs, images, audio and reasoning.
``reasoning_content`` is not of OpenAI's: it is how compatible servers show what a model thought.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Mapping
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

BODY_FIELDS: Known = {
    "model": str,
    "messages": list,
    "temperature": (int, float),
    "max_tokens": int,
    "max_completion_tokens": int,
    "stream": bool,
    "stream_options": dict,
    "tools": list,
    "tool_choice": (str, dict),
    "parallel_tool_calls": bool,
    "response_format": dict,
    "reasoning_effort": str,
}
EMBEDDING_FIELDS: Known = {
    "model": str,
    "input": (str, list),
    "dimensions": int,
    "encoding_format": str,
    "user": str,
}
MESSAGE_FIELDS: Mapping[str, tuple[set[str], set[str]]] = {
    "system": ({"content"}, {"name"}),
    "developer": ({"content"}, {"name"}),
    "user": ({"content"}, {"name"}),
    "assistant": (set(), {"content", "name", "tool_calls", "refusal", "reasoning_content", "reasoning"}),
    "tool": ({"content", "tool_call_id"}, set()),
}
FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
REASONING = re.compile(r"o\d|gpt-[5-9]")
NO_TEMPERATURE = re.compile(r"o\d|gpt-5(-mini|-nano)?(-20|$)")
DIMENSIONS = 8


class OpenAIFormat:
    """See the module."""

    first = 1
    stream_type = "text/event-stream; charset=utf-8"

    def check(self, received: Received, key: str | None, *, own: bool) -> dict[str, Any]:
        """Return the request's JSON; ``own``: for OpenAI's own models."""
        path = received.path.partition("?")[0]
        if path not in ("/v1/chat/completions", "/v1/embeddings"):
            raise Refused(404, f"Invalid URL ({received.method} {received.path})")
        if received.method != "POST":
            raise Refused(405, "Only POST is allowed")
        if key is not None and received.headers.get("authorization") != f"Bearer {key}":
            raise Refused(401, "Incorrect API key provided")
        if received.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise Refused(400, "Content-Type must be application/json")
        body = json_body(received)
        return _check_embeddings(body) if path == "/v1/embeddings" else _check_chat(body, own)

    def whole(self, received: Received, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return the whole answer."""
        if "input" in request:
            return _embeddings(request)
        message: dict[str, Any] = {"role": "assistant", "content": say.text or None, "refusal": None}
        if not say.calls:
            message["content"] = say.text
        else:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in say.calls
            ]
        if say.reasoning:
            message["reasoning_content"] = say.reasoning
        choice = {"index": 0, "message": {**message, **say.more}, "logprobs": None, "finish_reason": _finish(say)}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"] + "-2024-07-18",
            "choices": [choice],
            "usage": _usage(request, say),
        }

    def frames(self, request: dict[str, Any], say: Say) -> list[bytes]:
        """Return a streamed answer: a role, the reasoning, the text, each call's name and arguments, the reason, the usage, the end."""
        base = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request["model"] + "-2024-07-18",
        }

        def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
            return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": None}

        parts = [chunk({"role": "assistant", "content": ""})]
        parts += [chunk({"reasoning_content": piece}) for piece in pieces_of(say.reasoning)]
        parts += [chunk({"content": piece}) for piece in pieces_of(say.text)]
        for at, call in enumerate(say.calls):
            head = {"index": at, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
            parts.append(chunk({"tool_calls": [head]}))
            for piece in pieces_of(call.arguments, 5):
                parts.append(chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}))
        parts.append(chunk({}, _finish(say)))
        if (request.get("stream_options") or {}).get("include_usage"):
            parts.append({**base, "choices": [], "usage": _usage(request, say)})
        return [self.frame(json.dumps(part, ensure_ascii=False)) for part in parts] + [self.frame("[DONE]")]

    def frame(self, data: str) -> bytes:
        """Return one event of that data."""
        return f"data: {data}\n\n".encode()

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """Return the body of a refusal."""
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}

    def streams(self, request: dict[str, Any]) -> bool:
        """Tell whether a request asks for a stream."""
        return bool(request.get("stream"))


def _finish(say: Say) -> str:
    return say.finish or ("tool_calls" if say.calls else "stop")


def _usage(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return plausible counts: one token a word."""
    prompt = words_in(request["messages"])
    completion = len(say.text.split()) + len(say.calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "completion_tokens_details": {"reasoning_tokens": 1},
    }


def _embeddings(request: dict[str, Any]) -> dict[str, Any]:
    """Return the vectors, the last first: `index` tells which is which."""
    texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
    items = []
    for at, text in enumerate(texts):
        found: Any = vector(text, request.get("dimensions", DIMENSIONS))
        if request.get("encoding_format") == "base64":
            found = base64.b64encode(struct.pack(f"<{len(found)}f", *found)).decode()
        items.append({"object": "embedding", "index": at, "embedding": found})
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": items[::-1], "model": request["model"], "usage": usage}


def _check_embeddings(body: dict[str, Any]) -> dict[str, Any]:
    check_fields(body, EMBEDDING_FIELDS, ("model", "input"), "")
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    if len(texts) > 2048 or not all(isinstance(text, str) and text for text in texts):
        raise Refused(400, "'$.input' is invalid. Please check the API reference")
    if body.get("dimensions", 1) < 1 or body.get("encoding_format", "float") not in ("float", "base64"):
        raise Refused(400, "Invalid value for 'dimensions' or 'encoding_format'")
    if "dimensions" in body and not body["model"].startswith("text-embedding-3"):
        raise Refused(400, "This model does not support specifying dimensions.")
    return body


def _check_chat(body: dict[str, Any], own: bool) -> dict[str, Any]:
    check_fields(body, BODY_FIELDS, ("model", "messages"), "")
    _check_messages(body["messages"])
    if not 0 <= body.get("temperature", 0) <= 2 or body.get("max_tokens", 1) < 1:
        raise Refused(400, "A number is out of range")
    if "stream_options" in body and not body.get("stream"):
        raise Refused(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled")
    _check_tools(body)
    if "response_format" in body:
        _check_response_format(body)
    if body.get("reasoning_effort", "low") not in ("none", "minimal", "low", "medium", "high", "xhigh"):
        raise Refused(400, "Invalid value for 'reasoning_effort'")
    if own:
        model = body["model"]
        if "max_tokens" in body and REASONING.match(model):
            raise Refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead")
        if body.get("temperature", 1) != 1 and NO_TEMPERATURE.match(model):
            raise Refused(400, "Unsupported value: 'temperature'. Only the default (1) value is supported.")
        if "reasoning_effort" in body and not REASONING.match(model):
            raise Refused(400, "Unrecognized request argument supplied: reasoning_effort")
    return body


def _check_messages(messages: list[Any]) -> None:
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(message, dict) or "role" not in message or not set(message) - {"role"}:
            raise Refused(400, f"Invalid fields in 'messages[{at}]'")
        if role not in MESSAGE_FIELDS:
            raise Refused(400, f"Invalid value in 'messages[{at}]'")
        needed, allowed = MESSAGE_FIELDS[role]
        if not needed <= set(message) - {"role"} <= needed | allowed:
            raise Refused(400, f"Invalid fields in 'messages[{at}]'")
        if "name" in message and not SPEAKER.fullmatch(str(message["name"])):
            raise Refused(400, f"Invalid 'messages[{at}].name': string does not match pattern")
        if open_calls and role != "tool":
            raise Refused(
                400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            )
        content = message.get("content")
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                raise Refused(
                    400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                )
            open_calls.remove(message["tool_call_id"])
        elif role == "user" and isinstance(content, list):
            _check_parts(content, f"messages[{at}].content")
            continue
        elif role == "assistant":
            open_calls = _check_calls(message.get("tool_calls"), at)
            if content is None and open_calls:
                continue
        if not isinstance(content, str):
            raise Refused(400, f"Invalid value in 'messages[{at}]'")
    if open_calls:
        raise Refused(
            400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        )


def _check_calls(calls: Any, at: int) -> list[str]:
    if calls is None:
        return []
    if not isinstance(calls, list) or not calls:
        raise Refused(400, f"Invalid 'messages[{at}].tool_calls': empty array")
    for call in calls:
        check_fields(call, {"id": str, "type": str, "function": dict}, ("id", "type", "function"), "tool_calls")
        function = check_fields(call["function"], {"name": str, "arguments": str}, ("name",), "tool_calls.function")
        if call["type"] != "function" or not FUNCTION_NAME.fullmatch(function["name"]) or len(call["id"]) > 40:
            raise Refused(400, f"Invalid 'messages[{at}].tool_calls': string does not match pattern")
        json.loads(function["arguments"])
    return [call["id"] for call in calls]


def _check_parts(parts: list[Any], where: str) -> None:
    if not parts:
        raise Refused(400, f"Invalid '{where}': empty array")
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            check_fields(part, {"type": str, "text": str}, ("text",), where)
        elif kind == "image_url":
            check_fields(part, {"type": str, "image_url": dict}, ("image_url",), where)
            image = check_fields(part["image_url"], {"url": str, "detail": str}, ("url",), where)
            data = re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,(.*)", image["url"])
            if data:
                check_base64(data[2], where)
            elif not image["url"].startswith(("https://", "http://")):
                raise Refused(400, f"Invalid '{where}': expected a URL or a data URL of an image")
        elif kind == "input_audio":
            check_fields(part, {"type": str, "input_audio": dict}, ("input_audio",), where)
            audio = check_fields(part["input_audio"], {"data": str, "format": str}, ("data", "format"), where)
            check_base64(audio["data"], where)
            if audio["format"] not in ("wav", "mp3"):
                raise Refused(400, f"Invalid value in '{where}': expected 'wav' or 'mp3'")
        else:
            raise Refused(400, f"Invalid value in '{where}': unknown type of part")


def _check_tools(body: dict[str, Any]) -> None:
    names = []
    for tool in body.get("tools", ()):
        check_fields(tool, {"type": str, "function": dict}, ("type", "function"), "tools")
        known = {"name": str, "description": str, "parameters": dict, "strict": bool}
        function = check_fields(tool["function"], known, ("name",), "tools.function")
        if tool["type"] != "function" or not FUNCTION_NAME.fullmatch(function["name"]):
            raise Refused(400, "Invalid 'tools.function.name': string does not match pattern")
        if function.get("parameters", {}).get("type", "object") != "object":
            raise Refused(400, "Invalid schema for function: schema must be a JSON Schema of 'type: \"object\"'")
        names.append(function["name"])
    if "tools" in body and not names:
        raise Refused(400, "Invalid 'tools': empty array")
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not names:
        raise Refused(400, "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
    if isinstance(choice, dict):
        check_fields(choice, {"type": str, "function": dict}, ("type", "function"), "tool_choice")
        if choice["type"] != "function" or choice["function"].get("name") not in names or len(choice["function"]) > 1:
            raise Refused(400, "Invalid value for 'tool_choice': no such function")
    elif choice not in ("none", "auto", "required"):
        raise Refused(400, "Invalid value for 'tool_choice'")


def _check_response_format(body: dict[str, Any]) -> None:
    form = body["response_format"]
    kind = form.get("type")
    if kind == "json_object":
        check_fields(form, {"type": str}, (), "response_format")
        if "json" not in json.dumps([message.get("content") for message in body["messages"]]).lower():
            raise Refused(400, "'messages' must contain the word 'json' in some form, to use 'json_object'")
    elif kind == "json_schema":
        check_fields(form, {"type": str, "json_schema": dict}, ("json_schema",), "response_format")
        known = {"name": str, "description": str, "schema": dict, "strict": (bool, type(None))}
        described = check_fields(form["json_schema"], known, ("name",), "response_format.json_schema")
        if not FUNCTION_NAME.fullmatch(described["name"]):
            raise Refused(400, "Invalid 'response_format.json_schema.name': string does not match pattern")
        if described.get("strict"):
            _check_strict(described["schema"], ())
    elif kind != "text":
        raise Refused(400, "Invalid value for 'response_format.type'")


def _check_strict(schema: Any, context: tuple[str, ...]) -> None:
    """Hold a schema to the rules of strict mode."""

    def wrong(what: str) -> Refused:
        return Refused(400, f"Invalid schema for response_format: In context={context}, {what}")

    if not isinstance(schema, dict):
        raise wrong("schema must be an object")
    if not context and (schema.get("type") != "object" or "anyOf" in schema):
        raise wrong("schema must be of type 'object'")
    if "$ref" in schema and len(schema) > 1:
        raise wrong("$ref cannot have keywords beside it")
    for key in ("default", "allOf", "oneOf", "not", "if", "patternProperties", "additionalItems"):
        if key in schema:
            raise wrong(f"'{key}' is not permitted")
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            raise wrong("'additionalProperties' is required to be supplied and to be false")
        if sorted(schema.get("required", ())) != sorted(schema.get("properties", {})):
            raise wrong("'required' is required to be supplied and to be an array including every key in properties")
    for key in ("properties", "$defs"):
        for name, item in schema.get(key, {}).items():
            _check_strict(item, (*context, key, name))
    for key in ("items",):
        if key in schema:
            _check_strict(schema[key], (*context, key))
    for at, item in enumerate(schema.get("anyOf", ())):
        _check_strict(item, (*context, "anyOf", str(at)))
