"""Anthropic's wire format as its documentation tells of it: `/v1/messages`.

After https://platform.claude.com/docs: the Messages API, errors (with the sentences of its common refusals), streaming, tool use, thinking and
its migration guides, structured outputs, vision and PDF support. What each model takes is a table here, written from those guides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from tests.wire.formats import Known, Received, Refused, Say, check_base64, check_fields, json_body, pieces_of, words_in


class Model(NamedTuple):
    """What one model takes. ``forced``: a `tool_choice` that forces a call; ``native``: `output_config.format`."""

    manual: bool = True
    adaptive: bool = False
    prefill: bool = True
    sampling: bool = True
    forced: bool = True
    native: bool = True
    effort: bool = False


MODELS: Mapping[str, Model] = {
    "claude-3-5-haiku-20241022": Model(manual=False, native=False),
    "claude-3-7-sonnet-20250219": Model(native=False),
    "claude-haiku-4-5-20251001": Model(),
    "claude-sonnet-4-5": Model(),
    "claude-sonnet-4-6": Model(adaptive=True, prefill=False, effort=True),
    "claude-opus-4-7": Model(manual=False, adaptive=True, prefill=False, sampling=False, effort=True),
    "claude-opus-5": Model(manual=False, adaptive=True, prefill=False, sampling=False, effort=True),
    "claude-opus-5-5": Model(False, True, False, False, False, True, True),
}
VERSIONS = ("2023-06-01", "2026-10-21")
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
BODY_FIELDS: Known = {
    "model": str,
    "messages": list,
    "max_tokens": int,
    "system": (str, list),
    "temperature": (int, float),
    "stream": bool,
    "stop_sequences": list,
    "tools": list,
    "tool_choice": dict,
    "thinking": dict,
    "output_config": dict,
    "metadata": dict,
}
BLOCKS: Mapping[str, tuple[str, Known, tuple[str, ...]]] = {
    "text": ("", {"type": str, "text": str}, ("text",)),
    "image": ("user", {"type": str, "source": dict}, ("source",)),
    "document": ("user", {"type": str, "source": dict, "title": str}, ("source",)),
    "tool_result": (
        "user",
        {"type": str, "tool_use_id": str, "content": (str, list), "is_error": bool},
        ("tool_use_id",),
    ),
    "tool_use": ("assistant", {"type": str, "id": str, "name": str, "input": dict}, ("id", "name")),
    "thinking": ("assistant", {"type": str, "thinking": str, "signature": str}, ("signature",)),
    "redacted_thinking": ("assistant", {"type": str, "data": str}, ("data",)),
}
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
SCHEMA_KEYS = {
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "$ref",
    "$defs",
    "definitions",
    "format",
    "minItems",
}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def signed(thinking: str) -> str:
    """Return the signature under a piece of thinking."""
    return "sig-" + sha256(thinking.encode()).hexdigest()


class AnthropicFormat:
    """See the module."""

    first = 3
    stream_type = "text/event-stream; charset=utf-8"

    def check(self, received: Received, key: str | None, *, own: bool) -> dict[str, Any]:
        """Return the request's JSON."""
        if received.path != "/v1/messages":
            raise Refused(404, "Not Found")
        if received.method != "POST":
            raise Refused(405, "Method Not Allowed")
        given = received.headers.get("x-api-key") or received.headers.get("authorization", "").removeprefix("Bearer ")
        if key is not None and given != key:
            raise Refused(401, "invalid x-api-key")
        if received.headers.get("anthropic-version") not in VERSIONS:
            raise Refused(400, "anthropic-version: header is required")
        if received.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise Refused(400, "content-type: must be application/json")
        body = json_body(received)
        check_fields(body, BODY_FIELDS, ("model", "messages", "max_tokens"), "")
        model = MODELS.get(body["model"])
        if model is None:
            raise Refused(404, f"model: {body['model']}")
        if received.headers["anthropic-version"] != VERSIONS[0]:
            model = model._replace(sampling=False)
        _check_options(body, model)
        _check_turns(body, model)
        return body

    def whole(self, received: Received, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return the whole answer."""
        say = _able_to(request, say)
        return {
            **_message(request, say),
            "content": _blocks(say),
            "stop_reason": _stop(say),
            "usage": _usage(request, say),
        }

    def frames(self, request: dict[str, Any], say: Say) -> list[bytes]:
        """Return a streamed answer."""
        events = list(_events(request, _able_to(request, say)))
        return [self.frame(json.dumps(event, ensure_ascii=False)) for event in events]

    def frame(self, data: str) -> bytes:
        """Return one event of that data, under the name of its type."""
        try:
            name = f"event: {json.loads(data)['type']}\n"
        except (ValueError, KeyError, TypeError, RecursionError):
            name = ""
        return f"{name}data: {data}\n\n".encode()

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """Return the body of a refusal."""
        error = {"type": TYPES.get(status, "invalid_request_error"), "message": message}
        return {"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}

    def streams(self, request: dict[str, Any]) -> bool:
        """Tell whether a request asks for a stream."""
        return bool(request.get("stream"))


def _message(request: dict[str, Any], say: Say) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"]}
    return {**head, "content": [], "stop_reason": None, "stop_sequence": None, **say.more}


def _blocks(say: Say) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if say.reasoning:
        blocks.append({"type": "thinking", "thinking": say.reasoning, "signature": signed(say.reasoning)})
    if say.text:
        blocks.append({"type": "text", "text": say.text})
    for call in say.calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)})
    return blocks


def _events(request: dict[str, Any], say: Say) -> Iterator[dict[str, Any]]:
    usage = _usage(request, say)
    yield {"type": "message_start", "message": {**_message(request, say), "usage": {**usage, "output_tokens": 1}}}
    for at, block in enumerate(_blocks(say)):
        kind = block["type"]
        if kind == "text":
            begin = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(block["text"])]
        elif kind == "thinking":
            begin = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces_of(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            begin = {**block, "input": {}}
            text = next(call.arguments for call in say.calls if call.id == block["id"])
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces_of(text)]]
        yield {"type": "content_block_start", "index": at, "content_block": begin}
        if at == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    delta = {"stop_reason": _stop(say), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _able_to(request: dict[str, Any], say: Say) -> Say:
    """Return what a model can say: one whose reply has been begun with text calls no tool."""
    return replace(say, calls=()) if request["messages"][-1]["role"] == "assistant" else say


def _stop(say: Say) -> str:
    return say.finish or ("tool_use" if say.calls else "end_turn")


def _usage(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return plausible counts: one token a word, three of them of a cache."""
    thinking = len(say.reasoning.split())
    return {
        "input_tokens": words_in(request["messages"]) + words_in(request.get("system")),
        "cache_creation_input_tokens": 1,
        "cache_read_input_tokens": 2,
        "output_tokens": len(say.text.split()) + thinking + len(say.calls),
        "output_tokens_details": {"thinking_tokens": thinking},
    }


def _check_options(body: dict[str, Any], model: Model) -> None:
    if body["max_tokens"] < 1:
        raise Refused(400, "max_tokens: must be greater than or equal to 1")
    thinking = body.get("thinking", {})
    kind = thinking.get("type")
    if kind == "enabled":
        check_fields(thinking, {"type": str, "budget_tokens": int, "display": str}, ("budget_tokens",), "thinking")
        if not model.manual:
            raise Refused(
                400,
                '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
                '"output_config.effort" to control thinking behavior.',
            )
        if thinking["budget_tokens"] < 1024:
            raise Refused(400, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if thinking["budget_tokens"] >= body["max_tokens"]:
            raise Refused(400, "`max_tokens` must be greater than `thinking.budget_tokens`")
    elif kind == "adaptive":
        check_fields(thinking, {"type": str, "display": str}, (), "thinking")
        if not model.adaptive:
            raise Refused(400, "adaptive thinking is not supported on this model")
    elif thinking:
        raise Refused(400, f"thinking.type: Input tag '{kind}' is not expected")
    if "temperature" in body:
        if not model.sampling:
            raise Refused(400, "`temperature` is deprecated for this model.")
        if thinking and body["temperature"] != 1:
            raise Refused(400, "`temperature` may only be set to 1 when thinking is enabled.")
        if not 0 <= body["temperature"] <= 1:
            raise Refused(400, "temperature: range: 0..1")
    output = check_fields(body.get("output_config", {}), {"effort": str, "format": dict}, (), "output_config")
    if "effort" in output and (not model.effort or output["effort"] not in ("low", "medium", "high", "xhigh", "max")):
        raise Refused(400, "This model does not support the effort parameter.")
    if "format" in output:
        check_fields(output["format"], {"type": str, "schema": dict}, ("type", "schema"), "output_config.format")
        if not model.native or output["format"]["type"] != "json_schema":
            raise Refused(400, "output_config.format: not supported for this model")
        _check_schema(output["format"]["schema"])
    _check_tools(body, model, bool(thinking))


def _check_tools(body: dict[str, Any], model: Model, thinks: bool) -> None:
    names = []
    for at, tool in enumerate(body.get("tools", ())):
        where = f"tools.{at}"
        known: Known = {"name": str, "description": str, "input_schema": dict}
        check_fields(tool, known, ("name", "input_schema"), where)
        if not NAME.fullmatch(tool["name"]):
            raise Refused(400, f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool["input_schema"].get("type") != "object":
            raise Refused(400, f"{where}.input_schema.type: Input should be 'object'")
        names.append(tool["name"])
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not names:
        raise Refused(400, "tool_choice may only be specified while providing tools")
    check_fields(choice, {"type": str, "name": str, "disable_parallel_tool_use": bool}, ("type",), "tool_choice")
    if choice["type"] not in ("auto", "any", "tool", "none"):
        raise Refused(400, f"tool_choice.type: Input tag '{choice['type']}' is not expected")
    if (choice["type"] == "tool") != ("name" in choice) or choice.get("name", names[0]) not in names:
        raise Refused(400, "tool_choice.name: Tool not found")
    if choice["type"] in ("any", "tool"):
        if not model.forced:
            raise Refused(400, "tool_choice: forced tool use is not supported for this model")
        if thinks:
            raise Refused(400, "Thinking may not be enabled when tool_choice forces tool use.")


def _check_schema(schema: Any) -> None:
    """Refuse what structured outputs don't take."""
    if not isinstance(schema, dict):
        raise Refused(400, "output_config.format.schema: a schema must be an object")
    if unknown := sorted(set(schema) - SCHEMA_KEYS):
        raise Refused(400, f"output_config.format.schema: property '{unknown[0]}' is not supported")
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        raise Refused(
            400,
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
        )
    below = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
    for key in ("properties", "$defs", "definitions"):
        below.extend(schema.get(key, {}).values())
    if "items" in schema:
        below.append(schema["items"])
    for each in below:
        _check_schema(each)


def _check_turns(body: dict[str, Any], model: Model) -> None:
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for at, message in enumerate(body["messages"]):
        known: Known = {"role": str, "content": (str, list)}
        check_fields(message, known, ("role", "content"), f"messages.{at}")
        role, content = message["role"], message["content"]
        if role not in ("user", "assistant"):
            raise Refused(400, f"messages.{at}.role: Input should be 'user' or 'assistant'")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            _check_block(block, role, at)
        if blocks and all(block["type"] == "text" and not block["text"].strip() for block in blocks):
            raise Refused(400, "messages: text content blocks must contain non-whitespace text")
        turns.append((role, blocks))
    if turns[0][0] != "user":
        raise Refused(400, 'messages: first message must use the "user" role')
    uses = False
    for at, (role, blocks) in enumerate(turns):
        asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        uses = uses or bool(asked or given)
        before = turns[at - 1][1] if at else []
        if role == "user":
            wanted = [block["id"] for block in before if block["type"] == "tool_use"]
            if set(given) - set(wanted):
                raise Refused(400, f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks")
            if wanted and [block["type"] for block in blocks[: len(wanted)]] != ["tool_result"] * len(wanted):
                raise Refused(
                    400, f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after"
                )
        if asked and (at + 1 >= len(turns) or turns[at + 1][0] != "user"):
            raise Refused(
                400, f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after"
            )
        if (
            asked
            and body.get("thinking", {}).get("type") == "enabled"
            and blocks[0]["type"] not in ("thinking", "redacted_thinking")
        ):
            raise Refused(
                400,
                f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{blocks[0]['type']}`. "
                "When `thinking` is enabled, a final `assistant` message must start with a thinking block",
            )
    if uses and not body.get("tools"):
        raise Refused(400, "Requests which include `tool_use` or `tool_result` blocks must define tools")
    if turns[-1][0] == "assistant":
        if not model.prefill or body.get("thinking"):
            raise Refused(
                400,
                "This model does not support assistant message prefill. The conversation must end with a user message.",
            )
        if turns[-1][1][-1].get("text", "") != turns[-1][1][-1].get("text", "").rstrip():
            raise Refused(400, "messages: final assistant content cannot end with trailing whitespace")


def _check_block(block: Any, role: str, at: int) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in BLOCKS:
        raise Refused(400, f"messages.{at}.content: Input tag '{kind}' found using 'type' is not expected")
    whose, known, needed = BLOCKS[kind]
    if kind == "text" and not block.get("text"):
        raise Refused(400, "messages: text content blocks must be non-empty")
    check_fields(block, known, needed, f"messages.{at}.content")
    if whose and whose != role:
        raise Refused(400, f"messages.{at}: `{kind}` blocks can only be in {whose} messages")
    if kind == "thinking" and block["signature"] != signed(block["thinking"]):
        raise Refused(400, f"messages.{at}.content: Invalid `signature` in `thinking` block")
    if kind in ("image", "document"):
        source = block["source"]
        if source.get("type") == "url":
            check_fields(source, {"type": str, "url": str}, ("url",), "source")
            return
        check_fields(source, {"type": str, "media_type": str, "data": str}, ("type", "media_type", "data"), "source")
        allowed = IMAGES if kind == "image" else ("application/pdf",)
        if source["type"] != "base64" or source["media_type"] not in allowed:
            raise Refused(400, f"source.base64.media_type: Input should be one of {allowed}")
        check_base64(source["data"], "source.base64.data")
