"""Decisions carried out: each by a process of its own, so that no run can take the server or another run down.

A decision is taken when the process has claimed the run: it holds the run's journal and has seen that nothing happened since. So of two
decisions exactly one is taken, also when they come to two servers, or to a server and to `agentloom resume`.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process, TaskGroup

from agentloom.callbacks.pending import PausedRuns
from agentloom.checkpointing.files import FileCheckpointer
from agentloom.core.keeping.waiting import (
    Decision,
    Decisions,
    NotTaken,
    Paused,
    Stopping,
    Unable,
    environment_of_runs,
    same_gate,
)
from agentloom.errors import AgentLoomError, CheckpointSchemaError

log = logging.getLogger(__name__)

OPTIONS: Mapping[str, str] = {"approved": "--approve", "rejected": "--reject"}

QUEUE_SECONDS = 30.0
"""How long a decision waits for one of the places in which runs go on."""

CLAIM_SECONDS = 60.0
"""How long a process may take to claim its run."""

TICK_SECONDS = 1.0
"""How often gates are looked at whose time may be over."""

RETRY_SECONDS = 60.0
"""After how long a gate is tried again whose run could not be resumed."""

KILL_SECONDS = 5.0
"""How long a run may take to write its checkpoint when the server stops."""

KEPT_BYTES = 64 * 1024


def in_files(store: FileCheckpointer, most: int) -> Callable[[TaskGroup, str | None], Decisions]:
    """Return what begins to carry out decisions about the runs of a store, ``most`` of them at once."""
    return lambda group, url: FileDecisions(PausedRuns(store), group, most, url)


class FileDecisions(Decisions):
    """Carries out decisions about runs that are kept in files. ``group`` is where the processes are waited for, ``most`` how many go on at once."""

    def __init__(self, runs: PausedRuns, group: TaskGroup, most: int, callback_url: str | None = None) -> None:
        self.runs = runs
        self.stopping = False
        self._group = group
        self._places = anyio.CapacityLimiter(most)
        self._claimed: set[str] = set()
        self._processes: dict[str, Process] = {}
        self._idle = anyio.Event()
        self._patience = anyio.CancelScope()
        self._reading = anyio.Lock()
        self._environment = environment_of_runs(callback_url)
        self._tried: dict[tuple[str, str], float] = {}

    async def waiting(self) -> list[Paused]:
        """Return the runs that wait for a decision."""
        async with self._reading:
            found = await anyio.to_thread.run_sync(self.runs.scan)
        return [run for run in found if run.run_id not in self._claimed]

    async def decide(
        self, run_id: str, decision: Decision, step_id: str | None = None, updated_at: str | None = None
    ) -> Paused:
        """Take a decision and let the run go on; returns when the run is claimed."""
        if self.stopping:
            raise Stopping("the server is shutting down")
        if run_id in self._claimed:
            if not self.runs.store.path(run_id).exists():
                raise KeyError(run_id)
            raise NotTaken(f"run `{run_id}` is just being decided")
        self._claimed.add(run_id)
        try:
            run = await self._find(run_id)
            same_gate(run, step_id, updated_at)
        except BaseException:
            self._claimed.discard(run_id)
            raise
        claim = _Claim()
        self._group.start_soon(self._carry_out, run, decision, claim)
        await claim.settled.wait()
        if claim.failure is not None:
            raise claim.failure
        return run

    async def keep(self) -> None:
        """Resume the runs whose gates' time is over, for as long as the server runs."""
        while not self.stopping:
            began = anyio.current_time()
            now = datetime.now(UTC)
            for run in await self._looked():
                if run.deadline is None or run.deadline > now or run.run_id in self._claimed or self.stopping:
                    continue
                key = (run.run_id, run.updated_at)
                if began < self._tried.get(key, 0.0):
                    continue
                self._tried = {known: until for known, until in self._tried.items() if until > began}
                self._tried[key] = began + RETRY_SECONDS
                self._claimed.add(run.run_id)
                self._group.start_soon(self._carry_out, run, None, _Claim())
            # A folder that takes long to look at is looked at less often.
            await anyio.sleep(max(TICK_SECONDS, 10 * (anyio.current_time() - began)))

    async def stop(self, grace: float) -> None:
        """Take nothing more, wait for the runs under way, and end those that take longer: they keep a checkpoint."""
        self.stopping = True
        with self._patience:
            self._patience.deadline = anyio.current_time() + grace
            await self._until_idle()
        for process in self._processes.values():
            _signal(process, signal.SIGTERM)
        with anyio.move_on_after(KILL_SECONDS):
            await self._until_idle()
        for process in self._processes.values():  # their journals are what a resume goes on with
            _signal(process, signal.SIGKILL)
        await self._until_idle()

    def hurry(self) -> None:
        """Wait for the runs no longer."""
        self._patience.cancel()

    async def _until_idle(self) -> None:
        while self._claimed:
            self._idle = anyio.Event()
            await self._idle.wait()

    async def _looked(self) -> list[Paused]:
        try:
            return await self.waiting()
        except Exception:
            log.exception("the waiting runs can't be listed")
            return []

    async def _find(self, run_id: str) -> Paused:
        found = await anyio.to_thread.run_sync(self.runs.find, run_id)
        if found is None:
            raise NotTaken(f"run `{run_id}` waits at no gate")
        return found

    async def _carry_out(self, run: Paused, decision: Decision | None, claim: _Claim) -> None:
        """Let a run go on to its end, in a process of its own; settles the claim on the way."""
        what = decision or "time is over"
        try:
            with anyio.move_on_after(QUEUE_SECONDS) as scope:
                await self._places.acquire_on_behalf_of(claim)
            if scope.cancelled_caught:
                raise Stopping("too many runs are going on; try again later")
            try:
                await self._resume(run, decision, claim)
            finally:
                self._places.release_on_behalf_of(claim)
        except Exception as failure:
            if not claim.settled.is_set():
                claim.failure = failure if isinstance(failure, AgentLoomError) else Unable(str(failure))
            log.warning("run %s at %s: %s: %s", run.run_id, run.step_id, what, failure)
        finally:
            claim.settled.set()
            self._claimed.discard(run.run_id)
            self._idle.set()

    async def _resume(self, run: Paused, decision: Decision | None, claim: _Claim) -> None:
        if self.stopping:
            raise Stopping("the server is shutting down")
        process = await anyio.open_process(
            self._command(run, decision),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # the terminal's Ctrl-C is for the server, which ends its runs in its own time
        )
        self._processes[run.run_id] = process
        events, said = _Tail(), _Tail()
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            async with anyio.create_task_group() as group:
                group.start_soon(said.read, process.stderr)
                with anyio.move_on_after(CLAIM_SECONDS) as scope:
                    await events.first_line(process.stdout)
                if events.started:
                    claim.settled.set()
                    log.info("run %s at %s: %s; it goes on", run.run_id, run.step_id, decision or "time is over")
                elif scope.cancelled_caught:
                    _signal(process, signal.SIGKILL)
                await events.read(process.stdout)
            code = await process.wait()
        finally:
            self._processes.pop(run.run_id, None)
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    _signal(process, signal.SIGKILL)
                await process.aclose()
        if events.started:
            log.info("run %s: %s", run.run_id, events.status() or f"ended with exit code {code}")
            return
        reason = said.last_line() or f"exit code {code}"
        await self._explain(run, reason)

    async def _explain(self, run: Paused, reason: str) -> None:
        """Raise what it means that a run was not claimed."""
        try:
            now = await anyio.to_thread.run_sync(self.runs.find, run.run_id)
        except (KeyError, CheckpointSchemaError):
            now = None
        if now is None or now.updated_at != run.updated_at:
            raise NotTaken(f"run `{run.run_id}` has gone on meanwhile")
        raise Unable(f"run `{run.run_id}` can't go on: {reason}")

    def _command(self, run: Paused, decision: Decision | None) -> Sequence[str]:
        return [
            sys.executable,
            "-m",
            "agentloom",
            "resume",
            "--checkpoint-dir",
            str(self.runs.store.folder.absolute()),
            "--if-updated",
            run.updated_at,
            "--events",
            "-",
            "--color",
            "never",
            *([OPTIONS[decision]] if decision is not None else []),
            "--",
            run.run_id,
        ]


class _Claim:
    """Whether a decision is taken yet, and why it isn't."""

    def __init__(self) -> None:
        self.settled = anyio.Event()
        self.failure: AgentLoomError | None = None


class _Tail:
    """The end of what a process says."""

    def __init__(self) -> None:
        self.started = False
        self._data = b""

    async def first_line(self, stream: ByteReceiveStream) -> None:
        """Read up to the first event: it is written when the run is claimed."""
        while b"\n" not in self._data:
            try:
                self._data += await stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
        with suppress(ValueError):
            event = json.loads(self._data.partition(b"\n")[0])
            self.started = isinstance(event, dict) and event.get("event") == "run_started"

    async def read(self, stream: ByteReceiveStream) -> None:
        """Read to the end, and keep the last of it."""
        try:
            async for chunk in stream:
                self._data = (self._data + chunk)[-KEPT_BYTES:]
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    def status(self) -> str | None:
        """Return how the run ended."""
        for line in reversed(self._data.splitlines()):
            with suppress(ValueError):
                event: Any = json.loads(line)
                if isinstance(event, dict) and event.get("event") == "run_finished":
                    return str(event.get("status"))
        return None

    def last_line(self) -> str:
        """Return the last line that says something."""
        lines = [line.strip() for line in self._data.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].removeprefix("error: ")[:500] if lines else ""


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        process.send_signal(number)
