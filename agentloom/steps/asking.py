"""Model calls inside one attempt: each with a key of its own, counted when it comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from agentloom.core.kinds import Attempt, Services
from agentloom.core.limits import DIGITS
from agentloom.errors import StepError
from agentloom.providers.base import Message, OnDelta, Request, Response


class Caller:
    """Makes the calls of one turn: an attempt's own, or those of an agent that another one called.

    ``request`` makes a request from what they don't have in common. ``key`` is the idempotency key of the first; those after it get keys made from it and from
    what is said in them, so that a turn that is made again after a kill, and goes another way, is never taken for the first one.
    ``limit`` is what its calls may cost, in US dollars; those of a ``parent`` count for that, too. ``on_delta`` takes the text of streamed replies; ``reasoning`` is what came of it, reply by reply.
    """

    def __init__(
        self,
        services: Services,
        attempt: Attempt,
        request: Callable[..., Request],
        key: str,
        on_delta: OnDelta | None = None,
        limit: float | None = None,
        parent: Caller | None = None,
    ) -> None:
        self.cost = 0.0
        self.limit = limit
        self.parent = parent
        self.services = services
        self.attempt = attempt
        self.key = key
        self.calls = 0
        self.time_to_first_token_ms: float | None = None
        self.reasoning: list[str] = []
        self._request = request
        self._on_delta = on_delta

    async def ask(self, messages: Sequence[Message], **more: Any) -> Response:
        """Make one call; ``more`` are the fields of the request that are different in this one. Raises ``ProviderError``."""
        key = self.key if not self.calls else derived(self.key, self.calls, *map(_said, messages))
        self.calls += 1
        request = self._request(messages=list(messages), idempotency_key=key, **more)
        response = await self.services.gateway.complete(request, self._on_delta if request.stream else None)
        self.spend(response)
        if response.reasoning:
            self.reasoning.append(response.reasoning)
        if self.time_to_first_token_ms is None:
            self.time_to_first_token_ms = response.time_to_first_token_ms
        return response

    def spend(self, response: Response) -> None:
        """Count what a call cost. Raises ``TooDear`` when that is more than its own limit, or one above it."""
        self.attempt.spend(response.cost_usd, response.usage)
        above: Caller | None = self
        dear: Caller | None = None
        while above is not None:
            above.cost += response.cost_usd
            if above.limit is not None and round(above.cost - above.limit, DIGITS) > 0:
                dear = above
            above = above.parent
        if dear is not None:
            raise TooDear(dear)


class TooDear(StepError):
    """The calls of a turn cost more than its `max_cost_usd`; ``caller`` is the one whose limit it is."""

    def __init__(self, caller: Caller) -> None:
        limit = caller.limit or 0.0
        digits = 4 if limit >= 0.001 else 9
        super().__init__(
            f"the agent's turn cost ${caller.cost:.{digits}f}, more than its `max_cost_usd` of ${limit:.{digits}f}"
        )
        self.caller = caller


def derived(key: str, *parts: Any) -> str:
    """Return a key for a part of what another key is for, as 64 hexadecimal digits: the same for the same parts."""
    found = sha256(key.encode())
    for part in parts:
        text = str(part).encode("utf-8", "surrogatepass")
        found.update(b"%d:%s" % (len(text), text))
    return found.hexdigest()


def _said(message: Message) -> str:
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return f"{message.role}/{message.name}/{message.tool_call_id}/{calls}/{message.content}"
