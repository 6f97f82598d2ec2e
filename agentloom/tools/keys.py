"""The idempotency key of the attempt that runs a tool, for tools that make something happen elsewhere.

It is the same when the same attempt runs again after its process was killed, and another one after it failed: a receiver that remembers
keys does things once, and is never asked to repeat a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ENVIRONMENT = "AGENTLOOM_IDEMPOTENCY_KEY"
"""The environment variable in which a command finds the key."""

HEADER = "Idempotency-Key"

_key: ContextVar[str] = ContextVar("agentloom_idempotency_key", default="")


def idempotency_key() -> str:
    """Return the key of the attempt that runs this tool, 64 hexadecimal digits; empty outside a run."""
    return _key.get()


@contextmanager
def keyed(key: str) -> Iterator[None]:
    """Let the tools that are called inside the block find this key, in threads and tasks too."""
    token = _key.set(key)
    try:
        yield
    finally:
        _key.reset(token)
