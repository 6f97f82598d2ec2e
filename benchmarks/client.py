"""A small language client over stdio: enough to open a file, edit it and wait for the diagnostics of that version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class Client:
    """Talks to ``agentloom lsp`` and pulls diagnostics; use as a context manager.

    ``options`` are the server's initialization options; ``seconds_to_initialize`` is the time from the process's start.
    """

    def __init__(self, folder: Path, options: dict[str, Any], environment: Mapping[str, str]) -> None:
        start = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agentloom", "lsp"],
            cwd=folder,
            env={**environment, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'lsp'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._id = 0
        capabilities = {
            "general": {"positionEncodings": ["utf-8"]},
            "textDocument": {"diagnostic": {"dynamicRegistration": False}, "synchronization": {}},
        }
        root = folder.as_uri()
        self.request(
            "initialize",
            {"processId": None, "rootUri": root, "capabilities": capabilities, "initializationOptions": options},
        )
        self.seconds_to_initialize = time.perf_counter() - start
        self.notify("initialized", {})

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.communicate()

    def request(self, method: str, params: Any) -> Any:
        """Send a request and return its result; what the server asks meanwhile is answered with null."""
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
            elif message.get("id") == self._id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        length = 0
        while (line := stdout.readline().strip()) or not length:
            if not line and not length:
                raise RuntimeError("the server has gone")
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        found: dict[str, Any] = json.loads(stdout.read(length))
        return found


def edit_times(client: Client, path: Path, text: str, edits: int) -> tuple[float, list[float]]:
    """Open a text and return the seconds to its first diagnostics, then those after each of ``edits`` one-letter changes.

    Every second edit misspells a dependency in the middle of the file and the next one mends it; what comes back is looked at.
    """
    uri = path.as_uri()
    document = {"uri": uri}
    start = time.perf_counter()
    client.notify(
        "textDocument/didOpen", {"textDocument": {**document, "languageId": "yaml", "version": 1, "text": text}}
    )
    first = client.request("textDocument/diagnostic", {"textDocument": document})
    opened = time.perf_counter() - start
    clean = len(first["items"])
    at = text.index("depends_on: [step_", len(text) // 2) + len("depends_on: [")
    line = text.count("\n", 0, at)
    column = at - text.rfind("\n", 0, at) - 1
    times: list[float] = []
    for number in range(edits):
        broken = number % 2 == 0
        change = {
            "range": {
                "start": {"line": line, "character": column},
                "end": {"line": line, "character": column + (0 if broken else 1)},
            },
            "text": "q" if broken else "",
        }
        start = time.perf_counter()
        client.notify(
            "textDocument/didChange",
            {"textDocument": {**document, "version": number + 2}, "contentChanges": [change]},
        )
        items = client.request("textDocument/diagnostic", {"textDocument": document})["items"]
        times.append(time.perf_counter() - start)
        if len(items) != clean + broken:
            raise RuntimeError(f"edit {number}: {len(items)} diagnostics where {clean + broken} were due")
    client.notify("textDocument/didClose", {"textDocument": document})
    return opened, times
