"""A client for yaml-language-server over stdio: just enough of the protocol to ask what a person would see."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

# How long one answer may take before the test gives up; nothing is ever waited for as long as this.
PATIENCE = 60.0


@dataclass(frozen=True)
class Item:
    """A completion: its label, documentation, and the text of the whole document once it is chosen (blanks as `${n:text}`)."""

    label: str
    documentation: str
    inserted: str
    result: str


@dataclass(frozen=True)
class Fault:
    """A diagnostic: its message, the text under it, and where it comes from."""

    message: str
    text: str
    source: str


class Editor:
    """A running server with one document open at a time. A context manager."""

    def __init__(self, node: str, module: Path, schemas: Mapping[str, str]) -> None:
        self._settings = {
            "yaml": {
                "schemas": dict(schemas),
                "schemaStore": {"enable": False},
                "completion": True,
                "hover": True,
                "validate": True,
            }
        }
        self._process = subprocess.Popen(
            [node, str(module), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._next = 0
        self._answers: dict[int, queue.Queue[Any]] = {}
        self._diagnostics: queue.Queue[dict[str, Any]] = queue.Queue()
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Editor:
        self._reader.start()
        snippets = {"completionItem": {"snippetSupport": True, "documentationFormat": ["markdown", "plaintext"]}}
        self._request(
            "initialize",
            {
                "processId": None,
                "rootUri": None,
                "capabilities": {
                    "workspace": {"configuration": True},
                    "textDocument": {
                        "completion": snippets,
                        "hover": {"contentFormat": ["markdown"]},
                        "publishDiagnostics": {"versionSupport": True},
                    },
                },
            },
        )
        self._notify("initialized", {})
        self._notify("workspace/didChangeConfiguration", {"settings": self._settings})
        self._wait_for_settings()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._request("shutdown", None)
                self._notify("exit", None)
        finally:
            if self._process.stdin:
                self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._reader.join(10)
            if self._process.stdout:
                self._process.stdout.close()

    def faults(self, text: str, name: str = "a.loom.yaml") -> list[Fault]:
        """Return the diagnostics of a document, in the order of the text."""
        uri = self._open(text, name)
        while True:
            seen = self._diagnostics.get(timeout=PATIENCE)
            if seen["uri"] == uri:
                break
        self._close(uri)
        found = sorted(
            seen["diagnostics"], key=lambda d: (d["range"]["start"]["line"], d["range"]["start"]["character"])
        )
        return [Fault(d["message"], _cut(text, d["range"]), d.get("source", "")) for d in found]

    def complete(self, marked: str, name: str = "a.loom.yaml") -> list[Item]:
        """Return what is offered at the `¦` in ``marked``."""
        text, position = _split(marked)
        uri = self._open(text, name)
        answer = self._request("textDocument/completion", {"textDocument": {"uri": uri}, "position": position})
        self._close(uri)
        items = answer["items"] if isinstance(answer, dict) else answer or []
        return [_item(text, position, item) for item in items]

    def hover(self, marked: str, name: str = "a.loom.yaml") -> str:
        """Return what is shown over the `¦` in ``marked``; empty when nothing is."""
        text, position = _split(marked)
        uri = self._open(text, name)
        answer = self._request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})
        self._close(uri)
        return str(answer["contents"]["value"]) if answer else ""

    def _wait_for_settings(self) -> None:
        """Ask about a faulty document until the server knows the schemas; it fetches its settings after the handshake."""
        for _ in range(200):
            if self.faults("steps: 1\n"):
                return
        raise RuntimeError("yaml-language-server never took the schemas")

    def _open(self, text: str, name: str) -> str:
        self._next += 1
        uri = f"file:///work{self._next}/{name}"
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def _close(self, uri: str) -> None:
        self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def _request(self, method: str, params: Any) -> Any:
        self._next += 1
        answer: queue.Queue[Any] = queue.Queue()
        self._answers[self._next] = answer
        self._send({"id": self._next, "method": method, "params": params})
        message = answer.get(timeout=PATIENCE)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message.get("result")

    def _notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self._process.stdin.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while header := stream.readline():
            length = 0
            while header.strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                header = stream.readline()
            message = json.loads(stream.read(length))
            if "method" not in message:
                self._answers.pop(message["id"]).put(message)
            elif message["method"] == "textDocument/publishDiagnostics":
                self._diagnostics.put(message["params"])
            elif "id" in message:
                self._send({"id": message["id"], "result": self._answer(message)})

    def _answer(self, message: dict[str, Any]) -> Any:
        if message["method"] == "workspace/configuration":
            return [self._settings.get(item.get("section")) for item in message["params"]["items"]]
        return None


def _split(marked: str) -> tuple[str, dict[str, int]]:
    before, after = marked.split("¦")
    return before + after, {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}


def _offset(text: str, place: Mapping[str, int]) -> int:
    lines = text.splitlines(keepends=True)
    return sum(len(line) for line in lines[: place["line"]]) + place["character"]


def _cut(text: str, span: Mapping[str, Any]) -> str:
    return text[_offset(text, span["start"]) : _offset(text, span["end"])]


def _item(text: str, position: Mapping[str, int], item: Mapping[str, Any]) -> Item:
    edit = item.get("textEdit") or {
        "range": {"start": position, "end": position},
        "newText": item.get("insertText", ""),
    }
    inserted = edit["newText"]
    # Editors indent the lines of a snippet as the line that it goes into.
    line = text.splitlines()[position["line"]] if text.splitlines()[position["line"] :] else ""
    indent = line[: len(line) - len(line.lstrip(" "))]
    placed = inserted.replace("\n", "\n" + indent) if item.get("insertTextMode") != 1 else inserted
    result = text[: _offset(text, edit["range"]["start"])] + placed + text[_offset(text, edit["range"]["end"]) :]
    documentation = item.get("documentation") or ""
    if isinstance(documentation, dict):
        documentation = documentation.get("value", "")
    return Item(item["label"], documentation, inserted, result)
