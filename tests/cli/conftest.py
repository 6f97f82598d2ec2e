"""Ways to call the program: in this process where only arguments and output count, as a real one where the process does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agentloom.cli.app import app
from tests.wire.server import KEY, WireServer

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Done:
    """What a call gave: exit code and both outputs."""

    code: int
    out: str
    err: str


Call = Callable[..., Done]


@pytest.fixture
def call() -> Call:
    """Return a function that calls the program in this process: ``call("validate", path, stdin="…", NO_COLOR="1")``."""

    def run(*arguments: str, stdin: str | bytes = b"", **env: str) -> Done:
        """Call with arguments, and return what became of it."""
        result = CliRunner().invoke(app, list(arguments), input=stdin, env=env, prog_name="agentloom")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


def environment(**changes: str) -> dict[str, str]:
    """Return the environment for a real process: this one's, with the checkout importable."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "lsp")]), **changes}


@pytest.fixture
def process() -> Call:
    """Return a function that runs the program as a process of its own: ``process("--version", cwd=…, PYTHONIOENCODING="ascii")``."""

    def run(*arguments: str, stdin: bytes = b"", cwd: Path | None = None, **env: str) -> Done:
        """Run with arguments to the end, and return what became of it."""
        done = subprocess.run(
            [sys.executable, "-m", "agentloom", *arguments],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=environment(**env),
            check=False,
            timeout=60,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def _as_from_a_terminal() -> None:
    """Heed the signals that a terminal sends, even when the tests themselves run under `nohup` or in the background."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def start() -> Any:
    """Return a function that starts the program and hands over the process; it is ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None, **options: Any) -> Any:
        """Start with arguments."""
        command = [sys.executable, "-m", "agentloom", *arguments]
        options.setdefault("preexec_fn", _as_from_a_terminal)
        child = subprocess.Popen(command, cwd=cwd, env=environment(**(env or {})), **options)
        started.append(child)
        return child

    yield run
    for child in started:
        if child.poll() is None:
            child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def server() -> Iterator[WireServer]:
    """A model on loopback."""
    with WireServer() as found:
        yield found


def served_by(server: WireServer) -> dict[str, str]:
    """Return the environment in which OpenAI is that server."""
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}


def break_off(start: Any, folder: Path, server: WireServer, calls: int, number: int, *arguments: str) -> int:
    """Start the program, send it a signal once so many calls have come, and return its exit code; whatever the server holds back goes."""
    child = start(*arguments, cwd=folder, env=served_by(server))
    server.wait_for(calls)
    child.send_signal(number)
    code: int = child.wait()
    server.let_go()
    return code
