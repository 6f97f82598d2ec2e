"""A provider's rate limits: requests and tokens a minute, as buckets that fill steadily. Calls wait for their turn.

Time is that of the event loop. A bucket may go below zero: whoever takes it there waits until it is filled again, so calls go in the
order in which they came. The tokens of a reply are known only afterwards; they are taken then, and those who follow wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

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


class RateLimit:
    """The limits of one provider; None is no limit."""

    def __init__(self, name: str, requests: int | None, tokens: int | None) -> None:
        self.name = name
        self._requests = None if requests is None else Bucket(requests)
        self._tokens = None if tokens is None else Bucket(tokens)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._requests is not None or self._tokens is not None

    async def wait(self, tokens: int) -> None:
        """Wait until a request with so many tokens may be sent.

        Raises ``RateLimitError``, permanent, for a request that is larger than a minute's tokens: no wait would help.
        """
        if self._tokens is not None and tokens > self._tokens.limit:
            raise RateLimitError(
                f"Provider '{self.name}': the request has about {tokens:,} tokens, more than the {self._tokens.limit:,} "
                "a minute that are allowed",
                provider=self.name,
                permanent=True,
            )
        with self._taken(tokens) as seconds:
            if seconds > 0:
                await anyio.sleep(seconds)

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

    def count(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        if self._tokens is not None:
            self._tokens.take(tokens)


def estimated_tokens(messages: Sequence[Message]) -> int:
    """Return about how many tokens a request has: four characters each, and a fixed number for each attachment."""
    texts = tokens_of_texts(message.content for message in messages)
    return texts + sum(ATTACHMENT_TOKENS[each.kind] for message in messages for each in message.attachments)


def tokens_of_texts(texts: Iterable[str]) -> int:
    """Return about how many tokens texts have: four characters each."""
    return sum(-(-len(text) // CHARACTERS_A_TOKEN) for text in texts)
