"""A client for tests: it speaks to a real server, in its own process or over a socket in this one, and can misbehave."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from agentloom_lsp.server import run
from agentloom_lsp.transport import Channel

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER = (sys.executable, "-m", "agentloom_lsp")
FULL: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "publishDiagnostics": {
            "relatedInformation": True,
            "tagSupport": {"valueSet": [1, 2]},
            "codeDescriptionSupport": True,
            "dataSupport": True,
            "versionSupport": True,
        },
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "source.fixAll"]}}},
    },
    "workspace": {
        "configuration": True,
        "workspaceEdit": {"documentChanges": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "diagnostics": {"refreshSupport": True},
    },
}
PULLING: dict[str, Any] = {**FULL, "textDocument": {**FULL["textDocument"], "diagnostic": {}}}


class Refused(Exception):
    """The server answered with an error; ``code`` is its number."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Peer:
    """One connection to a server. ``answers`` maps the server's requests to what they are answered; unknown ones are refused."""

    def __init__(self, read: BinaryIO, write: Callable[[bytes], Any]) -> None:
        self._read = read
        self._write = write
        self._number = 0
        self.seen: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {"client/registerCapability": None, "workspace/configuration": [None]}
        self.versions: dict[str, int] = {}

    def raw(self, data: bytes) -> None:
        self._write(data)

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self) -> dict[str, Any]:
        """Return the next message, whatever it is; the server's requests are answered on the way. Raises ``EOFError`` at the end."""
        size = 0
        while line := self._read.readline():
            if not line.strip():
                break
            name, _, value = line.partition(b":")
            assert name.lower() in (b"content-length", b"content-type"), line
            size = int(value) if name.lower() == b"content-length" else size
        if not line:
            raise EOFError
        message: dict[str, Any] = json.loads(self._read.read(size))
        self.seen.append(message)
        if "method" in message and "id" in message:
            if message["method"] in self.answers:
                self.send(id=message["id"], result=self.answers[message["method"]])
            else:
                self.send(id=message["id"], error={"code": -32601, "message": "no such method here"})
        return message

    def notify(self, method: str, params: Any = None) -> None:
        self.send(method=method, params=params)

    def start(self, method: str, params: Any = None) -> int:
        """Send a request and return its number, without waiting."""
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        return self._number

    def answer(self, number: int) -> Any:
        """Return the result of a request. Raises ``Refused`` for an error."""
        for message in self.seen:
            if message.get("id") == number and "method" not in message:
                break
        else:
            message = self.until(lambda m: m.get("id") == number and "method" not in m)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def request(self, method: str, params: Any = None) -> Any:
        return self.answer(self.start(method, params))

    def until(self, right: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read on until the right message comes; return it."""
        while not right(message := self.receive()):
            pass
        return message

    def initialize(self, capabilities: Any = FULL, folder: Path | str | None = None, **more: Any) -> dict[str, Any]:
        uri = folder.as_uri() if isinstance(folder, Path) else folder
        folders = [{"uri": uri, "name": "x"}] if uri else None
        params = {"processId": None, "rootUri": uri, "workspaceFolders": folders, "capabilities": capabilities, **more}
        result: dict[str, Any] = self.request("initialize", params)
        self.notify("initialized", {})
        return result

    def open(self, uri: str, text: str, version: int = 1, language: str = "yaml") -> None:
        self.versions[uri] = version
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, text: str, *place: int) -> int:
        """Replace the whole text, or that between line, character and line, character; return the new version."""
        self.versions[uri] += 1
        change: dict[str, Any] = {"text": text}
        if place:
            one, two, three, four = place
            change["range"] = {"start": {"line": one, "character": two}, "end": {"line": three, "character": four}}
        document = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        return self.versions[uri]

    def close_document(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def published(self, uri: str, version: int | None = None) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a document (of one version of it) and return them."""

        def right(message: dict[str, Any]) -> bool:
            params = message.get("params")
            if message.get("method") != "textDocument/publishDiagnostics" or not isinstance(params, dict):
                return False
            return bool(params["uri"] == uri and version in (None, params.get("version")))

        found: list[dict[str, Any]] = self.until(right)["params"]["diagnostics"]
        return found

    def publishes(self, uri: str) -> list[int | None]:
        """Return the versions whose diagnostics came so far."""
        return [
            message["params"].get("version")
            for message in self.seen
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri
        ]


class Process(Peer):
    """A peer whose server is a process of its own, over standard input and output."""

    def __init__(self, *command: str, **environment: str) -> None:
        path = os.pathsep.join((str(ROOT), str(ROOT / "lsp")))
        self.process = subprocess.Popen(
            command or SERVER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, **environment},
            bufsize=0,
        )
        assert self.process.stdin
        assert self.process.stdout
        super().__init__(os.fdopen(os.dup(self.process.stdout.fileno()), "rb"), self.process.stdin.write)

    def leave(self) -> int:
        """Shut the server down in order; return its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(30)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr, self._read):
            if stream is not None:
                stream.close()


class Local(Peer):
    """A peer whose server runs in a thread of this process, over a socket: the same server, without the time to start one."""

    def __init__(self, serve: Callable[[Channel], int] = run) -> None:
        mine, theirs = socket.socketpair()
        self._socket = mine
        self._code: queue.SimpleQueue[int] = queue.SimpleQueue()
        super().__init__(mine.makefile("rb"), mine.sendall)

        def work() -> None:
            code = serve(Channel(theirs.recv, theirs.sendall, theirs.close))
            theirs.close()
            self._code.put(code)

        threading.Thread(target=work, daemon=True).start()

    def leave(self) -> int:
        """Shut the server down in order; return its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self._code.get(timeout=30)

    def hang_up(self) -> int:
        """Leave without a word; return the server's exit code."""
        self._socket.shutdown(socket.SHUT_RDWR)
        return self._code.get(timeout=30)

    def __enter__(self) -> Local:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._read.close()
        self._socket.close()
