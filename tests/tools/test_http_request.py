"""`http_request` against a real server on loopback."""

from __future__ import annotations

import gzip
import inspect
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import httpx
import pytest

from agentloom.errors import ValidationError
from agentloom.tools import http_request
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.http_request import FAILURES, MALFORMED, TIMEOUTS, failure
from agentloom.tools.registry import ToolRegistry

pytestmark = pytest.mark.anyio


class Handler(BaseHTTPRequestHandler):
    """Echoes requests; other paths misbehave."""

    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        self.server.arrived.set()
        path = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == "/echo":
            data = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body.decode()}
            self.reply(200, json.dumps(data).encode())
        elif path == "/redirect":
            self.reply(302, b"", Location="/echo")
        elif path == "/missing":
            self.reply(404, b"not here")
        elif path == "/gzip":
            self.reply(200, gzip.compress("grün".encode()), **{"Content-Encoding": "gzip"})
        elif path == "/bad-gzip":
            self.reply(200, b"no gzip", **{"Content-Encoding": "gzip"})
        elif path == "/latin":
            self.reply(200, "grün".encode("latin-1"), **{"Content-Type": "text/plain; charset=latin-1"})
        elif path == "/odd-charset":
            self.reply(200, "grün".encode(), **{"Content-Type": "text/plain; charset=klingon"})
        elif path == "/binary":
            self.reply(200, b"\x89PNG\xff")
        elif path == "/huge":
            self.reply(200, b"x" * (33 * 1024 * 1024))
        elif path == "/slow":
            self.server.gate.wait(20)
            self.reply(200, b"late")
        elif path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"short")
            self.close_connection = True
        else:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


class Server(ThreadingHTTPServer):
    """The server, with a gate for what is held back."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.gate, self.arrived = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of the server's."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback, for one test."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.gate.set()
        running.shutdown()
        thread.join()


async def request(registry: ToolRegistry, url: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = await registry.call("http_request", {"url": url, **more})
    return result


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_what_is_sent_and_what_comes_back(builtins: ToolRegistry, server: Server, method: str) -> None:
    """Method, headers and body as given; header names in lower case on the way back."""
    result = await request(
        builtins,
        f"{server.url}/echo?q=1",
        method=method,
        headers={"X-Name": "Ünal", "Content-Type": "text/x"},
        body="grün",
    )
    assert list(result) == list(BUILTIN_TOOLS["http_request"].returns["properties"])
    assert result["status_code"] == 200
    assert result["headers"]["content-length"] == str(len(result["body"].encode()))
    sent = json.loads(result["body"])
    assert (sent["method"], sent["path"], sent["body"]) == (method, "/echo?q=1", "grün")
    assert sent["headers"]["X-Name"].encode("latin-1").decode() == "Ünal"
    assert sent["headers"]["Content-Type"] == "text/x"


async def test_the_defaults(builtins: ToolRegistry, server: Server) -> None:
    """A plain GET without a body."""
    sent = json.loads((await request(builtins, f"{server.url}/echo"))["body"])
    assert (sent["method"], sent["body"]) == ("GET", "")
    assert "Content-Length" not in sent["headers"]


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("/redirect", 302, ""),
        ("/missing", 404, "not here"),
        ("/gzip", 200, "grün"),
        ("/latin", 200, "grün"),
        ("/odd-charset", 200, "grün"),
        ("/binary", 200, "\ufffdPNG\ufffd"),
    ],
)
async def test_answers(builtins: ToolRegistry, server: Server, path: str, status: int, body: str) -> None:
    """Redirects aren't followed, refusals are no errors, texts are decoded."""
    result = await request(builtins, server.url + path)
    assert (result["status_code"], result["body"]) == (status, body)
    if status == 302:
        assert result["headers"]["location"] == "/echo"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "/drop?token=secret",
            "the server broke off its answer, or speaks no proper HTTP (Server disconnected without sending a response.)",
        ),
        ("/short", "the server broke off its answer, or speaks no proper HTTP (peer closed connection"),
        ("/bad-gzip", "the answer can't be decompressed"),
        ("/huge", "the body is larger than 32 MB"),
    ],
)
async def test_broken_answers(builtins: ToolRegistry, server: Server, path: str, words: str) -> None:
    """Another attempt may go better; the query, which may hold a key, is not repeated."""
    with pytest.raises(OSError, match=r"^GET http://127\.0\.0\.1") as caught:
        await request(builtins, server.url + path)
    assert str(caught.value).startswith(f"GET {server.url}{path.partition('?')[0]}: {words}")
    assert "secret" not in str(caught.value)


async def test_a_server_that_is_not_there(builtins: ToolRegistry) -> None:
    """The address, and that nobody is there."""
    with Server() as gone:
        url = gone.url
    with pytest.raises(OSError, match=f"^GET {url}: can't connect"):
        await request(builtins, url)


async def test_a_server_that_is_silent(builtins: ToolRegistry, server: Server) -> None:
    """`timeout` holds, and 0 means none."""
    with pytest.raises(TimeoutError) as caught:
        await request(builtins, f"{server.url}/slow", timeout=0.2)
    assert str(caught.value) == f"GET {server.url}/slow: no answer within 0.2 s"
    server.gate.set()
    assert (await request(builtins, f"{server.url}/slow", timeout=0))["body"] == "late"


async def test_a_request_can_be_cancelled(builtins: ToolRegistry, server: Server) -> None:
    """At once, while the server is silent."""
    async with anyio.create_task_group() as group:
        group.start_soon(request, builtins, f"{server.url}/slow")
        await anyio.to_thread.run_sync(server.arrived.wait)
        group.cancel_scope.cancel()
    assert not server.gate.is_set()


URL_FAULT = "argument `url` must be an address such as `https://host/path`"


@pytest.mark.parametrize(
    ("url", "more", "words"),
    [
        ("", {}, URL_FAULT),
        ("ftp://host/x", {}, URL_FAULT),
        ("host/x", {}, URL_FAULT),
        ("http://[broken", {}, URL_FAULT),
        ("http://host:port/", {}, URL_FAULT),
        ("http://a b/", {}, URL_FAULT),
        ("http://127.0.0.1:1/\r\nX: y", {}, URL_FAULT),
        ("http://127.0.0.1:1/", {"headers": {"A": "x\r\nB: y"}}, "argument `headers.A` must be one line"),
        ("http://127.0.0.1:1/", {"headers": {"A": "\ud800"}}, "argument `headers.A` must be one line"),
        ("http://127.0.0.1:1/", {"headers": {"Ü": "x"}}, "argument `headers` holds a name that no header can have"),
        ("http://127.0.0.1:1/", {"headers": {"": "x"}}, "argument `headers` holds a name that no header can have"),
        ("http://127.0.0.1:1/", {"body": "\ud800"}, "argument `body` holds half of a surrogate pair"),
        (
            "http://127.0.0.1:1/",
            {"method": "PATCH"},
            "argument `method` must be one of `GET`, `POST`, `PUT`, `DELETE`, not `PATCH`",
        ),
        ("http://127.0.0.1:1/", {"body": {"a": 1}}, "argument `body` must be a text, not an object"),
    ],
)
async def test_requests_that_cannot_be_sent(builtins: ToolRegistry, url: str, more: dict[str, Any], words: str) -> None:
    """Whatever the server would say: the arguments are wrong."""
    with pytest.raises(ValidationError) as caught:
        await request(builtins, url, **more)
    assert str(caught.value).startswith(words)


CLASSES = sorted(
    {item for item in vars(httpx).values() if inspect.isclass(item) and issubclass(item, Exception)},
    key=lambda item: item.__name__,
)


def test_every_exception_of_httpx_is_in_one_table() -> None:
    """A new one in a later version must be thought about."""
    assert sorted([*FAILURES, *TIMEOUTS, *MALFORMED]) == [kind.__name__ for kind in CLASSES]
    for kind in CLASSES:
        made = kind.__new__(kind)
        made.args = ("why",)
        ours = failure(made, "GET http://h", 5.0)
        wanted = (
            TimeoutError if kind.__name__ in TIMEOUTS else ValidationError if kind.__name__ in MALFORMED else OSError
        )
        assert type(ours) is wanted
        assert str(ours).startswith("GET http://h: ")


def test_the_limit_is_a_round_number_of_megabytes() -> None:
    """The message says it in megabytes."""
    assert http_request.MAX_BODY_BYTES == 32 * 1024 * 1024
