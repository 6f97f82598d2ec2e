"""A provider's limits: requests and tokens a minute, as buckets that fill steadily, and calls at once. Calls wait for their turn.

Time is that of the event loop. A bucket may go below zero: whoever takes it there waits until it is filled again, so calls go in the
order in which they came. The tokens of a reply are known only afterwards; they are taken then, and those who follow wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeAlias

import anyio

from agentloom.errors import RateLimitError
from agentloom.providers.base import AttachmentKind, Message

REQUESTS_A_MINUTE = 60
TOKENS_A_MINUTE = 100_000
CHARACTERS_A_TOKEN = 4
ATTACHMENT_TOKENS: Mapping[AttachmentKind, int] = {"image": 85, "pdf": 200, "audio": 100}


class Bucket:
    """Holds up to ``limit``, and gains that much each minute."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._level = float(limit)
        self._seen: float | None = None

    def take(self, amount: float) -> float:
        """Take an amount; return how many seconds it takes until it is there."""
        now = anyio.current_time()
        if self._seen is not None:
            self._level = min(float(self.limit), self._level + (now - self._seen) * self.limit / 60)
        self._seen = now
        self._level -= amount
        return max(0.0, -self._level * 60 / self.limit)

    def give_back(self, amount: float) -> None:
        """Put an amount back that wasn't used after all."""
        self._level += amount


class Limit(NamedTuple):
    """What a provider allows: requests and tokens a minute, calls at once. None is no limit."""

    requests: int | None = None
    tokens: int | None = None
    concurrent: int | None = None

    def without(self, other: Limit) -> Limit:
        """Return what is left when what ``other`` limits is limited elsewhere."""
        return Limit(*(None if there is not None else here for here, there in zip(self, other, strict=True)))


NO_LIMIT = Limit()

Leave: TypeAlias = Callable[[int], None]
"""Ends a turn, and is told how many tokens the reply had."""


class Turns(Protocol):
    """Who may call a provider, and when. A gateway has its own (``RateLimit``); several processes may share one."""

    async def enter(self, tokens: int) -> Leave:
        """Wait for the turn of a request with so many tokens, and return what ends it. A wait that is called off takes nothing.

        Raises ``RateLimitError``, permanent, for a request that is larger than a minute's tokens: no wait would help.
        """
        ...


class RateLimit:
    """The limits of one provider, for the calls of one gateway."""

    def __init__(self, name: str, limit: Limit = NO_LIMIT) -> None:
        self.name = name
        self.limit = limit
        self._requests = None if limit.requests is None else Bucket(limit.requests)
        self._tokens = None if limit.tokens is None else Bucket(limit.tokens)
        self._slots = None if limit.concurrent is None else anyio.Semaphore(limit.concurrent)

    async def enter(self, tokens: int) -> Leave:
        """Wait for a turn."""
        refuse_larger(self.name, self.limit, tokens)
        if self._slots is not None:
            await self._slots.acquire()
        try:
            with self._taken(tokens) as seconds:
                if seconds > 0:
                    await anyio.sleep(seconds)
        except BaseException:
            self._leave()
            raise
        return self._leave

    def _leave(self, tokens: int = 0) -> None:
        if self._slots is not None:
            self._slots.release()
        if self._tokens is not None:
            self._tokens.take(tokens)

    @contextmanager
    def _taken(self, tokens: int) -> Iterator[float]:
        """Take a request's share; it is put back when the wait is called off."""
        shares = [(bucket, amount) for bucket, amount in ((self._requests, 1), (self._tokens, tokens)) if bucket]
        seconds = max((bucket.take(amount) for bucket, amount in shares), default=0.0)
        try:
            yield seconds
        except BaseException:
            for bucket, amount in shares:
                bucket.give_back(amount)
            raise


def refuse_larger(name: str, limit: Limit, tokens: int) -> None:
    """Raise ``RateLimitError``, permanent, when a request has more tokens than a minute may have: no wait would help."""
    if limit.tokens is not None and tokens > limit.tokens:
        raise RateLimitError(
            f"Provider '{name}': the request has about {tokens:,} tokens, more than the {limit.tokens:,} "
            "a minute that are allowed",
            provider=name,
            permanent=True,
        )


def estimated_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens a request has: four characters each, and a fixed number for each attachment."""
    texts = tokens_of_texts(message.content for message in messages)
    return texts + sum(ATTACHMENT_TOKENS[each.kind] for message in messages for each in message.attachments)


def tokens_of_texts(texts: Iterable[str]) -> int:
    """Return about how many tokens texts have: four characters each."""
    return sum(-(-len(text) // CHARACTERS_A_TOKEN) for text in texts)
