"""A program on a terminal: a pseudo terminal, what was written to it, and what would stand on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from types import TracebackType

from tests.cli.conftest import environment

LONGEST_WAIT = 30.0
CONTROL = re.compile(r"\x1b\[(?P<args>[?\d;]*)(?P<verb>[A-Za-z])")

# Makes the terminal the one that Ctrl-C on it interrupts, then becomes the program.
TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """Runs the program on a terminal of its own. ``output`` is all that it has written so far."""

    def __init__(
        self, *arguments: str, cwd: str | os.PathLike[str], columns: int = 80, lines: int = 24, **env: str
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.output = ""
        self._bytes = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, sys.executable, "-m", "agentloom", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment(**{"TERM": "xterm-256color", **env}),
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    def wait_for(self, text: str) -> None:
        """Read until a text has been written."""
        deadline = time.monotonic() + LONGEST_WAIT
        while text not in self.output:
            assert time.monotonic() < deadline, f"`{text}` never came: {self.output!r}"
            assert self._read(deadline), f"the program ended without `{text}`: {self.output!r}"

    def send_key(self, key: bytes) -> None:
        """Press a key, such as Ctrl-C (``b"\\x03"``)."""
        os.write(self._master, key)

    def wait(self) -> int:
        """Read to the end; return the exit code."""
        deadline = time.monotonic() + LONGEST_WAIT
        while self._read(deadline):
            pass
        return self.process.wait(LONGEST_WAIT)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return False
        self._bytes += data
        self.output = self._bytes.decode("utf-8", errors="ignore")
        return bool(data)

    @property
    def cursor_shown(self) -> bool:
        """Whether the cursor is visible at the end."""
        return self.output.rfind("\x1b[?25l") <= self.output.rfind("\x1b[?25h")

    @property
    def screen(self) -> list[str]:
        """What stands on the screen, line by line: enough of a terminal for lines, returns, moving up and erasing lines."""
        lines = [""]
        row = column = 0
        at = 0
        text = self.output
        while at < len(text):
            control = CONTROL.match(text, at)
            if control:
                at = control.end()
                if control["verb"] == "A":
                    row = max(0, row - int(control["args"] or 1))
                elif control["verb"] == "K":
                    lines[row] = "" if control["args"] == "2" else lines[row][:column]
                continue
            char = text[at]
            at += 1
            if char == "\n":
                row += 1
                while len(lines) <= row:
                    lines.append("")
            elif char == "\r":
                column = 0
            else:
                lines[row] = lines[row].ljust(column)[:column] + char + lines[row][column + 1 :]
                column += 1
        return [line.rstrip() for line in lines]
