"""Anthropic's wire format (`/v1/messages`).

Models differ in what they take. What a model refuses is left out with a warning in the log, or said in the prompt instead: a request
that would surely be refused helps nobody. The facts are those of the vendor's documentation of 2026-11: models from 4.6 on take no
prefilled reply, from 4.7 on neither temperature nor a budget of thinking, from 5.1 on no forced tools.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentloom.providers.base import Attachment, Message, ReplyFormat, Request, ToolCall, ToolSpec, Usage
from agentloom.providers.http import endpoint
from agentloom.providers.reading import count_of, read_arguments
from agentloom.providers.schemas import Unspeakable, anthropic_schema, in_words
from agentloom.providers.secret import Secret
from agentloom.providers.wire import (
    OPENING,
    Reply,
    Sent,
    WireProvider,
    level_of,
    merged,
    room_for,
    speakers,
    spoken,
    with_room,
)

API_VERSION = "2023-06-01"
"""The version of the API. The next one (2026-10-21) knows no temperature, which older models still take."""

MAX_TOKENS = 4096
"""The most tokens of a reply when the step sets none; the API wants a number."""

UNASKED_ROOM = 8192
"""What is added to that for models that think unasked, since thinking counts as reply."""

LEAST_BUDGET = 1024
"""The smallest budget of thinking that the API takes."""

STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}

STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The statuses of errors that are reported inside a stream."""

DELTAS = {
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
"""The parts of a block that grow besides its text, and where a delta has the piece."""

PIECES = "pieces"
"""Where a block that is still growing has its pieces: put together one by one, a long text would take the square of its length."""

THOUGHTS = ("thinking", "redacted_thinking")

MUST_CALL = "Answer by calling one of the tools."
MUST_CALL_ONE = "Answer by calling the tool `{name}`."

Version = tuple[int, int]
NEWEST: Version = (99, 0)


class AnthropicProvider(WireProvider[Reply]):
    """A client of Anthropic's API, or of a server that speaks like it."""

    vendor = "anthropic"
    reply_type = Reply
    version = "/v1"

    def _headers(self, key: Secret | None) -> Mapping[str, str]:
        return {"anthropic-version": API_VERSION, **({} if key is None else {"x-api-key": key.value})}

    def lacks(self, request: Request) -> str | None:
        """Return what of a request the API doesn't take: sounds."""
        if any(each.kind == "audio" for each in request.attachments):
            return "takes no audio attachments"
        return None

    def _sent(self, request: Request) -> Sent:
        version = version_of(request.model)
        system = [turn.content for turn in request.messages if turn.role == "system" and turn.content]
        payload: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": role, "content": parts} for role, parts in self._turns(request)],
            "max_tokens": request.max_tokens or MAX_TOKENS + (UNASKED_ROOM if version >= (5, 0) else 0),
        }
        output: dict[str, Any] = {}
        self._add_thinking(request, version, payload, output)
        self._add_tools(request, version, payload, system)
        begun = _ask_for_format(request.reply_format, version, payload, output, system)
        if request.temperature is not None:
            if version >= (4, 7):
                self._warn_once(f"`{request.model}` takes no `temperature`; it is left out")
            elif "thinking" in payload and request.temperature != 1:
                self._warn_once("a model that thinks takes no `temperature`; it is left out")
            else:
                payload["temperature"] = request.temperature
        if output:
            payload["output_config"] = output
        if system:
            payload["system"] = "\n\n".join(system)
        if request.stream:
            payload["stream"] = True
        return Sent(endpoint(self._base, "/v1/messages"), payload, begun)

    def _turns(self, request: Request) -> list[tuple[str, list[dict[str, Any]]]]:
        names = speakers(request.messages)
        turns = merged(
            ("assistant", [part for part in self._said(turn, request.model, names) if not _is_blank(part)])
            if turn.role == "assistant"
            else ("user", _asked(turn, names))
            for turn in request.messages
            if turn.role != "system"
        )
        if turns and turns[0][0] == "assistant":
            turns.insert(0, ("user", [{"type": "text", "text": OPENING}]))
        # Where a user has said nothing else, the API's refusal tells.
        return [(role, [part for part in parts if not _is_blank(part)] or parts) for role, parts in turns]

    def _said(self, turn: Message, model: str, names: frozenset[str]) -> list[dict[str, Any]]:
        """Return an assistant turn: as it came, if it came from this model, since signed thinking must come back unchanged."""
        carried = turn.carried.get(self.name)
        if isinstance(carried, Mapping) and carried.get("model") == model:
            return list(carried["content"])
        text = spoken(turn, names)
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
            for call in turn.tool_calls
        ]
        return [*([{"type": "text", "text": text}] if text else []), *calls]

    def _add_thinking(
        self, request: Request, version: Version, payload: dict[str, Any], output: dict[str, Any]
    ) -> None:
        reasoning = request.reasoning
        if reasoning is None or reasoning.budget_tokens == 0:
            return
        room = max(LEAST_BUDGET, room_for(reasoning))
        budgeted = reasoning.budget_tokens is not None and reasoning.budget_tokens > 0
        if version < (4, 6) or (version < (4, 7) and budgeted):
            payload["thinking"] = {"type": "enabled", "budget_tokens": room}
        else:
            payload["thinking"] = {"type": "adaptive", "display": "summarized"}
            if reasoning.level or budgeted:
                output["effort"] = reasoning.level or level_of(room)
        payload["max_tokens"] = with_room(request.max_tokens or MAX_TOKENS, room)

    def _add_tools(self, request: Request, version: Version, payload: dict[str, Any], system: list[str]) -> None:
        choice = request.tool_choice
        called = dict.fromkeys(call.name for turn in request.messages for call in turn.tool_calls)
        # Calls that were made want their tools described, also where none is offered any more.
        tools = request.tools or [ToolSpec(name, "", {}) for name in called]
        if not tools or (choice.mode == "none" and not called):
            return
        payload["tools"] = [
            {
                "name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "input_schema": {"type": "object", "properties": {}, **tool.parameters},
            }
            for tool in tools
        ]
        if choice.mode == "none" or not request.tools:
            payload["tool_choice"] = {"type": "none"}
        elif choice.mode in ("required", "tool"):
            if version > (5, 0) or "thinking" in payload:
                self._warn_once(f"`{request.model}` can't be made to call a tool; it is told to")
                system.append(MUST_CALL_ONE.format(name=choice.name) if choice.mode == "tool" else MUST_CALL)
            elif choice.mode == "tool":
                payload["tool_choice"] = {"type": "tool", "name": choice.name}
            else:
                payload["tool_choice"] = {"type": "any"}

    def _take_whole(self, data: Mapping[str, Any], reply: Reply) -> None:
        content = data.get("content")
        if data.get("type") != "message" or not isinstance(content, list):
            raise self._http.error("the answer has no `content`")
        for block in content:
            if isinstance(block, dict):
                reply.parts.append(dict(block))
        reply.model = _text(data, "model") or None
        self._note_stop(data, reply)
        _note_usage(data.get("usage"), reply)
        for block in reply.parts:
            if block.get("type") == "text":
                reply.pieces.extend(_with_beginning(self._text_of(block, "text"), reply))

    def _take_event(self, data: Mapping[str, Any], reply: Reply) -> Iterable[str]:
        kind = data.get("type")
        if kind == "message":  # the server ignored `stream` and sent the whole answer
            self._take_whole(data, reply)
            pieces, reply.pieces, reply.done = reply.pieces, [], True
            return [piece for piece in pieces if piece]
        if kind == "message_start" and isinstance(message := data.get("message"), Mapping):
            reply.model = _text(message, "model") or None
            _note_usage(message.get("usage"), reply)
        elif kind == "content_block_start" and isinstance(block := data.get("content_block"), dict):
            reply.parts.append({**block, "index": data.get("index")})
            if block.get("type") == "text" and block.get("text"):
                return _with_beginning(self._text_of(block, "text"), reply)
        elif kind == "content_block_delta" and isinstance(delta := data.get("delta"), Mapping):
            return self._take_delta(data.get("index"), delta, reply)
        elif kind == "message_delta":
            if isinstance(delta := data.get("delta"), Mapping):
                self._note_stop(delta, reply)
            _note_usage(data.get("usage"), reply)
        elif kind == "message_stop":
            reply.done = True
        return ()

    def _take_delta(self, index: Any, delta: Mapping[str, Any], reply: Reply) -> Iterable[str]:
        block = next((each for each in reversed(reply.parts) if each.get("index") == index), None)
        kind = delta.get("type")
        if block is None:
            raise self._http.error("the answer goes on with a part that has no beginning")
        if kind == "text_delta":
            text = self._text_of(delta, "text")
            _add(block, "text", text)
            return _with_beginning(text, reply)
        if kind in DELTAS:
            name, key = DELTAS[kind]
            _add(block, name, self._text_of(delta, key))
        return ()

    def _finish(self, reply: Reply, request: Request) -> None:
        """Read the calls, the thinking, and what must come back with them."""
        if reply.begun and not reply.pieces:
            reply.begun = ""
        carried: list[dict[str, Any]] = []
        for block in reply.parts:
            block.pop("index", None)
            for name, pieces in block.pop(PIECES, {}).items():
                block[name] = "".join(pieces) if name == "input" else f"{block.get(name, '')}{''.join(pieces)}"
            kind = block.get("type")
            if kind == "tool_use":
                reply.calls.append(self._call(block))
            elif kind == "thinking":
                reply.reasoning.append(str(block.get("thinking", "")))
            if kind in (*THOUGHTS, "tool_use") or (kind == "text" and block.get("text")):
                carried.append(block)
        if reply.calls and any(block.get("type") in THOUGHTS for block in carried):
            reply.carried = {"model": request.model, "content": carried}

    def _call(self, block: dict[str, Any]) -> ToolCall:
        arguments, fault = read_arguments(block.get("input"))
        block["input"] = arguments
        if not _text(block, "id") or not _text(block, "name"):
            raise self._http.error("the answer's `tool_use` has no `id` or no `name`")
        return ToolCall(block["id"], block["name"], arguments, fault)

    def _text_of(self, data: Mapping[str, Any], key: str) -> str:
        value = data.get(key)
        if not isinstance(value, str):
            raise self._http.error(f"the answer's `{key}` is not a text")
        return value

    def _note_stop(self, data: Mapping[str, Any], reply: Reply) -> None:
        reason = data.get("stop_reason")
        if isinstance(reason, str):
            reply.finish_reason = STOPS.get(reason, reason)

    def _raise_error_in(self, data: Mapping[str, Any]) -> None:
        """Raise the error that a server reports inside an answer that began well."""
        error = data.get("error")
        if data.get("type") != "error" and not error:
            return
        found = error if isinstance(error, Mapping) else {}
        text = _text(found, "message") or (error if isinstance(error, str) else "") or "no reason given"
        status = STATUSES.get(_text(found, "type"))
        if status is not None:
            raise self._http.api_error(status, text)
        raise self._http.error(f"the server reports an error: {self._http.shown(text)}")


def version_of(model: str) -> Version:
    """Return the version in a Claude model's name: `claude-3-7-sonnet-20250219` is 3.7; that of the newest for a name without one."""
    name = model.lower().rpartition("claude")[2]
    numbers = [int(found) for found in re.findall(r"(?<![\dv])\d{1,2}(?!\d)", name)]
    if not numbers:
        return NEWEST
    return numbers[0], numbers[1] if len(numbers) > 1 else 0


def _ask_for_format(
    wanted: ReplyFormat | None, version: Version, payload: dict[str, Any], output: dict[str, Any], system: list[str]
) -> str:
    """Ask for the form of the reply, by the API's own means where it has some; return the beginning that is written for the model."""
    if wanted is None:
        return ""
    if wanted.type == "json_schema" and wanted.strict and version >= (4, 5):
        try:
            output["format"] = {"type": "json_schema", "schema": anthropic_schema(wanted.schema)}
        except Unspeakable:
            pass
        else:
            if wanted.description:
                system.append(wanted.description)
            return ""
    if wanted.description:
        system.append(wanted.description)
    system.append(in_words(wanted))
    is_object = wanted.type == "json_object" or wanted.schema.get("type") == "object"
    if version >= (4, 6) or "thinking" in payload or "tools" in payload or not is_object:
        return ""  # a model whose reply is begun calls no tool
    payload["messages"].append({"role": "assistant", "content": [{"type": "text", "text": "{"}]})
    return "{"


def _with_beginning(text: str, reply: Reply) -> Iterator[str]:
    """Yield a piece of text, and before the first one what the request wrote of the reply, unless the model begins there itself."""
    if not text:
        return
    if reply.begun:
        begun, reply.begun = reply.begun, ""
        if not text.lstrip().startswith(begun):
            yield begun
    yield text


def _add(block: dict[str, Any], name: str, piece: str) -> None:
    block.setdefault(PIECES, {}).setdefault(name, []).append(piece)


def _is_blank(part: Mapping[str, Any]) -> bool:
    """Tell whether a part is a text of white space, if that: the API refuses turns of nothing else."""
    return part.get("type") == "text" and not str(part.get("text", "")).strip()


def _asked(turn: Message, names: frozenset[str]) -> list[dict[str, Any]]:
    """Return a user's or a tool's turn as blocks; what is looked at stands before what is asked about it."""
    if turn.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": turn.tool_call_id, "content": turn.content}
        if turn.is_error:
            result["is_error"] = True
        return [result]
    text = spoken(turn, names)
    blocks = [_attached(each) for each in turn.attachments]
    return [*blocks, *([{"type": "text", "text": text}] if text or not blocks else [])]


def _attached(attachment: Attachment) -> dict[str, Any]:
    if attachment.url:
        source: dict[str, Any] = {"type": "url", "url": attachment.url}
    else:
        data = b64encode(attachment.data).decode("ascii")
        source = {"type": "base64", "media_type": attachment.media_type, "data": data}
    return {"type": "document" if attachment.kind == "pdf" else "image", "source": source}


def _note_usage(data: Any, reply: Reply) -> None:
    """Note the tokens; those of a cache are part of the prompt. A stream tells them in two parts, the later of which holds."""
    if not isinstance(data, Mapping):
        return
    known = reply.usage
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    prompt = sum(count_of(data, name) for name in names) or known.prompt_tokens
    completion = count_of(data, "output_tokens") or known.completion_tokens
    details = data.get("output_tokens_details")
    thinking = count_of(details, "thinking_tokens") if isinstance(details, Mapping) else known.reasoning_tokens
    reply.usage = Usage(prompt, completion, prompt + completion, thinking)


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
