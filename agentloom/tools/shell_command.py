"""The built-in tool that runs commands. Nothing that a command starts outlives it, and no command the process that runs it."""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import anyio

from agentloom.errors import ValidationError
from agentloom.tools.base import BaseTool
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.guard import announced, forget, guard, watch
from agentloom.tools.keys import ENVIRONMENT, idempotency_key
from agentloom.tools.policy import Policy, current_policy, narrowed

MAX_OUTPUT_BYTES = 1024 * 1024
"""How much of each of a command's two outputs is kept."""

GRACE_SECONDS = 0.5
"""How long a command that is stopped may take to end by itself, before it is killed."""

DRAIN_SECONDS = 1.0
"""How long the outputs are awaited once everything is killed: a process that left the group may hold them open."""


_running: set[_Run] = set()
"""The commands of which something may be left."""


def kill_commands() -> None:
    """Kill what is left of all commands, for a program that ends without waiting for its steps."""
    for run in tuple(_running):
        run.kill()


class ShellCommand(BaseTool):
    """`shell_command`. A relative ``cwd`` starts at ``folder``, without one at the working directory."""

    name = "shell_command"
    description = BUILTIN_TOOLS[name].description
    returns = BUILTIN_TOOLS[name].returns

    def __init__(self, policy: Policy | None = None, folder: Path | None = None) -> None:
        self._policy = policy
        self._folder = folder or Path()

    async def execute(
        self,
        command: Annotated[str, "The command line."],
        timeout: Annotated[  # noqa: ASYNC109 - an argument of the tool, by its documented name
            float, "Seconds until the command and everything it started is killed; 0 means no limit.", {"minimum": 0}
        ] = 30,
        cwd: Annotated[str, "The folder to run in."] = ".",
    ) -> dict[str, Any]:
        """Return the return code and both outputs. A return code other than 0 is no error; a signal's is negative.

        When the command has ended, or is cancelled, or runs out of time (``TimeoutError``), its whole process group is killed.
        """
        policy = narrowed(self._policy, current_policy())
        folder = self._folder / cwd
        program = _program(command, folder, policy)
        if not folder.is_dir():
            raise NotADirectoryError(f"`{cwd}` is no folder to run in")
        environment = dict(os.environ if policy is None else policy.environment())
        environment.pop(ENVIRONMENT, None)  # that of a run which runs this one as its command
        if key := idempotency_key():
            environment[ENVIRONMENT] = key
        run = await _start(announced(program, bare=policy is not None), folder, environment)
        try:
            with anyio.fail_after(timeout or None):
                await run.exited.wait()
        except TimeoutError:
            raise TimeoutError(f"the command took longer than {timeout:g} s and was killed") from None
        finally:
            with anyio.CancelScope(shield=True):
                await run.end()
        return {"returncode": run.returncode, "stdout": run.stdout.text(), "stderr": run.stderr.text()}


def _program(command: str, folder: Path, policy: Policy | None) -> Sequence[str]:
    if policy is None:
        return "sh", "-c", command
    from agentloom.tools.commands import allowed_program  # only for workflows with a sandbox

    program = allowed_program(policy, command, folder)
    with suppress(PermissionError), open(program[0], "rb") as file:
        start = file.read(128)
        if not start.startswith(b"#!") and b"\0" not in start:  # a shell's `exec` would run it as a script of its own
            raise OSError(f"the command can't be started: {os.strerror(errno.ENOEXEC)}")
    return program


class _Output:
    """What a command wrote, up to the limit."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        if len(self._kept) < MAX_OUTPUT_BYTES:
            self._kept += data[: MAX_OUTPUT_BYTES - len(self._kept)]

    def text(self) -> str:
        """Return the text; bytes that are no UTF-8 are replaced, and what was left out is said at the end."""
        cut = self._total - len(self._kept)
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._kept), not cut)
        return f"{text}\n[{cut} more bytes left out]" if cut else text


class _Run(asyncio.SubprocessProtocol):
    """One running command. asyncio's own protocol, since its pipes can be closed while somebody still holds their other end."""

    def __init__(self) -> None:
        self.stdout, self.stderr = _Output(), _Output()
        self.exited = anyio.Event()
        self._drained = anyio.Event()
        self._open = {1, 2}
        self._transport: asyncio.SubprocessTransport

    @property
    def returncode(self) -> int | None:
        return self._transport.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        _running.add(self)
        watch(transport.get_pid())

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.stdout if fd == 1 else self.stderr).add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self._drained.set()

    def process_exited(self) -> None:
        self.exited.set()

    async def end(self) -> None:
        """Make sure that nothing of the command is left, and read what it had still to say."""
        if not self.exited.is_set():
            self._signal(signal.SIGTERM)
            with anyio.move_on_after(GRACE_SECONDS):
                await self.exited.wait()
        self._signal(signal.SIGKILL)
        await self.exited.wait()
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._drained.wait()
        self._transport.close()
        self._forget()

    def kill(self) -> None:
        """Kill the command and everything that it started, without waiting for it."""
        self._signal(signal.SIGKILL)
        self._forget()

    def _forget(self) -> None:
        _running.discard(self)
        forget(self._transport.get_pid())

    def _signal(self, number: signal.Signals) -> None:
        # Nobody may be left; macOS says so with "not permitted".
        with suppress(ProcessLookupError, PermissionError):
            # The command is the leader of a session of its own, so its id is that of its group.
            os.killpg(self._transport.get_pid(), number)


async def _start(program: Sequence[str], folder: Path, environment: dict[str, str]) -> _Run:
    loop = asyncio.get_running_loop()
    # Being cancelled between starting and knowing it would leave the command alone.
    with anyio.CancelScope(shield=True):
        try:
            _, run = await loop.subprocess_exec(
                _Run,
                *program,
                stdin=guard(),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except ValueError:  # a NUL, or half of a surrogate pair
            raise ValidationError("argument `command` holds a character that no command line can have") from None
        except OSError as error:
            raise OSError(f"the command can't be started: {error.strerror or error}") from error
    return run
