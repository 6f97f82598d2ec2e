"""A run in a process of its own: the command line, with the text on its standard input and its events on a pipe that nothing else uses.

What the user's tools print goes to files that nobody else sees. The process has a session of its own: no signal of a terminal reaches it,
and it never has the server's standard input or output.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import agentloom

CHUNK = 65_536
PATIENCE = 1.0
"""Seconds that what is left in the pipe is waited for once the process has ended: a process of its own may hold the pipe open."""
TAIL = 65_536
"""Bytes of output that are shown."""
ON = "AGENTLOOM_ON"
"""The variable that names the database."""
INSTALLED = ("site-packages", "dist-packages")


class Child:
    """One process. ``on_line`` gets each whole line of the events' pipe, ``on_end`` the exit code (negative: a signal), in the loop's thread.

    Raises ``OSError`` when it can't be started, ``ValueError`` when its arguments hold what no process can be given.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        text: str | None,
        pairs: Sequence[str],
        folder: Path,
        on: str | None,
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
            # The process has these as well; ours are closed once it is started.
            source = None if text is None else text.encode("utf-8", "surrogatepass")
            listed = json.dumps(pairs, ensure_ascii=False).encode() if pairs else None
            with _file_of(source) as given, _file_of(listed) as state:
                self._process, events = self._start(
                    list(arguments), given, state, pairs, {"cwd": folder, "env": environment(on)}
                )
            unless_started.pop_all()
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

    def _start(
        self,
        arguments: list[str],
        given: IO[bytes] | None,
        state: IO[bytes] | None,
        pairs: Sequence[str],
        where: dict[str, Any],
    ) -> tuple[subprocess.Popen[bytes], int]:
        """Return the process, and the descriptor its events come from."""
        # `-P`: a module of that name in the user's folder must not take the place of ours, or of the library's.
        command = [sys.executable, "-P", "-m", "agentloom", *arguments]
        more: dict[str, Any] = {"stderr": self._complaints, **where}
        more["stdin"] = subprocess.DEVNULL if given is None else given
        if sys.platform == "win32":  # no descriptor can be named there: events come on standard output, prints don't
            flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
            command += [word for pair in pairs for word in ("--state", pair)]
            process = subprocess.Popen([*command, "--events", "-"], stdout=subprocess.PIPE, creationflags=flags, **more)
            assert process.stdout is not None
            return process, process.stdout.fileno()
        reading, writing = os.pipe()
        descriptors = [writing]
        command += ["--events", f"/dev/fd/{writing}"]
        if state is not None:
            descriptors.append(state.fileno())
            command += ["--state-pairs", f"/dev/fd/{state.fileno()}"]
        try:
            process = subprocess.Popen(
                command, stdout=self._output, pass_fds=descriptors, start_new_session=True, **more
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


@contextlib.contextmanager
def _file_of(data: bytes | None) -> Iterator[IO[bytes] | None]:
    """A file without a name that holds these bytes, to be read from its start; None for none."""
    if data is None:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def environment(on: str | None) -> dict[str, str]:
    """Return the environment of a process: ours, and a way to this package where it isn't installed, but run from a checkout.

    ``on`` is the database that it works with, None for this machine's files. Arguments can be read by everybody, so it isn't one.
    """
    found = {name: value for name, value in os.environ.items() if name != ON}
    home = Path(agentloom.__file__).resolve().parent.parent
    if home.name not in INSTALLED:
        found["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), found.get("PYTHONPATH", ""))))
    return found if on is None else {**found, ON: on}


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
