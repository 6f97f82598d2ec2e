"""R8: idempotency keys over the wire, in commands, after failures and after a kill, with real processes and a real server."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest

from tests.cli.conftest import Call

REPLY = {
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class Server(ThreadingHTTPServer):
    """Answers as a model and as anything else; keeps the keys, by path, and acts on each only once.

    While it is ``holding``, it answers nobody.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys: dict[str, list[str]] = defaultdict(list)
        self.acted: set[tuple[str, str]] = set()
        self.lock = Lock()
        self.failures: dict[str, int] = {}
        self.holding = False
        self.stopped = Event()
        self.arrived = {"/v1/chat/completions": Event(), "/do": Event(), "/hook": Event()}
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        key = self.headers.get("Idempotency-Key", "")
        server = self.server
        with server.lock:
            server.keys[self.path].append(key)
            server.acted.add((self.path, key))
            fails = server.failures.get(self.path, 0)
            server.failures[self.path] = fails - 1
        server.arrived[self.path].set()
        if server.holding:
            server.stopped.wait(60)
            return
        body = json.dumps(REPLY).encode()
        self.send_response(503 if fails > 0 else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    """The server, on loopback."""
    with Server() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.stopped.set()
        running.shutdown()
        thread.join()


def workflow(server: Server, command: str = "echo $AGENTLOOM_IDEMPOTENCY_KEY >> keys") -> str:
    return f"""\
name: keys
config: {{provider: openai, model: gpt-4o-mini}}
steps:
  - {{id: ask, type: llm_call, prompt: hello, retry: {{max_retries: 2, backoff_base: 0}}}}
  - {{id: post, type: tool, tool_name: http_request, tool_args: {{url: "{server.url}/do", method: POST, body: x, timeout: 0}}}}
  - {{id: shell, type: tool, tool_name: shell_command, tool_args: {{command: "{command}", timeout: 0}}}}
"""


@pytest.fixture
def here(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, and the server as the provider."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    return tmp_path


def test_every_attempt_has_its_key(here: Path, server: Server, call: Call) -> None:
    """R8: model calls, requests and commands; another key for the attempt after a failed one, and for another run."""
    (here / "flow.yaml").write_text(workflow(server), encoding="utf-8")
    server.failures["/v1/chat/completions"] = 2
    for _ in range(2):
        done = call("run", "flow.yaml", "--json")
        assert done.code == 0, done.err
    asked, posted = server.keys["/v1/chat/completions"], server.keys["/do"]
    commanded = (here / "keys").read_text().split()
    assert (len(asked), len(posted), len(commanded)) == (4, 2, 2)
    every = [*asked, *posted, *commanded]
    assert all(len(key) == 64 for key in every)
    assert len(set(every)) == len(every)


def test_a_key_of_ones_own_is_left_alone(here: Path, server: Server, call: Call) -> None:
    """The user's own header wins, in any case of letters."""
    text = workflow(server).replace("method: POST", "method: POST, headers: {idempotency-key: mine}")
    (here / "flow.yaml").write_text(text, encoding="utf-8")
    assert call("run", "flow.yaml").code == 0
    assert server.keys["/do"] == ["mine"]


def test_after_a_kill_the_same_key_comes_again(here: Path, server: Server, call: Call, start: Any) -> None:
    """R8: killed while all three are under way; the resume sends the same keys, so a receiver that remembers them acts once."""
    waits = "echo $AGENTLOOM_IDEMPOTENCY_KEY >> keys; echo begun; test -e go || sleep 60"
    (here / "flow.yaml").write_text(workflow(server, waits), encoding="utf-8")
    server.holding = True
    child = start("run", "flow.yaml", "--checkpoint", cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for path in ("/v1/chat/completions", "/do"):
        assert server.arrived[path].wait(30)
    while not (here / "keys").exists() or not (here / "keys").read_text().endswith("\n"):
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    server.holding = False
    (here / "go").touch()
    done = call("resume", "latest", "--json")
    assert (done.code, json.loads(done.out)["status"]) == (0, "success"), done.err
    for path in ("/v1/chat/completions", "/do"):
        first, second = server.keys[path]
        assert first == second
    assert len(server.acted) == 2
    first, second = (here / "keys").read_text().split()
    assert first == second


def test_after_a_kill_a_webhook_has_the_same_key(here: Path, server: Server, call: Call, start: Any) -> None:
    """R8: killed while the receiver thinks; the same message comes again. A resume without a decision sends another one."""
    text = f"""\
name: hook
config: {{sandbox: {{allow_internal_webhook_targets: true}}}}
steps:
  - {{id: ok, type: approval_gate, notify: {{url: "{server.url}/hook"}}}}
"""
    (here / "flow.yaml").write_text(text, encoding="utf-8")
    server.holding = True
    child = start("run", "flow.yaml", "--checkpoint", cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert server.arrived["/hook"].wait(30)
    child.send_signal(signal.SIGKILL)
    child.wait()
    server.holding = False
    for _ in range(2):
        done = call("resume", "latest", "--json")
        assert json.loads(done.out)["step_results"]["ok"]["webhook"]["status"] == "delivered"
    first, second, third = server.keys["/hook"]
    assert first == second != third
