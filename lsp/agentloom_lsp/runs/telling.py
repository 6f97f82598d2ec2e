"""How a run is told to the client: progress while it goes on, a message when it ends, and every event to clients that want them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from agentloom.ide.lenses import words
from agentloom.ide.prose.last_run import money, took
from agentloom_lsp.progress import Progress
from agentloom_lsp.runs.run import RUNNING, Run

ERROR, WARNING, INFO = 1, 2, 3
"""Kinds of messages."""
WITH_MOCK = "Run with mock"
"""What is offered where an API key is missing."""
_KEY = re.compile(r"\bset ([A-Z][A-Z0-9_]+) to use\b")


class Wire(Protocol):
    """The way to the client."""

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""


class Teller:
    """Tells of one run. ``events`` says that the client wants them all, ``offers`` that a missing key is told elsewhere, with a way around."""

    def __init__(self, run: Run, wire: Wire, progress: Progress, events: bool, offers: bool) -> None:
        self._run = run
        self._wire = wire
        self._progress = progress
        self._events = events
        self._offers = offers
        progress.show()

    def on_cancel(self, cancel: Callable[[], object]) -> None:
        """Say what is to be done when the user calls the run off."""
        self._progress.on_cancel = cancel

    def drop(self) -> None:
        """The run can't be started after all."""
        self._progress.end()

    def event(self, event: Mapping[str, Any]) -> None:
        """Tell of an event."""
        self._send(event)
        run = self._run
        if event["event"] == "step_delta" or run.status != RUNNING or not run.total:
            return
        number = min(max(1, run.done + (1 if run.at else 0)), run.total)
        words = f"step {number} of {run.total}{f': {run.at}' if run.at else ''}{money(run.cost, ' · ')}"
        self._progress.report(100 * run.done // run.total, words)

    def end(self, code: int) -> None:
        """Tell how it ended."""
        run = self._run
        ended = {
            "version": 1,
            "event": "run_ended",
            "run_id": run.run_id,
            "status": run.status,
            "error": run.error,
            "exit_code": code,
            "total_cost_usd": run.cost,
            "duration_ms": run.duration * 1000,
        }
        self._send(ended)
        kind, said = outcome(run)
        shown = self._progress.shown
        self._progress.end(said)
        if self._offers and missing_key(run.error) is not None:
            return
        if kind != INFO or run.status == "paused" or not shown:
            self._wire.notify("window/showMessage", {"type": kind, "message": said})

    def _send(self, event: Mapping[str, Any]) -> None:
        if self._events:
            run = self._run
            self._wire.notify("agentloom/runEvent", {"runId": run.run_id, "uri": run.uri, "event": event})


def outcome(run: Run) -> tuple[int, str]:
    """Return what came of a run: the kind of message, and the message."""
    name = f"`{run.title}`"
    if run.status == "success":
        count = "1 step" if run.done == 1 else f"{run.done} steps"
        return INFO, f"{name} is done: {count}, {took(run.duration)}{money(run.cost, ', ')}"
    if run.status == "paused":
        return INFO, f"{name} waits at `{run.waits_at or '?'}`; approve or reject it above its first line"
    kept = "; it can be resumed" if run.began else ""
    if run.status == "cancelled":
        return INFO, f"{name} was cancelled{kept}"
    if run.status == "refused":
        return ERROR, f"{name} was not run: {run.error}"
    if run.status == "interrupted":
        return ERROR, f"{name} broke off: {run.error}{kept}"
    return ERROR, f"{name} {'failed' if run.status == 'failed' else f'is {words(run.status)}'}: {run.error}"


def missing_key(text: str | None) -> str | None:
    """Return the variable that an error says has to be set; None for any other error."""
    found = _KEY.search(text or "")
    return found[1] if found is not None else None
