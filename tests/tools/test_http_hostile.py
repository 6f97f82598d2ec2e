"""`http_request` and servers that mean harm; what the sandbox lets through, and where connections really go."""

from __future__ import annotations

import gzip
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest

from agentloom.errors import SandboxViolationError, ValidationError
from agentloom.model.config import Sandbox
from agentloom.tools import bodies
from agentloom.tools.bodies import read_body
from agentloom.tools.builtin import register_builtins
from agentloom.tools.registry import ToolRegistry

pytestmark = pytest.mark.anyio
MB = 1024 * 1024


class Raw:
    """A server on loopback that answers each connection with what a function sends, and keeps what it was asked."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self._answer = answer
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.gone = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                try:
                    self.heard.append(connection.recv(65536))
                    self._answer(connection)
                except OSError:
                    self.gone.set()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], Raw]]:
    """Start servers for one test."""
    running: list[Raw] = []

    def start(answer: Callable[[socket.socket], None]) -> Raw:
        running.append(Raw(answer))
        return running[-1]

    yield start
    for one in running:
        one.close()


def says(body: bytes, *headers: str, status: str = "200 OK") -> Callable[[socket.socket], None]:
    """A whole answer."""
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers))
    return lambda connection: connection.sendall(head.encode() + b"\r\n\r\n" + body)


def endless(head: bytes, piece: bytes) -> Callable[[socket.socket], None]:
    """An answer without end."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return answer


def sandboxed(**rules: Any) -> ToolRegistry:
    """The built-in tools under a sandbox."""
    made = ToolRegistry()
    register_builtins(made, Sandbox(enabled=True, **rules))
    return made


ZEROS = bytes(40 * MB)
GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says(gzip.compress(ZEROS, 1), "Content-Encoding: gzip"), "the body is larger than 32 MB"),
        (says(zlib.compress(ZEROS, 1), "Content-Encoding: deflate"), "the body is larger than 32 MB"),
        (
            says(gzip.compress(gzip.compress(ZEROS)), "Content-Encoding: gzip, gzip"),
            "the body is larger than 32 MB",
        ),
        (says(b"x", "Content-Encoding: gzip, gzip, gzip"), "compressed in a way that isn't known (3 times)"),
        (says(b"x", "Content-Encoding: br"), "compressed in a way that isn't known (`br`)"),
        (says(b"x", "Content-Encoding: " + "gzip," * 1000), "compressed in a way that isn't known (1000 times)"),
        (says(b"no gzip", "Content-Encoding: gzip"), "can't be decompressed"),
        (says(gzip.compress(b"x" * 999)[:-9], "Content-Encoding: gzip"), "can't be decompressed: its end is missing"),
        (endless(GZIP, gzip.compress(b"") * 3000), "can't be decompressed"),
        (endless(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x" * MB), "the body is larger than 32 MB"),
        (
            endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + bytes(MB) + b"\r\n"),
            "larger",
        ),
        (endless(b"HTTP/1.1 200 OK\r\n", b"X-Header: x\r\n" * 1000), "the server"),
        (lambda connection: connection.sendall(b"\0" * 999), "the server"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_answers_that_would_never_end(
    builtins: ToolRegistry, serve: Callable[..., Raw], answer: Callable[[socket.socket], None], words: str
) -> None:
    """Bombs, layers, bodies and headers without end: an error in words, and the connection is closed."""
    server = serve(answer)
    with pytest.raises(OSError, match=r"^GET http://127\.0\.0\.1:\d+/: ") as caught:
        await builtins.call("http_request", {"url": f"http://127.0.0.1:{server.port}/"})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(b"one ") + gzip.compress(b"two")),
        ("x-gzip", gzip.compress(b"one two")),
        ("gzip", gzip.compress(b"one two") + bytes(9)),
        ("deflate", zlib.compress(b"one two")),
        ("deflate", zlib.compress(b"one two")[2:-4]),
        ("deflate, GZIP", gzip.compress(zlib.compress(b"one two"))),
        ("identity", b"one two"),
    ],
    ids=["members", "x-gzip", "padded", "deflate", "headless", "two layers", "plain"],
)
async def test_compressed_answers(encoding: str, data: bytes) -> None:
    """In every form that a request asks for, whole and byte by byte."""
    for size in (1, 2, len(data)):

        async def stream(size: int = size) -> Any:
            for at in range(0, len(data), size):
                yield data[at : at + size]

        response = httpx.Response(200, headers={"content-encoding": encoding}, content=stream())
        assert await read_body(response, MB, "x") == b"one two"


async def test_a_large_answer_comes_whole(builtins: ToolRegistry, serve: Callable[..., Raw]) -> None:
    """Ten megabytes, compressed, with a piece that is exactly as large as one that is kept."""
    text = ("0123456789" * MB)[: 10 * MB // bodies.PIECE * bodies.PIECE]
    server = serve(says(gzip.compress(text.encode(), 1), "Content-Encoding: gzip"))
    got = await builtins.call("http_request", {"url": f"http://127.0.0.1:{server.port}/"})
    assert got["body"] == text
    assert b"accept-encoding: gzip, deflate\r\n" in server.heard[0].lower()


# ── the sandbox ──


async def test_a_redirect_to_a_private_address_is_not_followed(serve: Callable[..., Raw]) -> None:
    """SB-6: the answer is handed over as it is; whoever follows it by hand is refused."""
    inner = serve(says(b"secret"))
    outer = serve(says(b"", f"Location: http://127.0.0.1:{inner.port}/", status="302 Found"))
    tools = sandboxed(allowed_domains=["localhost"])
    got = await tools.call("http_request", {"url": f"http://localhost:{outer.port}/"})
    assert (got["status_code"], inner.heard) == (302, [])
    with pytest.raises(SandboxViolationError, match="is not among the `allowed_domains`"):
        await tools.call("http_request", {"url": got["headers"]["location"]})
    with pytest.raises(SandboxViolationError, match="is an internal address"):
        await sandboxed().call("http_request", {"url": got["headers"]["location"]})
    assert inner.heard == []


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Have names resolve to these addresses, one after the other; return the names that were asked for."""
    asked: list[str] = []
    left = list(answers)

    async def found(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (left.pop(0) if len(left) > 1 else left[0], port))]

    monkeypatch.setattr(anyio, "getaddrinfo", found)
    return asked


async def test_a_name_that_leads_inside_is_refused_when_it_connects(
    serve: Callable[..., Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SB-6: whatever it was a moment before, and nothing is sent."""
    server = serve(says(b"secret"))
    asked = resolving(monkeypatch, "127.0.0.1")
    with pytest.raises(SandboxViolationError) as caught:
        await sandboxed().call("http_request", {"url": f"http://evil.example:{server.port}/"})
    assert str(caught.value) == "Sandbox violation (http_request): `evil.example` (127.0.0.1) is an internal address"
    assert (asked, server.heard) == (["evil.example"], [])


async def test_a_listed_name_may_lead_inside(serve: Callable[..., Raw], monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-6: its name stays in the request; it is resolved once, and the connection goes there."""
    server = serve(says(b"hello"))
    asked = resolving(monkeypatch, "127.0.0.1", "192.0.2.1")
    tools = sandboxed(allowed_domains=["Wiki.Example"])
    got = await tools.call("http_request", {"url": f"http://wiki.example:{server.port}/"})
    assert (got["body"], asked) == ("hello", ["wiki.example"])
    assert f"host: wiki.example:{server.port}\r\n".encode() in server.heard[0].lower()


@pytest.mark.parametrize(
    ("rules", "url", "why"),
    [
        ({"allow_network": False}, "https://example.com/", "`allow_network` is off"),
        ({"allowed_schemes": ["https"]}, "http://example.com/", "`http` is not among the `allowed_schemes`"),
        ({"allowed_domains": ["a.example"]}, "http://b.a.example/", "`b.a.example` is not among the `allowed_domains`"),
        ({}, "http://localhost/", "`localhost` is this machine"),
        ({}, "http://127.1/", "`127.0.0.1` is an internal address"),
        ({}, "http://169.254.169.254/latest/meta-data/", "`169.254.169.254` is an internal address"),
        ({}, "http://[::ffff:10.0.0.1]/", "`::ffff:a00:1` is an internal address"),
        ({}, "file:///etc/passwd", "the address must begin with `http://` or `https://`"),
        ({"allowed_schemes": ["ftp"]}, "ftp://example.com/", "the address must begin with `http://` or `https://`"),
    ],
)
async def test_addresses_that_are_refused(rules: dict[str, Any], url: str, why: str) -> None:
    """SB-4, SB-5, SB-6: the network, the scheme, the host; before anything is resolved."""
    with pytest.raises(SandboxViolationError) as caught:
        await sandboxed(**rules).call("http_request", {"url": url})
    assert str(caught.value) == f"Sandbox violation (http_request): {why}"


async def test_no_header_stands_for_another_host() -> None:
    """A server of many hosts would answer for one that isn't listed."""
    with pytest.raises(SandboxViolationError, match="the header `Host` is set by the address alone"):
        await sandboxed(allowed_domains=["a.example"]).call(
            "http_request", {"url": "http://a.example/", "headers": {"hOST": "b.example"}}
        )


async def test_proxies_of_the_environment_are_not_used(
    serve: Callable[..., Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SB-6: behind one nobody could say where a request goes. Without a sandbox they are, as everywhere."""
    server, proxy = serve(says(b"direct")), serve(says(b"through the proxy"))
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", "")
    url = f"http://127.0.0.1:{server.port}/"
    assert (await sandboxed(allowed_domains=["127.0.0.1"]).call("http_request", {"url": url}))["body"] == "direct"
    free = ToolRegistry()
    register_builtins(free)
    assert (await free.call("http_request", {"url": url}))["body"] == "through the proxy"


@pytest.mark.parametrize("value", ["a\nX-Evil: 1", "a\r\n\r\nbody", "a\0", "a\x7f", "\ud800"])
async def test_headers_hold_one_line(builtins: ToolRegistry, value: str) -> None:
    """Whatever a template made of them."""
    with pytest.raises(ValidationError, match=r"argument `headers\.X` must be one line without control characters"):
        await builtins.call("http_request", {"url": "http://127.0.0.1:9/", "headers": {"X": value}})
