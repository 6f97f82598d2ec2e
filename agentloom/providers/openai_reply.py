"""What is read in OpenAI's wire format: whole replies, and replies that arrive in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentloom.providers.base import Message, ToolCall, Usage
from agentloom.providers.openai_request import CARRIED
from agentloom.providers.reading import count_of, read_arguments
from agentloom.providers.wire import Reply


class Malformed(Exception):
    """What is wrong with a reply, in a few words."""


@dataclass(slots=True)
class _Call:
    """What has arrived of one tool call."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    whole: Any = None
    """Arguments that arrived as an object; the format knows only texts, some servers don't."""


@dataclass(slots=True)
class ChatReply(Reply):
    """What has arrived of one reply, with what is put together only at its end."""

    thoughts: dict[str, list[str]] = field(default_factory=dict)
    """The pieces of the reasoning, by the key under which the server sends them."""
    _calls: list[_Call] = field(default_factory=list)
    _at: dict[int, _Call] = field(default_factory=dict)

    def finish(self, turns: Sequence[Message]) -> None:
        """Put together what the model let see of its reasoning, its calls in their order, and what the server wants back with them.

        A call without an id gets one, numbered after the calls of the ``turns`` before.
        """
        if self.thoughts:
            self.reasoning = next(iter(self.thoughts.values()))
        if not self._calls:
            return
        before = sum(len(turn.tool_calls) for turn in turns)
        for at, call in enumerate(self._calls, before):
            arguments, fault = read_arguments("".join(call.pieces) if call.whole is None else call.whole)
            self.calls.append(ToolCall(call.id or f"call_{at}", call.name, arguments, fault))
        self.carried = {key: "".join(said) for key, said in self.thoughts.items() if key in CARRIED} or None

    def note(self, data: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        """Take model, finish reason and usage from a reply or a part of one, where they stand in it."""
        model, reason, usage = data.get("model"), choice.get("finish_reason"), data.get("usage")
        if isinstance(model, str) and model:
            self.model = model
        if isinstance(reason, str):
            self.finish_reason = reason
        if isinstance(usage, Mapping):
            self.usage = usage_of(usage)

    def take(self, message: Mapping[str, Any], where: str) -> str:
        """Take what a message holds, or a part of one (``where`` is then `delta.`); return its text. Raises ``Malformed``."""
        content = message.get("content")
        text = self._text(message.get("refusal") if content is None or content == "" else content, where)
        for key in CARRIED:
            thought = message.get(key)
            if isinstance(thought, str) and thought:
                self.thoughts.setdefault(key, []).append(thought)
        calls = message.get("tool_calls")
        if calls is not None:
            if not isinstance(calls, list):
                raise Malformed(f"the answer's `{where}tool_calls` is not a list")
            for call in calls:
                self._take_call(call, where)
        return text

    def _text(self, content: Any, where: str) -> str:
        if content is None or isinstance(content, str):
            return content or ""
        # A list of parts: some servers send what a model thought, and what it says, as parts of one content.
        if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
            raise Malformed(f"the answer's `{where}content` is not a text")
        said: list[str] = []
        for part in content:
            if part.get("type") == "thinking":
                thought = self._text(part.get("thinking"), where)
                if thought:
                    self.thoughts.setdefault("parts", []).append(thought)
            elif isinstance(part.get("text"), str):
                said.append(part["text"])
        return "".join(said)

    def _take_call(self, data: Any, where: str) -> None:
        """Take a call, or a part of one: the parts of a call have one number. A server that gives none names the call in its first part."""
        function = data.get("function") if isinstance(data, Mapping) else None
        if not isinstance(function, Mapping):
            raise Malformed(f"the answer's `{where}tool_calls` holds something that is no call")
        id, name, arguments = data.get("id"), function.get("name"), function.get("arguments")
        index = data.get("index")
        if not where:
            call = None
        elif type(index) is int:
            call = self._at.get(index)
            if call is not None and id and name and call.id not in ("", id):
                call = None  # another call under the same number
        else:
            call = self._calls[-1] if self._calls and not name else None
        if call is None:
            call = _Call()
            self._calls.append(call)
        if type(index) is int:
            self._at[index] = call
        if isinstance(id, str) and not call.id:
            call.id = id
        if isinstance(name, str) and not call.name:
            call.name = name
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        elif arguments is not None:
            call.whole = arguments


def first_choice(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first of the choices in a reply, if there is one."""
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def usage_of(data: Mapping[str, Any]) -> Usage:
    """Return the tokens that a reply's `usage` tells of."""
    details = data.get("completion_tokens_details")
    prompt, completion = count_of(data, "prompt_tokens"), count_of(data, "completion_tokens")
    reasoning = count_of(details, "reasoning_tokens") if isinstance(details, Mapping) else 0
    total = count_of(data, "total_tokens")
    if reasoning and total == prompt + completion + reasoning:
        completion += reasoning  # counted apart by some servers; here, as with OpenAI, a part of the completion
    return Usage(prompt, completion, total or prompt + completion, reasoning)
