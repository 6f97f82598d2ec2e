"""A run from the first event to the result: providers and tools set up, events told, signals heard."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import closing, nullcontext, suppress
from typing import Any, NoReturn, TextIO

import anyio

from agentloom.analysis.document import WorkflowDocument
from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData
from agentloom.cli import collect_garbage
from agentloom.cli.chronicle import Chronicle
from agentloom.cli.console import ColorChoice, Look, is_terminal, look_of, silence
from agentloom.cli.logs import LogLines, logging_to_stderr, to_stderr
from agentloom.cli.progress import PlainProgress, Progress
from agentloom.cli.signals import heed_signals, stop_signals, terminable
from agentloom.cli.standard_output import kept_for_machines
from agentloom.cli.summary import summary
from agentloom.cli.worlds import World, tools_of
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent
from agentloom.core.results import WorkflowResult
from agentloom.errors import UsageError
from agentloom.providers.gateway import ProviderGateway
from agentloom.records import record


@record()
class Output:
    """Where a run is told, and how. ``events`` is the file for JSON lines, ``-`` for standard output."""

    told: TextIO
    look: Look
    stream: bool
    live: bool
    events: str | None

    def progress(self) -> Progress:
        """Return what shows the run."""
        if self.live:
            from agentloom.cli.live import LiveProgress  # rich, for terminals only

            return LiveProgress(self.told, self.look, self.stream)
        return PlainProgress(self.told, self.look, self.stream)

    def summarise(self, result: WorkflowResult, resumed: bool = False) -> None:
        """Print what the run came to."""
        print(file=self.told)
        for line in summary(result, self.look, resumed):
            print(line, file=self.told)


def output_of(as_json: bool, events: str | None, stream: bool, color: ColorChoice) -> Output:
    """Return where and how a run is told: beside standard output, where that belongs to a machine."""
    told = sys.stderr if as_json or events == "-" else sys.stdout
    return Output(told, look_of(told, color), stream, live=is_terminal(told), events=events)


def run_to_the_end(
    document: WorkflowDocument,
    state: Mapping[str, Any],
    output: Output,
    checkpointer: BaseCheckpointer | None = None,
    seed: CheckpointData | None = None,
    decisions: Mapping[str, str] | None = None,
    run_id: str | None = None,
    until: str | None = None,
    world: World | None = None,
    chronicle: Chronicle | None = None,
) -> WorkflowResult:
    """Run a document without errors and return the result; with ``seed``, go on with the run of that checkpoint, and with
    ``decisions`` about its gates. ``run_id`` names a new run, ``until`` the step that it ends with. ``world`` is what it works with; without
    one, that is what the environment has. ``chronicle`` keeps the run's record in the history.

    Raises ``UsageError`` and ``WorkflowError`` for what can't be run, ``KeyboardInterrupt`` when a signal ended the run.
    """
    with terminable(), logging_to_stderr() as log:
        world = world or World()
        gateway = world.gateway(document)
        # Where standard output belongs to a machine, what a tool prints must not get in between.
        standard_output = kept_for_machines() if output.told is sys.stderr else nullcontext(sys.stdout)
        with standard_output as stream, closing(Told(output, log, chronicle, stream)) as told:
            tools = tools_of(document)
            engine = WorkflowEngine(document, gateway, tools, checkpointer, run_id, told.event, until)
            if seed is not None:
                engine.go_on(seed, decisions)
            engine.check()
            world.enter(engine, gateway)
            if checkpointer is not None:
                print(f"Run ID: {engine.run_id}", file=output.told, flush=True)
            collect_garbage()
            result: WorkflowResult | None = None
            cancelled = False
            try:
                result = anyio.run(_run, engine, gateway, state, told)
            except KeyboardInterrupt:
                cancelled = True
                raise
            finally:
                world.leave()
                if chronicle is not None and (cancelled or result is not None):
                    chronicle.end(engine.run_id, result)
            return result


class Told:
    """Hands events to the progress and to the file of JSON lines. A reader that has gone is no reason to stop a run."""

    def __init__(
        self, output: Output, log: LogLines, chronicle: Chronicle | None = None, stdout: TextIO | None = None
    ) -> None:
        self._log = log
        self._chronicle = chronicle
        self._lines = None if output.events is None else _open(output.events, stdout or sys.stdout)
        self._file = None if output.events == "-" else self._lines  # what is ours to close
        self._progress: Progress | None = output.progress()
        if output.live and sys.stderr.isatty():
            log.write = self._progress.line  # above the drawing, not through it

    async def event(self, event: RunEvent) -> None:
        """Take one event."""
        if self._chronicle is not None:
            self._chronicle.take(event)
        if self._lines is not None:
            try:
                self._lines.write(json.dumps(event.to_json()) + "\n")
                self._lines.flush()
            except OSError as error:
                self._lines = None
                self._lost("events", error)
        if self._progress is not None:
            try:
                self._progress.event(event)
            except OSError as error:
                self._progress = None
                self._lost("progress", error)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._log.write = to_stderr
        if self._progress is not None:
            try:
                self._progress.close()
            except OSError:
                silence()
        if self._file is not None:
            with suppress(OSError):  # what is lost was told when it was
                self._file.close()

    def _lost(self, what: str, error: OSError) -> None:
        silence()
        if not isinstance(error, BrokenPipeError):
            print(f"warning: {what} can't be written any more: {error.strerror}", file=sys.stderr)


def _open(name: str, stdout: TextIO) -> TextIO:
    if name == "-":
        return stdout
    try:
        return open(name, "w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"`--events {name}` can't be written: {error.strerror}") from error


async def _run(
    engine: WorkflowEngine, gateway: ProviderGateway, state: Mapping[str, Any], told: Told
) -> WorkflowResult:
    """Run, and stop when a signal asks for it. Raises what the engine raises, ``KeyboardInterrupt`` after a signal."""
    result: WorkflowResult | None = None
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            await group.start(_heed_signals, scope, told)
            try:
                result = await engine.run(state)
            except Exception as error:  # raised below, outside the group, which would wrap it
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    await gateway.close()
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if result is None:
        raise KeyboardInterrupt
    return result


async def _heed_signals(
    scope: anyio.CancelScope, told: Told, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Cancel the run at the first signal to stop. A second one, while it is winding up, ends the process at once."""
    if sys.platform == "win32":
        task_status.started()  # there Ctrl-C raises KeyboardInterrupt in the loop
        return
    try:
        with anyio.open_signal_receiver(signal.SIGINT, *stop_signals()) as signals:
            task_status.started()
            async for _ in signals:
                if scope.cancel_called:
                    leave(told)
                scope.cancel()
    finally:
        heed_signals()  # while the result is told


def leave(told: Told) -> NoReturn:
    """End the process without waiting for anything, and without leaving anything behind."""
    from agentloom.tools.shell_command import kill_commands

    kill_commands()
    told.close()
    with suppress(OSError):
        sys.stdout.flush()
        print("interrupted", file=sys.stderr, flush=True)
    os._exit(130)
