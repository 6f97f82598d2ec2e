"""Conversations in the state: read, checked, sent to a model, and written back whole.

A conversation is ``{messages, metadata, token_budget, trim_policy, summary}``, or a bare list of messages; nothing yet is an empty one. A
message has a ``role`` (system, user, assistant, tool) and a ``content``, and may have ``name``, ``tool_call_id``, ``tool_calls`` and ``metadata``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from agentloom.core.redaction import is_sentinel
from agentloom.core.results import JSON
from agentloom.errors import StepError
from agentloom.language.paths import MISSING
from agentloom.providers.base import Message, ToolCall
from agentloom.tools.schema import kind_of

TrimPolicy = Literal["drop_oldest", "drop_pairs", "summarize_oldest"]

ROLES = ("system", "user", "assistant", "tool")
_KEYS = ("messages", "metadata", "token_budget", "trim_policy", "summary")
_MESSAGE_KEYS = ("role", "content", "name", "tool_call_id", "tool_calls", "metadata")
_TEXTS = ("name", "tool_call_id")

Turn = Mapping[str, JSON]
"""A message as the state holds it."""


class Conversation(NamedTuple):
    """A conversation as it stands in the state. ``token_budget`` is None for no limit; ``summary`` None if nothing was summarized yet."""

    messages: tuple[Turn, ...] = ()
    metadata: Mapping[str, JSON] = {}
    token_budget: int | None = None
    trim_policy: TrimPolicy = "drop_oldest"
    summary: str | None = None

    def to_json(self) -> dict[str, JSON]:
        """Return it as it is written to the state."""
        return {**self._asdict(), "messages": list(self.messages), "metadata": dict(self.metadata)}

    def plus(self, *turns: Turn) -> Conversation:
        """Return it with turns added."""
        return self._replace(messages=(*self.messages, *turns))


def read_conversation(value: JSON, where: str) -> Conversation:
    """Return the conversation that a value of the state is; ``where`` is its path. Raises ``StepError``, permanent, for one that is none."""
    if value is MISSING or value is None:
        return Conversation()
    if _is_redacted(value):
        raise StepError(f"conversation `{where}` is redacted; give it again with `--state`")
    if isinstance(value, list):
        return Conversation(_messages(value, where))
    if not isinstance(value, Mapping):
        raise StepError(
            f"conversation `{where}` must be a mapping with `messages`, or a list of them, not {kind_of(value)}"
        )
    _refuse_others(value, _KEYS, f"conversation `{where}`")
    given = {key: entry for key, entry in value.items() if entry is not None}
    budget, policy = given.get("token_budget"), given.get("trim_policy", "drop_oldest")
    if budget is not None and (type(budget) is not int or budget < 1):
        raise StepError(f"conversation `{where}`: `token_budget` must be a whole number from 1 up")
    if policy not in get_args(TrimPolicy):
        raise StepError(f"conversation `{where}`: `trim_policy` must be {_choices(get_args(TrimPolicy))}")
    metadata, summary = given.get("metadata", {}), given.get("summary")
    if not isinstance(metadata, Mapping):
        raise StepError(f"conversation `{where}`: `metadata` must be a mapping, not {kind_of(metadata)}")
    if summary is not None and not isinstance(summary, str):
        raise StepError(f"conversation `{where}`: `summary` must be a text, not {kind_of(summary)}")
    messages = _messages(given.get("messages", []), f"{where}.messages")
    return Conversation(messages, metadata, budget, cast("TrimPolicy", policy), summary or None)


def turn(role: str, content: str, name: str | None = None) -> Turn:
    """Return a message for the state."""
    return {"role": role, "content": content} if name is None else {"role": role, "content": content, "name": name}


def sent(turns: Iterable[Turn]) -> list[Message]:
    """Return messages of the state as they are sent to a provider. Results of tools get the name that was called, as some providers need it."""
    turns = list(turns)
    called = {call.get("id"): call["name"] for message in turns for call in message.get("tool_calls") or ()}
    return [
        Message(
            str(message["role"]),
            str(message.get("content") or ""),
            name=message.get("name")
            or (called.get(message.get("tool_call_id")) if message["role"] == "tool" else None),
            tool_call_id=message.get("tool_call_id"),
            tool_calls=tuple(
                ToolCall(str(call.get("id", "")), str(call["name"]), call.get("arguments") or {})
                for call in message.get("tool_calls") or ()
            ),
        )
        for message in turns
    ]


def leading_system(messages: Sequence[Turn]) -> int:
    """Return how many system messages a conversation begins with: those are never trimmed."""
    return next((at for at, message in enumerate(messages) if message["role"] != "system"), len(messages))


def _is_redacted(value: JSON) -> bool:
    """Tell whether a conversation came back redacted as a whole, as a secret one does from a checkpoint: of its texts alone it may."""
    if not isinstance(value, Mapping):
        return is_sentinel(value) or (isinstance(value, list) and any(map(_has_no_role, value)))
    shape = (value.get("token_budget"), value.get("trim_policy"), value.get("messages"))
    return any(map(is_sentinel, shape)) or (isinstance(shape[2], list) and any(map(_has_no_role, shape[2])))


def _has_no_role(message: JSON) -> bool:
    return is_sentinel(message["role"] if isinstance(message, Mapping) and "role" in message else message)


def _messages(value: JSON, where: str) -> tuple[Turn, ...]:
    if not isinstance(value, list):
        raise StepError(f"conversation `{where}` must be a list of messages, not {kind_of(value)}")
    for at, message in enumerate(value):
        _check_message(message, f"{where}[{at}]")
    return tuple(value)


def _check_message(message: JSON, where: str) -> None:
    if not isinstance(message, Mapping):
        raise StepError(
            f"conversation message `{where}` must be a mapping with `role` and `content`, not {kind_of(message)}"
        )
    _refuse_others(message, _MESSAGE_KEYS, f"conversation message `{where}`")
    if message.get("role") not in ROLES:
        raise StepError(f"conversation message `{where}`: `role` must be {_choices(ROLES)}")
    calls = message.get("tool_calls")
    content = message.get("content")
    if not isinstance(content, str) and not (content is None and calls):
        raise StepError(f"conversation message `{where}`: `content` must be a text")
    for key in _TEXTS:
        if not isinstance(message.get(key), str | None):
            raise StepError(f"conversation message `{where}`: `{key}` must be a text")
    if calls is not None and not (isinstance(calls, list) and all(map(_is_call, calls))):
        raise StepError(
            f"conversation message `{where}`: `tool_calls` must be a list of calls with `id`, `name` and `arguments`"
        )


def _is_call(call: Any) -> bool:
    return (
        isinstance(call, Mapping)
        and isinstance(call.get("name"), str)
        and isinstance(call.get("id", ""), str)
        and isinstance(call.get("arguments") or {}, Mapping)
    )


def _refuse_others(value: Mapping[str, JSON], known: Sequence[str], what: str) -> None:
    from agentloom.similar import closest

    for key in value:
        if key not in known:
            near = closest(key, known)
            cure = f"did you mean `{near}`?" if near else f"known are {_choices(known, 'and')}"
            raise StepError(f"{what} has the unknown key `{key[:40]}`; {cure}")


def _choices(names: Sequence[str], word: str = "or") -> str:
    *others, last = [f"`{name}`" for name in names]
    return f"{', '.join(others)} {word} {last}"
