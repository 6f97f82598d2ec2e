"""What is sent in OpenAI's wire format: a request as the JSON of `/chat/completions`."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

from agentloom.providers.base import Attachment, Message, ReplyFormat, Request, ToolCall, ToolChoice
from agentloom.providers.openai_schema import strict_schema
from agentloom.providers.wire import level_of

_REASONING = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d))", re.IGNORECASE)
"""Models of OpenAI's own that reason: they refuse `max_tokens`, and take `max_completion_tokens` and `reasoning_effort`."""

_FIXED_TEMPERATURE = re.compile(r"(?:ft:)?(?:o\d|gpt-5(?![.\d]|-chat))", re.IGNORECASE)
"""Those that refuse every `temperature` but 1; later ones take it or not, as they are told to reason."""

_AUDIO = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}

CARRIED = ("reasoning_content", "reasoning")
"""Where servers put what they let see of the reasoning; those that do want it back with the calls of that turn."""

ASK_FOR_JSON = "Answer with one JSON object."
"""What is added for `json_object` when no turn speaks of JSON: the API refuses such a request."""


def reasons(model: str) -> bool:
    """Tell whether a model of OpenAI's own reasons before it answers."""
    return _REASONING.match(model) is not None


def lacks(request: Request) -> str | None:
    """Return what of a request can't be sent."""
    for attachment in request.attachments:
        if attachment.kind == "pdf":
            return "takes no PDF attachments"
        if attachment.kind == "audio" and not attachment.data:
            return "takes audio only as data, not by its address; set `fetch: local`"
        if attachment.kind == "audio" and attachment.media_type not in _AUDIO:
            return f"takes audio only as WAV or MP3, not as `{attachment.media_type}`"
    return None


def payload_of(request: Request, own: bool, provider: str, warn: Callable[[str], None]) -> dict[str, Any]:
    """Return the body of a call.

    ``own`` is for OpenAI's own models, which are known: what one of them would refuse is left out, and ``warn`` is told.
    """
    messages = [_message(turn, provider) for turn in request.messages]
    payload: dict[str, Any] = {"model": request.model, "messages": messages}
    if request.temperature is not None:
        if own and request.temperature != 1 and _FIXED_TEMPERATURE.match(request.model):
            warn(f"model `{request.model}` takes no `temperature`, so it is left out")
        else:
            payload["temperature"] = request.temperature
    if request.max_tokens is not None:
        payload["max_completion_tokens" if own and reasons(request.model) else "max_tokens"] = request.max_tokens
    if request.tools:
        payload["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    **({"description": tool.description} if tool.description else {}),
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
        if request.tool_choice.mode != "auto":
            payload["tool_choice"] = _choice(request.tool_choice)
    if request.reply_format is not None:
        payload["response_format"] = _format(request.reply_format)
        if request.reply_format.type == "json_object" and not _speaks_of_json(request.messages):
            messages.append({"role": "system", "content": ASK_FOR_JSON})
    effort = _effort(request)
    if own and request.reasoning is not None and not reasons(request.model):
        warn(f"model `{request.model}` takes no `thinking`, so it is left out")
    elif effort is not None:
        payload["reasoning_effort"] = effort
    if request.stream:
        payload["stream"] = True
        payload["stream_options"] = {"include_usage": True}
    return payload


def _effort(request: Request) -> str | None:
    if request.reasoning is None:
        return None
    if request.reasoning.level is not None or request.reasoning.budget_tokens is None:
        return request.reasoning.level
    return level_of(request.reasoning.budget_tokens)  # the format knows no budgets


def _choice(choice: ToolChoice) -> Any:
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def _format(form: ReplyFormat) -> dict[str, Any]:
    if form.type == "json_object":
        return {"type": "json_object"}
    described: dict[str, Any] = {"name": _word(form.name) or "reply"}
    if form.description:
        described["description"] = form.description
    described["schema"] = strict_schema(form.schema) if form.strict else dict(form.schema)
    described["strict"] = form.strict
    return {"type": "json_schema", "json_schema": described}


def _speaks_of_json(messages: Sequence[Message]) -> bool:
    return any("json" in turn.content.lower() for turn in messages)


def _message(turn: Message, provider: str) -> dict[str, Any]:
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.tool_call_id or "", "content": turn.content}
    data: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.attachments:
        text = [{"type": "text", "text": turn.content}] if turn.content else []
        data["content"] = [*text, *map(_part, turn.attachments)]
    if turn.name is not None:
        data["name"] = re.sub(r"[\s<|\\/>]+", "_", turn.name)
    if turn.tool_calls:
        data["content"] = turn.content or None
        data["tool_calls"] = [_call(call) for call in turn.tool_calls]
        kept = turn.carried.get(provider)
        if isinstance(kept, dict):
            data.update({key: kept[key] for key in CARRIED if key in kept})
    return data


def _part(attachment: Attachment) -> dict[str, Any]:
    if attachment.kind == "audio":
        audio = {"data": _base64(attachment), "format": _AUDIO.get(attachment.media_type, "wav")}
        return {"type": "input_audio", "input_audio": audio}
    url = attachment.url or f"data:{attachment.media_type};base64,{_base64(attachment)}"
    return {"type": "image_url", "image_url": {"url": url}}


def _base64(attachment: Attachment) -> str:
    return b64encode(attachment.data).decode("ascii")


def _call(call: ToolCall) -> dict[str, Any]:
    # A name that the model made up may hold what no tool's name does, and the API would refuse the whole conversation for it.
    function = {"name": _word(call.name) or "unnamed", "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    return {"id": call.id, "type": "function", "function": function}


def _word(name: str) -> str:
    """Return a name with what the API allows in one: letters, digits, `_` and `-`, at most 64."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:64]
