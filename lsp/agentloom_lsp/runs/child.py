"""A run in a process of its own: the command line, with the text on its standard input and its events on a pipe that nothing else uses.

What the user's tools print goes to files that nobody else sees. The process has a session of its own: no signal of a terminal reaches it,
and it never has the server's standard input or output.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import agentloom

CHUNK = 65_536
PATIENCE = 1.0
"""Seconds that what is left in the pipe is waited for once the process has ended: a process of its own may hold the pipe open."""
TAIL = 65_536
"""Bytes of output that are shown."""
INSTALLED = ("site-packages", "dist-packages")


class Child:
    """One process. ``on_line`` gets each whole line of the events' pipe, ``on_end`` the exit code (negative: a signal), in the loop's thread.

    Raises ``OSError`` when it can't be started, ``ValueError`` when its arguments hold what no process can be given.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        text: str | None,
        folder: Path,
        loop: AbstractEventLoop,
        on_line: Callable[[bytes], None],
        on_end: Callable[[int], None],
    ) -> None:
        self._loop = loop
        self._on_line = on_line
        self._on_end = on_end
        with contextlib.ExitStack() as unless_started:
            self._output = unless_started.enter_context(tempfile.TemporaryFile())
            self._complaints = unless_started.enter_context(tempfile.TemporaryFile())
            given: IO[bytes] | int = subprocess.DEVNULL
            if text is not None:
                given = tempfile.TemporaryFile()  # noqa: SIM115 - the process has it; ours is closed below
                unless_started.callback(given.close)
                given.write(text.encode("utf-8", "surrogatepass"))
                given.seek(0)
            self._process, events = self._start(list(arguments), given, folder)
            unless_started.pop_all()
        if not isinstance(given, int):
            given.close()
        reader = threading.Thread(target=self._read, args=(events,), name="agentloom-events", daemon=True)
        reader.start()
        threading.Thread(target=self._wait, args=(reader,), name="agentloom-run", daemon=True).start()

    @property
    def process_id(self) -> int:
        """The number of the process."""
        return self._process.pid

    def terminate(self) -> None:
        """Ask the process to wind up: it leaves a checkpoint. On Windows it ends at once, and leaves its journal."""
        with contextlib.suppress(OSError):
            self._process.terminate()

    def kill(self) -> None:
        """End the process, and what it started, without asking."""
        if self._process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    def output(self) -> str:
        """Return the end of what the process printed; nothing once it is closed."""
        return _tail(self._output)

    def complaints(self) -> str:
        """Return the end of what the process wrote to standard error; nothing once it is closed."""
        return _tail(self._complaints)

    def close(self) -> None:
        """Let the files with its output go."""
        self._output.close()
        self._complaints.close()

    def _start(self, arguments: list[str], given: Any, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
        """Return the process, and the descriptor its events come from."""
        # `-P`: a module of that name in the user's folder must not take the place of ours, or of the library's.
        command = [sys.executable, "-P", "-m", "agentloom", *arguments, "--events"]
        more: dict[str, Any] = {"stdin": given, "stderr": self._complaints, "cwd": folder, "env": _environment()}
        if sys.platform == "win32":  # no descriptor can be named there: events come on standard output, prints don't
            flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
            process = subprocess.Popen([*command, "-"], stdout=subprocess.PIPE, creationflags=flags, **more)
            assert process.stdout is not None
            return process, process.stdout.fileno()
        reading, writing = os.pipe()
        try:
            process = subprocess.Popen(
                [*command, f"/dev/fd/{writing}"],
                stdout=self._output,
                pass_fds=(writing,),
                start_new_session=True,
                **more,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return process, reading

    def _read(self, events: int) -> None:
        rest = b""
        while True:
            try:
                chunk = os.read(events, CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._tell(self._on_line, line)
        if sys.platform != "win32":
            os.close(events)

    def _wait(self, reader: threading.Thread) -> None:
        code = self._process.wait()
        reader.join(PATIENCE)
        self._tell(self._on_end, code)

    def _tell(self, function: Callable[[Any], None], value: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(function, value)


def _environment() -> dict[str, str]:
    """Return the environment of the process: ours, and a way to this package where it isn't installed, but run from a checkout."""
    found = dict(os.environ)
    home = Path(agentloom.__file__).resolve().parent.parent
    if home.name not in INSTALLED:
        found["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), found.get("PYTHONPATH", ""))))
    return found


def _tail(file: IO[bytes]) -> str:
    if file.closed:
        return ""
    # The process goes on writing where it is: reading by place moves nothing, which it shares.
    if hasattr(os, "pread"):
        size = os.fstat(file.fileno()).st_size
        data = os.pread(file.fileno(), TAIL, max(0, size - TAIL))
    else:
        with contextlib.suppress(OSError):
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        data = file.read(TAIL)
    return data.decode("utf-8", "replace")
