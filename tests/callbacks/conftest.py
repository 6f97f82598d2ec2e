"""A real callback server as a process, paused runs to decide about, and a small client."""

from __future__ import annotations

import http.client
import json
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data
from tests.cli.conftest import start as start  # a fixture

PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.text)


class Server:
    """A running server: ask it, and wait for what it logs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline().decode()
        assert first.startswith("Waiting for decisions"), first
        self.port = int(first.rstrip().rpartition(":")[2])
        self._reader = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
        self._reader.start()

    def _read(self, stderr: Any) -> None:
        for line in stderr:
            self.lines.put(line.decode())

    def wait_for(self, words: str) -> str:
        """Wait until the server logs a line with these words, and return it."""
        seen = []
        while True:
            try:
                seen.append(self.lines.get(timeout=PATIENCE))
            except queue.Empty:
                raise AssertionError(f"never logged: {words}; but {seen}") from None
            if words in seen[-1]:
                return seen[-1]

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Answer:
        """Ask, and return the answer. Underscores in names of headers stand for hyphens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read().decode())
        finally:
            connection.close()

    def together(self, *questions: tuple[str, str]) -> list[Answer]:
        """Ask many at the same moment."""
        barrier = threading.Barrier(len(questions))

        def one(question: tuple[str, str]) -> Answer:
            barrier.wait()
            return self.ask(*question)

        with ThreadPoolExecutor(len(questions)) as pool:
            return list(pool.map(one, questions))

    def stop(self) -> int:
        """Stop it as a service manager does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


StartServer = Callable[..., Server]


@pytest.fixture
def serve(start: Any, kept: FileCheckpointer) -> StartServer:
    """Return a function that starts a server over the folder ``kept``."""

    def begin(*options: str, env: dict[str, str] | None = None) -> Server:
        process = start(
            "callback-server", "--port", "0", "--checkpoint-dir", str(kept.folder), *options,
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        return Server(process)

    return begin


@pytest.fixture
def kept(tmp_path: Path) -> FileCheckpointer:
    """The store that the servers look at."""
    return FileCheckpointer(tmp_path / "kept")


@pytest.fixture
def pause(kept: FileCheckpointer) -> Callable[..., None]:
    """Return a function that runs a workflow until it waits, under an id."""

    def make(run_id: str, data: Mapping[str, Any]) -> None:
        result = anyio.run(WorkflowEngine(load_data(data), checkpointer=kept, run_id=run_id).run)
        assert result.status == "paused"

    return make


@pytest.fixture
def copy(kept: FileCheckpointer) -> Callable[[str, str], None]:
    """Return a function that makes another run of the checkpoint of one."""

    def make(run_id: str, other: str) -> None:
        data = json.loads(kept.path(run_id).read_text(encoding="utf-8"))
        kept.path(other).write_text(json.dumps({**data, "run_id": other}), encoding="utf-8")

    return make


def publish(folder: Path, *, command: str = "true", name: str = "publish", **gate: Any) -> dict[str, Any]:
    """Return a workflow that waits at `ok` and then notes the verdict in the file `done`, after a command."""
    note = f"{command}; echo {{state.verdict}} >> {folder / 'done'}"
    return {
        "name": name,
        "config": {"provider": "mock", "model": "m"},
        "steps": [
            {"id": "ok", "type": "approval_gate", "output": "verdict", **gate},
            {
                "id": "end", "type": "tool", "tool_name": "shell_command", "depends_on": ["ok"],
                "tool_args": {"command": note, "timeout": 0},
            },
        ],
    }  # fmt: skip


def done(folder: Path) -> list[str]:
    """Return what the runs noted."""
    path = folder / "done"
    return path.read_text().split() if path.exists() else []


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio."""
    return "asyncio"


def lines_of(answers: list[Answer]) -> dict[int, int]:
    """Return how many answers had each status."""
    found: dict[int, int] = {}
    for answer in answers:
        found[answer.status] = found.get(answer.status, 0) + 1
    return found
