"""An HTTP server on loopback that has effects: one for each `Idempotency-Key`; and a workflow whose steps ask it for them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

TOOLS = """
import os
import anyio
from agentloom.tools.base import tool
from agentloom.tools.http_request import HttpRequest

@tool("post", "Asks for an effect.")
async def post(step: str) -> str:
    reply = await HttpRequest().execute(
        f"{os.environ['RECEIVER']}/{step}", "POST", {"X-Worker": os.environ.get("WORKER_NAME", "")}, timeout=0
    )
    if reply["status_code"] != 200:
        raise OSError(f"the receiver says {reply['status_code']}")
    return reply["body"]

@tool("nothing", "Does nothing.")
async def nothing() -> str:
    return "done"

@tool("wait", "Waits.")
async def wait() -> str:
    await anyio.sleep(float(os.environ["WORK_SECONDS"]))
    return "done"

@tool("short", "Waits for 20 ms.")
async def short() -> str:
    await anyio.sleep(0.02)
    return "done"
"""


class Request(NamedTuple):
    """What came in: the worker that asked, the step, its key, and whether that had its effect before."""

    worker: str
    step: str
    key: str
    is_repeated: bool


class Receiver:
    """Serves until its block ends. ``pause_s`` is how long an effect takes, in seconds: who dies meanwhile doesn't learn of it."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self.requests: list[Request] = []
        self._kept: dict[str, str] = {}
        self._lock = threading.Lock()
        self._pause = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                key = self.headers.get("Idempotency-Key")
                if key is None:
                    self.send_error(400, "no Idempotency-Key")
                    return
                answer = receiver._take(self.headers.get("X-Worker") or "", self.path.lstrip("/"), key).encode()
                receiver._pause.wait(pause_s)
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    self.close_connection = True  # who asked is dead

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # a client that was killed

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1})

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pause.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, worker: str, step: str, key: str) -> str:
        with self._lock:
            is_repeated = key in self._kept
            self.requests.append(Request(worker, step, key, is_repeated))
            if not is_repeated:
                self._kept[key] = f"did {step}"
            return self._kept[key]

    @property
    def workers(self) -> set[str]:
        """Who has asked so far."""
        with self._lock:
            return {request.worker for request in self.requests}

    @property
    def accepted(self) -> Counter[str]:
        """How many effects each step had."""
        with self._lock:
            return Counter(request.step for request in self.requests if not request.is_repeated)


def build(folder: Path, layers: int, wide: int, tool: str = "post") -> Path:
    """Write a project into a folder and return its workflow: ``layers`` of steps, each of which waits for all of those before.

    A step `post` asks for an effect named `RUN/STEP`, where the run is the state's `name`; the others do nothing, or wait.
    """
    (folder / "effects.py").write_text(TOOLS, encoding="utf-8")
    (folder / "agentloom.toml").write_text('tools = ["effects"]\n', encoding="utf-8")
    steps: list[dict[str, object]] = []
    before: list[str] = []
    for layer in range(layers):
        names = [f"s{layer}_{number}" for number in range(wide)]
        for name in names:
            arguments = {"step": "{state.name}/" + name} if tool == "post" else {}
            steps.append({"id": name, "type": "tool", "tool_name": tool, "tool_args": arguments, "depends_on": before})
        before = names
    file = folder / f"{tool}-{layers}x{wide}.loom.yaml"
    config = {"provider": "mock"}
    document = {"name": "many", "state": {"name": ""}, "steps": steps, "config": config}
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
