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
    """One piece of work. ``cancelled``: the user wants no more of it; ``on_cancel`` is called when that is said.

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
        self.on_cancel: Callable[[], object] = lambda: None
        self._title = title
        self._wire = wire
        self._ask = ask
        self._running = running
        self._token = token
        self._shown = False
        self._ended = False
        self._percentage = 0
        self._message: str | None = None
        if token is not None:
            self._running[token] = self
            self._begin()

    @property
    def shown(self) -> bool:
        """Whether the client shows it by now."""
        return self._shown

    def show(self) -> None:
        """Show it from now on, if the client can be asked to, however little there is to do."""
        if self._token is None and self._ask is not None and not self._ended:
            self._token = f"agentloom-{next(_numbers)}"
            self._running[self._token] = self
            self._ask("window/workDoneProgress/create", {"token": self._token}, lambda _: self._begin())

    def step(self, done: int, total: int) -> None:
        """Tell how far the work is."""
        if total >= MANY:
            self.show()
        percentage = 100 * done // total if total else 100
        if percentage > self._percentage:
            self.report(percentage, f"{done} of {total} files")

    def report(self, percentage: int, message: str) -> None:
        """Tell how far the work is, in words of one's own; a percentage never goes down."""
        self._percentage = max(self._percentage, percentage)
        self._message = message
        if self._shown:
            self._tell({"kind": "report", "percentage": self._percentage, "message": message})

    def cancel(self) -> None:
        """The user calls the work off."""
        self.cancelled = True
        self.on_cancel()

    def end(self, words: str | None = None) -> None:
        """The work is done, or was called off."""
        if self._shown:
            self._tell({"kind": "end", **({"message": words} if words else {})})
        self._shown, self._ended = False, True
        self._running.pop(self._token, None)

    def _begin(self) -> None:
        if not self._ended:
            self._shown = True
            said = {"kind": "begin", "title": self._title, "cancellable": True, "percentage": self._percentage}
            self._tell(said if self._message is None else {**said, "message": self._message})

    def _tell(self, value: dict[str, Any]) -> None:
        self._wire.notify("$/progress", {"token": self._token, "value": value})
