"""What an editor is to a language server: a process over stdio that gets edits, is asked, and publishes diagnostics.

A thread reads what the server sends and notes when it came, so that nothing is measured but the server.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

PATIENCE = 120.0
"""Seconds after which a server that doesn't answer is given up."""
# As VS Code says it, apart from diagnostics: these are sent to it unasked, so that both servers are asked for the same.
CAPABILITIES: dict[str, Any] = {
    "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": True},
        "completion": {
            "completionItem": {
                "snippetSupport": True,
                "documentationFormat": ["markdown"],
                "resolveSupport": {"properties": ["documentation", "detail", "additionalTextEdits"]},
                "insertReplaceSupport": True,
                "labelDetailsSupport": True,
            },
            "completionList": {"itemDefaults": ["editRange", "insertTextFormat", "insertTextMode"]},
            "contextSupport": True,
        },
        "hover": {"contentFormat": ["markdown"]},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor"]}},
            "dataSupport": True,
            "disabledSupport": True,
            "isPreferredSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "semanticTokens": {
            "requests": {"full": {"delta": True}, "range": True},
            "tokenTypes": [
                "function",
                "variable",
                "parameter",
                "property",
                "type",
                "keyword",
                "operator",
                "enumMember",
            ],
            "tokenModifiers": ["declaration", "modification"],
            "formats": ["relative"],
        },
    },
}


class Program(NamedTuple):
    """A server to measure: its name in the table, how it is started, and the settings that it asks for."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    settings: Mapping[str, Any]


class Publish(NamedTuple):
    """Diagnostics that came: when, for which document, how many."""

    at: float
    uri: str
    count: int


class Editor:
    """A running server. A context manager; times are those of ``time.perf_counter``."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            program.command,
            cwd=folder,
            env=dict(program.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        self._versions: dict[str, int] = {}
        self._answers: dict[int, queue.SimpleQueue[tuple[float, dict[str, Any]]]] = {}
        self._lock = threading.Lock()
        self._came = threading.Condition()
        self.publishes: list[Publish] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        folders = [{"uri": folder.as_uri(), "name": folder.name}]
        asked = {"processId": os.getpid(), "rootUri": folder.as_uri(), "workspaceFolders": folders}
        _, self.initialized = self.ask("initialize", {**asked, "capabilities": CAPABILITIES})
        self.notify("initialized", {})
        self.notify("workspace/didChangeConfiguration", {"settings": program.settings})

    def __enter__(self) -> Editor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.ask("shutdown", None)
                self.notify("exit", None)
                self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(10)
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()

    def open(self, uri: str, text: str) -> float:
        """Open a document; return when."""
        self._versions[uri] = 1
        return self.notify(
            "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": text}}
        )

    def edit(self, uri: str, line: int, character: int, gone: int, text: str) -> float:
        """Replace ``gone`` characters of a line; return when."""
        self._versions[uri] += 1
        place = {
            "start": {"line": line, "character": character},
            "end": {"line": line, "character": character + gone},
        }
        document = {"uri": uri, "version": self._versions[uri]}
        return self.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"range": place, "text": text}]}
        )

    def close(self, uri: str) -> None:
        """Close a document."""
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def ask(self, method: str, params: Any) -> tuple[Any, float]:
        """Send a request; return its result and the seconds it took."""
        return self.begin(method, params)()

    def begin(self, method: str, params: Any) -> Callable[[], tuple[Any, float]]:
        """Send a request; return what waits for its result and the seconds it took."""
        answer: queue.SimpleQueue[tuple[float, dict[str, Any]]] = queue.SimpleQueue()
        self._number += 1
        self._answers[self._number] = answer
        start = self._send({"id": self._number, "method": method, "params": params})

        def end() -> tuple[Any, float]:
            at, message = answer.get(timeout=PATIENCE)
            if "error" in message:
                raise RuntimeError(f"{self.program.name}, {method}: {message['error']}")
            return message["result"], at - start

        return end

    def ask_at(self, method: str, uri: str, line: int, character: int) -> tuple[Any, float]:
        """Send a request about a place in a document; return its result and the seconds it took."""
        return self.ask(method, {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})

    def notify(self, method: str, params: Any) -> float:
        """Send a notification; return when."""
        return self._send({"method": method, "params": params})

    def shown(self, uri: str, since: float, count: int | None = None) -> Publish:
        """Wait for diagnostics of a document that came after ``since``, ``count`` of them; return the first such."""

        def found() -> Publish | None:
            return next(
                (
                    p
                    for p in reversed(self.publishes)
                    if p.at > since and p.uri == uri and (count is None or p.count == count)
                ),
                None,
            )

        with self._came:
            if not self._came.wait_for(lambda: found() is not None, PATIENCE):
                raise RuntimeError(f"{self.program.name} never showed {count} diagnostics: {self.publishes[-3:]}")
            result = found()
            assert result is not None
            return result

    def memory(self) -> float:
        """Return the resident memory of the server's process in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

    def _send(self, message: dict[str, Any]) -> float:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stdin = self._process.stdin
        assert stdin is not None
        with self._lock:
            start = time.perf_counter()
            stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            stdin.flush()
        return start

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while header := stream.readline():
            length = 0
            while header.strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                header = stream.readline()
            body = stream.read(length)
            at = time.perf_counter()
            self._take(json.loads(body), at)

    def _take(self, message: dict[str, Any], at: float) -> None:
        if "method" not in message:
            self._answers.pop(message["id"]).put((at, message))
        elif message["method"] == "textDocument/publishDiagnostics":
            params = message["params"]
            with self._came:
                self.publishes.append(Publish(at, params["uri"], len(params["diagnostics"])))
                self._came.notify_all()
        elif "id" in message:
            self._send({"id": message["id"], "result": self._told(message)})

    def _told(self, message: dict[str, Any]) -> Any:
        if message["method"] == "workspace/configuration":
            return [self.program.settings.get(item.get("section")) for item in message["params"]["items"]]
        return None
