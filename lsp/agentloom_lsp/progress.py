"""Progress of long work, shown by the client, which can also call it off."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from itertools import count
from typing import Any, Protocol

MANY = 20
"""Fewer files are checked before anybody could read that they are."""
_numbers = count()


class Connection(Protocol):
    """The way to the client."""

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""


class Progress:
    """One piece of work. ``cancelled``: the user wants no more of it.

    Shown under the client's own token if it gave one; else under one of ours, if the client can be asked (``ask``) for that and there
    is enough to do. ``running`` is where tokens are found again when the user calls work off.
    """

    def __init__(
        self,
        title: str,
        token: Any,
        wire: Connection,
        ask: Callable[[str, Any, Callable[[Any], None]], None] | None,
        running: MutableMapping[Any, Progress],
    ) -> None:
        self.cancelled = False
        self._title = title
        self._wire = wire
        self._ask = ask
        self._running = running
        self._token = token
        self._shown = False
        self._ended = False
        self._percentage = 0
        if token is not None:
            self._running[token] = self
            self._begin()

    def step(self, done: int, total: int) -> None:
        """Tell how far the work is."""
        if self._token is None and self._ask is not None and total >= MANY:
            self._token = f"agentloom-{next(_numbers)}"
            self._running[self._token] = self
            self._ask("window/workDoneProgress/create", {"token": self._token}, lambda _: self._begin())
        percentage = 100 * done // total if total else 100
        if self._shown and percentage > self._percentage:
            self._percentage = percentage
            self._tell({"kind": "report", "percentage": percentage, "message": f"{done} of {total} files"})

    def end(self, words: str | None = None) -> None:
        """The work is done, or was called off."""
        if self._shown:
            self._tell({"kind": "end", **({"message": words} if words else {})})
        self._shown, self._ended = False, True
        self._running.pop(self._token, None)

    def _begin(self) -> None:
        if not self._ended:
            self._shown = True
            self._tell({"kind": "begin", "title": self._title, "cancellable": True, "percentage": 0})

    def _tell(self, value: dict[str, Any]) -> None:
        self._wire.notify("$/progress", {"token": self._token, "value": value})
