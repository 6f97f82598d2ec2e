"""What a call may ask about the run that it belongs to: which attempt it is part of, and what in it is secret.

Both go along with the task (`contextvars`), so that steps and providers needn't hand them on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, NamedTuple


class AttemptId(NamedTuple):
    """An attempt of a step: the step's path in the run, and the attempt's number over the life of the run."""

    path: str
    number: int


class Secrets:
    """What is secret in a run, for those who write down calls. This one knows none: every value stays as it is."""

    def __bool__(self) -> bool:
        return False

    def learn(self, path: str, output: Any) -> None:
        """Take in what a step gave, if it is secret."""

    def text(self, text: str) -> str:
        """Return a text with the secret values in it replaced."""
        return text

    def value(self, value: Any) -> Any:
        """Return plain data without the values under secret keys, and with secret values in its texts replaced."""
        return value

    def reply(self, step: str, text: str, is_json: bool = False) -> str:
        """Return what a model said to a step, given by its path, without what is secret where it will be written."""
        return text

    def result(self, step: str, value: Any) -> Any:
        """Return what a tool gave to a step, given by its path, without what is secret where it will be written."""
        return value


NO_SECRETS = Secrets()

_attempt: ContextVar[AttemptId | None] = ContextVar("agentloom_attempt", default=None)
_secrets: ContextVar[Secrets] = ContextVar("agentloom_secrets", default=NO_SECRETS)


def current_attempt() -> AttemptId | None:
    """Return the attempt that the current task is part of; None outside a run."""
    return _attempt.get()


def current_secrets() -> Secrets:
    """Return what is secret in the current task's run."""
    return _secrets.get()


class in_attempt:
    """Let everything inside the block, tasks that it starts too, be part of an attempt."""

    __slots__ = ("_id", "_token")

    def __init__(self, path: str, number: int) -> None:
        self._id = AttemptId(path, number)

    def __enter__(self) -> None:
        self._token: Token[AttemptId | None] = _attempt.set(self._id)

    def __exit__(self, *_: object) -> None:
        _attempt.reset(self._token)


@contextmanager
def with_secrets(secrets: Secrets) -> Iterator[None]:
    """Let everything inside the block know what is secret."""
    token = _secrets.set(secrets)
    try:
        yield
    finally:
        _secrets.reset(token)
