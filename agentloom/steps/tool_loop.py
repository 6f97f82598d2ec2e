"""The one loop in which a model calls tools: ask, run what it asked for, tell it the results, ask again.

`llm_call` and `agent` both use it. What goes wrong in a tool is told to the model, as the text of its result: it may do better, or
say so. Only a provider's failure, and what an `Offer` raises as ``Raised``, ends the turn.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from agentloom.core.cancelling import is_cancelled
from agentloom.core.plain import NotPlain, plain
from agentloom.errors import ProviderError, ToolNotFoundError
from agentloom.providers.base import Message, Response, ToolCall, ToolChoice, ToolSpec
from agentloom.steps.asking import Caller, derived
from agentloom.tools.keys import keyed

log = logging.getLogger(__name__)

LONGEST_RESULT = 50_000
"""How much of a tool's result a model is told, in characters; some 12,000 tokens."""

MOST_CALLS = 64
"""How many calls of one reply are run; a model that asks for more is told so."""

_SHOWN = 60


class Raised(Exception):
    """What a tool's failure means for the whole turn: ``error`` is raised in its place."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Offer(NamedTuple):
    """Something that the model may call: how it is described to it, and what runs it with its arguments and its idempotency key."""

    spec: ToolSpec
    run: Callable[[Mapping[str, Any], str], Awaitable[Any]]


class Turn(NamedTuple):
    """How a turn ended: the last reply, and the messages that it added before that one.

    ``capped`` tells that the model would have gone on calling tools.
    """

    response: Response
    messages: list[Message]
    capped: bool


async def take_turn(
    caller: Caller,
    messages: Sequence[Message],
    offers: Mapping[str, Offer],
    choice: ToolChoice,
    most_calls: int,
    conclude: bool,
    over: Callable[[str], bool] | None = None,
    go_on: str | None = None,
) -> Turn:
    """Ask until the model calls no tool any more, or until ``most_calls`` calls were made.

    ``conclude`` has the last of those made without tools, so that it answers with what it has. A choice that forces a call holds until
    one was made: forced on and on, no model could ever answer. ``over`` is asked about each reply's text and ends the turn when it is true;
    with ``go_on`` a reply without a call doesn't end it, but is answered with that text. Raises ``ProviderError``, and what is inside ``Raised``.
    """
    said: list[Message] = []
    specs = tuple(offer.spec for offer in offers.values())
    for number in range(1, most_calls + 1):
        last = number == most_calls
        now = ToolChoice("none") if last and conclude and specs and number > 1 else choice
        response = await caller.ask([*messages, *said], tools=specs, tool_choice=now)
        calls = tuple(map(_readable, response.tool_calls)) if specs and now.mode != "none" else ()
        if over is not None and over(response.content):
            return Turn(response, said, False)
        if not calls and (go_on is None or last):
            return Turn(response, said, last and (go_on is not None or (conclude and number > 1)))
        if last:
            break
        said.append(assistant_turn(response, calls))
        if calls:
            said.extend(await _run_all(calls, offers, derived(caller.key, "tools", number)))
            choice = choice if choice.mode == "none" else ToolChoice()
        elif go_on is not None:
            said.append(Message("user", go_on))
    return Turn(response, said, True)


def assistant_turn(response: Response, calls: tuple[ToolCall, ...] = ()) -> Message:
    """Return a reply as a turn of the conversation."""
    return Message("assistant", response.content, tool_calls=calls, carried=response.carried)


async def _run_all(calls: Sequence[ToolCall], offers: Mapping[str, Offer], key: str) -> list[Message]:
    """Run the calls of one reply at the same time; return their results in the order of the calls."""
    results: list[Message | None] = [None] * len(calls)
    raised: list[Exception] = []

    async def one(at: int, call: ToolCall) -> None:
        try:
            text, is_error = await _run(call, offers, derived(key, at, call.name, call.arguments))
        except (ProviderError, Raised) as error:
            raised.append(error.error if isinstance(error, Raised) else error)
            if group is not None:
                group.cancel_scope.cancel()  # what the others would say nobody is going to be told
        else:
            results[at] = Message("tool", text, name=call.name, tool_call_id=call.id, is_error=is_error)

    group: TaskGroup | None = None
    if len(calls) == 1:
        await one(0, calls[0])
    else:
        async with anyio.create_task_group() as group:
            for at, call in enumerate(calls[:MOST_CALLS]):
                group.start_soon(one, at, call)
    if raised:
        raise raised[0]
    over = f"not run: at most {MOST_CALLS} tools can be called at once"
    return [
        result or Message("tool", over, name=call.name, tool_call_id=call.id, is_error=True)
        for result, call in zip(results, calls, strict=True)
    ]


async def _run(call: ToolCall, offers: Mapping[str, Offer], key: str) -> tuple[str, bool]:
    """Return what a call gave, as text for the model, and whether that tells of a failure."""
    offer = offers.get(call.name)
    if offer is None:
        names = ", ".join(f"`{name}`" for name in offers)
        return f"error: there is no tool `{_shown(call.name)}`; there are {names}", True
    if call.fault:
        return f"error: the arguments of `{_shown(call.name)}` can't be read: {_cut(call.fault)}", True
    try:
        with keyed(key):
            return as_text(await offer.run(call.arguments, key)), False
    except (ProviderError, Raised):
        raise
    except NotPlain as error:
        return f"error: {error}", True
    except ToolNotFoundError:
        return f"error: tool `{_shown(call.name)}` is not registered", True
    except Exception as error:
        log.debug("Tool '%s' raised", _shown(call.name), exc_info=error)
        return "error: " + _cut(str(error) or type(error).__name__), True
    except SystemExit as error:
        return f"error: the tool tried to end the program: exit code {error.code}", True
    except anyio.get_cancelled_exc_class():
        if is_cancelled():
            raise
        return "error: the tool was cancelled from inside", True


def _readable(call: ToolCall) -> ToolCall:
    """Return a call with a copy of its arguments; without them, and with its fault, where they are no plain data."""
    try:
        return call._replace(arguments=plain(dict(call.arguments), "arguments"))
    except NotPlain as error:
        return call._replace(arguments={}, fault=str(error))


def as_text(value: Any) -> str:
    """Return a tool's result as text: a text as it is, anything else as JSON. Raises ``NotPlain`` for what is no plain data."""
    if isinstance(value, str):
        return _cut(value)
    return _cut(json.dumps(plain(value, "result"), ensure_ascii=False))


def _cut(text: str) -> str:
    if len(text) <= LONGEST_RESULT:
        return text
    return f"{text[:LONGEST_RESULT]}\n[cut here: these are the first {LONGEST_RESULT} of {len(text)} characters]"


def _shown(name: str) -> str:
    """Return a name that a model made up, fit for one line."""
    text = "".join(letter if letter.isprintable() else "?" for letter in name[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
