"""Workers as real processes, which tests kill, stop and count."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.cli.conftest import environment


class Workers:
    """Workers of one database, each a process."""

    def __init__(self, url: str, folder: Path, seconds: float) -> None:
        self.url = url
        self.effects = folder / "effects"
        self.folder = folder
        self.environment = environment(EFFECTS=str(self.effects), WORK_SECONDS=str(seconds), AGENTLOOM_ON=url)
        self.running: list[subprocess.Popen[str]] = []
        self.options: tuple[str, ...] = ()
        """What `agentloom worker` is told besides."""
        self.names: dict[int, str] = {}
        """What each was told to be called, by its process id, in `WORKER_NAME`."""
        self._numbers = count(1)

    def start(self, *options: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start one; returns at once. ``before`` stands before its command."""
        name = f"worker{next(self._numbers)}"
        process = subprocess.Popen(
            [*before, sys.executable, "-W", "error", "-m", "agentloom", "worker", "--drain", "10", *self.options, *options],
            cwd=self.folder, env={**self.environment, "WORKER_NAME": name}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.running.append(process)
        self.names[process.pid] = name
        return process

    def ready(self, process: subprocess.Popen[str]) -> None:
        """Wait until it takes runs."""
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("takes runs from"), line + process.stdout.read()

    def begin(self, count: int) -> None:
        """Start so many, and wait until all take runs."""
        for process in [self.start() for _ in range(count)]:
            self.ready(process)

    def end(self) -> None:
        """Kill all that are left."""
        while self.running:
            process = self.running.pop()
            process.kill()
            process.communicate()


@pytest.fixture
def workers(tmp_path: Path, new_postgres: Callable[[], str]) -> Iterator[Workers]:
    """Workers on a new database of the server."""
    found = Workers(new_postgres(), tmp_path, 0.05)
    try:
        yield found
    finally:
        found.end()
