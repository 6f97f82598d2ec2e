"""All runs of a session: those that go on, and the last one of each document. In the loop's thread."""

from __future__ import annotations

import asyncio
import secrets
from asyncio import AbstractEventLoop, Future
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from agentloom.ide.last_run import LastRun
from agentloom_lsp.options import Options
from agentloom_lsp.progress import Progress
from agentloom_lsp.runs.arguments import state_pairs
from agentloom_lsp.runs.child import Child
from agentloom_lsp.runs.run import Run
from agentloom_lsp.runs.telling import Teller

AGAIN = 1.0
"""Seconds between the second request to end, which doesn't wait for anything, and the end by force."""
FAR = 20.0
"""Seconds that a run in a database has to end once it is called off there."""
LEAVING = 1.5
"""Seconds that runs have to write their checkpoints when the server itself has to go."""
LATER = 0.2
"""Seconds between two looks of the client at what changes while a run goes on."""
MOST_ENDED = 100
"""Ended runs that are remembered."""


class Host(Protocol):
    """What runs need of the session."""

    loop: AbstractEventLoop
    options: Options

    def progress(self, title: str, token: Any = None, unasked: bool = True) -> Progress:
        """Return a way to show how far a run is."""

    def run_moved(self, keys: Iterable[str], told: bool) -> None:
        """A run of these documents went on: what is shown of it has changed; with ``told`` also where it failed, or failed before."""

    def run_ended(self, run: Run) -> None:
        """A run has ended; it was told, and what it left behind can be read."""

    def call_off(self, run: Run) -> None:
        """Cancel a run in a database."""

    def tell_run(self, run: Run) -> Teller:
        """Return what tells the client of a run."""


class _Going:
    """A run that goes on, with its process."""

    def __init__(self, run: Run, teller: Teller, ended: Future[None]) -> None:
        self.run = run
        self.teller = teller
        self.ended = ended
        self.child: Child | None = None
        self.timers: list[asyncio.TimerHandle] = []


class Runs:
    """Starts runs, follows them, ends them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._going: dict[str, _Going] = {}
        self._last: dict[str, Run] = {}
        self._ended: dict[str, Run] = {}
        self._planned: dict[str, asyncio.TimerHandle] = {}
        self._leaving = False

    def start(self, run: Run, arguments: Sequence[str], text: str | None, folder: Path) -> None:
        """Start a run: its process has these arguments, this text on standard input, the state that was asked for, and this working folder.

        Raises ``OSError`` or ``ValueError`` (for arguments that no process can be given) when it can't be started, ``RuntimeError`` when it goes on already, or the server leaves.
        """
        if self._leaving or run.run_id in self._going:
            raise RuntimeError(f"run `{run.run_id}` goes on already")
        loop = self._host.loop
        going = _Going(run, self._host.tell_run(run), loop.create_future())
        try:
            going.child = Child(
                arguments,
                text,
                state_pairs(run.asked),
                folder,
                run.on,
                loop,
                lambda line: self._heard(going, line),
                lambda code: self._over(going, code),
            )
        except (OSError, ValueError):
            going.teller.drop()
            raise
        going.teller.on_cancel(lambda: self.cancel(run.run_id))
        self._going[run.run_id] = going
        self._ended.pop(run.run_id, None)
        self._last.pop(run.key, None)
        self._last[run.key] = run  # behind all others: what is shown is the latest
        self._moved(run, told=True)

    def cancel(self, run_id: str) -> bool:
        """Ask a run to end, and make it end if it doesn't; tell whether it goes on."""
        going = self._going.get(run_id)
        if going is None or going.child is None:
            return False
        if not going.run.cancelled:
            going.run.cancelled = True
            if going.run.on is not None and not self._leaving:
                # Whoever performs it stops it; the process, which only looks on perhaps, ends by itself then.
                self._host.call_off(going.run)
                going.timers = [
                    self._host.loop.call_later(FAR, going.child.terminate),
                    self._host.loop.call_later(FAR + AGAIN, going.child.kill),
                ]
                return True
            going.child.terminate()
            # A second request ends it at once, with the commands that it has started; then by force.
            grace = self._host.options.run_grace / 1000
            later = self._host.loop.call_later
            going.timers = [later(grace, going.child.terminate), later(grace + AGAIN, going.child.kill)]
        return True

    def going_on(self, key: str | None = None) -> list[Run]:
        """Return the runs that go on, of one document or of all."""
        return [going.run for going in self._going.values() if key is None or going.run.key == key]

    def find(self, run_id: str) -> Run | None:
        """Return a run of this session by its id."""
        going = self._going.get(run_id)
        return going.run if going is not None else self._ended.get(run_id)

    def all(self) -> list[Run]:
        """Return every run of this session that is remembered, the latest first."""
        return [*reversed([going.run for going in self._going.values()]), *reversed(self._ended.values())]

    def last(self, key: str) -> LastRun | None:
        """Return the last run of a document, as it is now: its own, or one of a workflow that runs it."""
        found = (run.last_of(key) for run in reversed(self._last.values()))
        return next((last for last in found if last is not None), None)

    def process_id(self, run_id: str) -> int | None:
        """Return the number of a run's process."""
        going = self._going.get(run_id)
        return going.child.process_id if going is not None and going.child is not None else None

    def leave(self) -> None:
        """The server is about to go: ask all runs to end, unless they are to go on by themselves."""
        self._leaving = True
        if self._host.options.run_on_shutdown == "cancel":
            for run_id in list(self._going):
                self.cancel(run_id)

    async def close(self) -> None:
        """Wait for the runs that were asked to end, for a moment, and end those that are left by force."""
        self.leave()
        for handle in self._planned.values():
            handle.cancel()
        if self._host.options.run_on_shutdown != "cancel" or not self._going:
            return
        await self._wait(LEAVING)
        for going in self._going.values():
            if going.child is not None:
                going.child.kill()
        await self._wait(AGAIN)

    async def _wait(self, patience: float) -> None:
        if waiting := [going.ended for going in self._going.values()]:
            await asyncio.wait(waiting, timeout=patience)

    def _heard(self, going: _Going, line: bytes) -> None:
        event = going.run.take(line)
        if event is not None:
            going.teller.event(event)
            if event["event"] != "step_delta":
                self._soon(going.run)

    def _over(self, going: _Going, code: int) -> None:
        run, child = going.run, going.child
        for timer in going.timers:
            timer.cancel()
        if child is not None:
            complaints = child.complaints()
            run.end(code, complaints)
            run.output = child.output() + complaints
            child.close()
        self._going.pop(run.run_id, None)
        self._ended[run.run_id] = run
        while len(self._ended) > MOST_ENDED:
            self._ended.pop(next(iter(self._ended)))
        if (handle := self._planned.pop(run.key, None)) is not None:
            handle.cancel()
        going.teller.end(code)
        if not going.ended.done():
            going.ended.set_result(None)
        if not self._leaving:
            self._moved(run, told=True)
            self._host.run_ended(run)

    def _moved(self, run: Run, told: bool) -> None:
        self._host.run_moved((run.key, *run.files.values()), told)

    def _soon(self, run: Run) -> None:
        """Have the client look again at a document, not more often than anybody can see."""

        def look() -> None:
            self._planned.pop(run.key, None)
            self._moved(run, told=False)

        if run.key not in self._planned and not self._leaving:
            self._planned[run.key] = self._host.loop.call_later(LATER, look)


def new_run_id() -> str:
    """Return a fresh id: twelve hexadecimal digits, as the command line gives them."""
    return secrets.token_hex(6)
