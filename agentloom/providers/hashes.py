"""Hashes of requests: by which recordings find their replies, and tell whether those were given to the very request."""

from __future__ import annotations

import json
from typing import Any

from agentloom.providers.base import EmbeddingRequest, Message, Request
from agentloom.providers.surroundings import Secrets, current_secrets

NEWEST_VERSION = 2
"""The newest way in which requests are hashed."""


def request_hash(request: Request | EmbeddingRequest, version: int = NEWEST_VERSION) -> str:
    """Return the hash that names a request in a recording, as 64 hexadecimal digits.

    Version 2 covers messages, model, temperature, max_tokens and extra; version 1 the messages only. Of a request for vectors it
    covers the texts, the model and the dimensions. The model is the one that the step asked for, whatever a provider calls it; what is
    secret in the run is hashed as what stands for it, so that a replay without the secret asks the same.
    """
    return digest(_subject(request, version))


def _subject(request: Request | EmbeddingRequest, version: int) -> Any:
    secrets = current_secrets()
    model = request.asked_model or request.model
    if isinstance(request, EmbeddingRequest):
        texts = [_hashed(text, secrets) for text in request.inputs]
        return {"inputs": texts, "model": model, "dimensions": request.dimensions}
    messages = [_hashed_message(message, request, secrets) for message in request.messages]
    if version < 2:
        return messages
    return {
        "messages": messages,
        "model": model,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "extra": request.extra,
    }


def digest(value: Any, digits: int = 64) -> str:
    """Return the SHA-256 of plain data as JSON with sorted keys, in hexadecimal digits."""
    from hashlib import sha256  # most runs find their replies by step id

    return sha256(json.dumps(value, sort_keys=True, default=str).encode("utf-8")).hexdigest()[:digits]


def _hashed_message(message: Message, request: Request, secrets: Secrets) -> dict[str, Any]:
    data = message_data(message)
    if not secrets:
        return data
    content = message.content
    if message.role == "assistant":
        content = secrets.reply(request.step_id, content, request.reply_format is not None)
    data["content"] = _hashed(content, secrets)
    if message.role == "tool" and message.name is not None:
        data["name"] = without_secret_name(message.name, request, secrets)
    for call in data.get("tool_calls", ()):
        call["name"] = without_secret_name(call["name"], request, secrets)
        call["arguments"] = secrets.value(call["arguments"])
    return data


def without_secret_name(name: str, request: Request, secrets: Secrets) -> str:
    """Return the name of a tool that a model called, without secrets; those of the request's own tools stay as they are."""
    return name if any(tool.name == name for tool in request.tools) else secrets.text(name)


def _hashed(text: str, secrets: Secrets) -> str:
    """Return a text as it is hashed; JSON in one form, since it is written again where a secret is taken out of it."""
    if not secrets:
        return text
    data = json_of(text)
    return secrets.text(text) if data is None else json.dumps(secrets.value(data), sort_keys=True)


def download_key(url: str) -> str:
    """Return the key of an attachment among the downloads: no part of the address itself, which may hold a token."""
    return digest(url, 32)


def json_of(text: str) -> Any:
    """Return the JSON object or list that a text is, else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def message_data(message: Message) -> dict[str, Any]:
    """Return a message as plain data, without what isn't set."""
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name is not None:
        data["name"] = message.name
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        data["tool_calls"] = [call.to_dict() for call in message.tool_calls]
    if message.attachments:
        from hashlib import sha256

        data["attachments"] = [
            {
                "kind": each.kind,
                "media_type": each.media_type,
                "source": each.url or each.digest or sha256(each.data).hexdigest(),
            }
            for each in message.attachments
        ]
    return data
