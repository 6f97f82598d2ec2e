"""What a scripted provider says turn by turn: texts, calls of tools, failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agentloom.providers.base import OnDelta, Request, Response, ToolCall, Usage

Answer = Callable[[Request, OnDelta | None], Awaitable[Any]]


def says(text: str, *calls: ToolCall, cost: float = 0.5, finish: str = "stop", **more: Any) -> Response:
    """Return a reply: 3 tokens in, 4 out, half a dollar."""
    return Response(text, "m", "mock", Usage(3, 4, 7), cost, finish, tool_calls=calls, **more)


def calls(name: str, id: str = "", **arguments: Any) -> ToolCall:
    """Return a call of a tool; its id is its name unless given."""
    return ToolCall(id or name, name, arguments)


def turns(*replies: Any) -> Answer:
    """Return an answer that plays replies in order and stays at the last; texts, responses, calls, or errors to raise."""
    left = list(replies)

    async def answer(request: Request, on_delta: OnDelta | None) -> Response:
        reply = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ToolCall):
            reply = says("", reply, finish="tool_calls")
        found: Response = says(reply) if isinstance(reply, str) else reply
        if request.stream and on_delta is not None:
            for word in found.content.split():
                await on_delta(word)
        return found

    return answer
