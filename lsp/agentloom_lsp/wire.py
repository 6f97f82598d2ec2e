"""The way to the client for messages in plain JSON, and the answers that come back on it."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from itertools import count
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603
CANCELLED = -32800
REQUEST_FAILED = -32803
CONTENT_MODIFIED = -32801


class ClientRefused(Exception):
    """The client answered a request of ours with an error."""


class Wire:
    """Sends notifications, requests and answers. Used in the loop's thread only."""

    def __init__(self, loop: AbstractEventLoop, send: Callable[[Any], None]) -> None:
        self._loop = loop
        self._send = send
        self._numbers = count()
        self._waiting: dict[Any, Future[Any]] = {}

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, params: Any) -> Any:
        """Send a request and return the client's answer, as it is. Raises ``ClientRefused`` for an error."""
        number = f"agentloom-{next(self._numbers)}"
        future = self._waiting[number] = self._loop.create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            return await future
        finally:
            self._waiting.pop(number, None)

    def answer(self, number: Any, result: Any) -> None:
        """Answer a request of the client."""
        self._send({"jsonrpc": "2.0", "id": number, "result": result})

    def refuse(self, number: Any, code: int, words: str) -> None:
        """Answer a request of the client with an error."""
        self._send({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}})

    def answered(self, message: dict[str, Any]) -> None:
        """Take an answer of the client: null where a list is due is an answer too."""
        number = message.get("id")
        future = self._waiting.get(number) if isinstance(number, str) else None
        if future is None or future.done():
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
        else:
            words = error.get("message") if isinstance(error, dict) else None
            future.set_exception(ClientRefused(words if isinstance(words, str) else "no reason given"))
