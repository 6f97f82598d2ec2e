"""A loopback server of files: whole ones, endless ones, packed ones, and redirects to wherever a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


def file(body: bytes, status: int = 200, **headers: str) -> Answer:
    """Return an answer: a body with its length, and headers, whose names may have `_` for `-`."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def redirect(location: str, status: int = 302) -> Answer:
    """Return an answer that sends the client elsewhere."""
    return file(b"", status, Location=location, Set_Cookie="seen=1")


def endless(piece: bytes, **headers: str) -> Answer:
    """Return an answer that doesn't end before the client goes away."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        while True:
            handler.wfile.write(piece)

    return answer


class FileServer:
    """The server, in threads of its own. ``asked`` are the requests: path and headers (names in lower case)."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers = dict(answers or {})
        self.asked: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                try:
                    outer.answers.get(self.path, file(b"not here", 404))(self)
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._server.block_on_close = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="file server")

    @property
    def url(self) -> str:
        """The base address."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> FileServer:
        self._thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
