"""What is kept of a request beside its hash, and what has changed between two of them, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.providers.base import EmbeddingRequest, Request
from agentloom.providers.hashes import digest
from agentloom.providers.surroundings import current_secrets

_DIGITS = 16
_EXTRA = {"tools": "its tools", "tool_choice": "its `tool_choice`", "response_schema": "its `response_schema`"}


def asked(request: Request | EmbeddingRequest) -> dict[str, Any]:
    """Return what is kept of a request to tell later what has changed: names and numbers as they are, texts as hashes."""
    secrets = current_secrets()
    model = request.asked_model or request.model
    if isinstance(request, EmbeddingRequest):
        return {"model": model, "dimensions": request.dimensions, "texts": len(request.inputs)}
    return {
        "model": model,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "messages": [
            f"{message.role} {digest(secrets.text(message.content), _DIGITS)}" for message in request.messages
        ],
        **{name: digest(value, _DIGITS) for name, value in request.extra.items()},
    }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what a request asks otherwise than the recorded one did: `its prompt has changed, its model is …`."""
    found = list(_changes(before, now)) if before else []
    return ", ".join(found) or "its request has changed"


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*now, *before]):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name == "messages":
            yield from _turns(old if isinstance(old, list) else [], new if isinstance(new, list) else [])
        elif name in ("model", "temperature", "max_tokens", "dimensions", "texts"):
            yield f"its {'number of texts' if name == 'texts' else f'`{name}`'} is {_shown(new)}, it was {_shown(old)}"
        else:
            yield f"{_EXTRA.get(name, f'its `{name}`')} {'have' if name == 'tools' else 'has'} changed"


def _turns(old: list[Any], new: list[Any]) -> Iterator[str]:
    if len(old) != len(new):
        yield f"its conversation has {len(new)} messages, it had {len(old)}"
        return
    words = {
        "system": "its system prompt",
        "user": "its prompt",
        "assistant": "an answer in it",
        "tool": "a tool's result",
    }
    roles = [str(after).partition(" ")[0] for before, after in zip(old, new, strict=True) if before != after]
    for role in dict.fromkeys(roles):
        yield f"{words.get(role, 'its conversation')} has changed"


def _shown(value: Any) -> str:
    return "not set" if value is None else f"`{value}`"
