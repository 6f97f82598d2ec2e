"""Many runs, many decisions, and clients that break off: nothing is lost, and memory stays flat."""

from __future__ import annotations

import http.client
import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.callbacks.conftest import PATIENCE, Server, StartServer, done, lines_of, publish

RUNS = 500
DECIDED = 20
REQUESTS = 120
SOAK = 10_000


def megabytes(server: Server) -> float:
    """Return the memory that a server takes."""
    if sys.platform != "linux":
        return 0.0
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


def broken(server: Server, said: bytes) -> None:
    """Connect, say something, and go."""
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(said)


def test_a_crowd(
    serve: StartServer, pause: Callable[..., None], copy: Callable[[str, str], None], tmp_path: Path
) -> None:
    """Five hundred runs wait; fifty decisions at once about each of twenty: one winner each, among broken and mistaken clients."""
    pause("r0", publish(tmp_path))
    for at in range(1, RUNS):
        copy("r0", f"r{at}")
    server = serve()
    assert len(server.ask("GET", "/pending").json["paused_runs"]) == RUNS
    for at in range(DECIDED):
        answers = server.together(*[("POST", f"/{('approve', 'reject')[at % 2]}/r{at}") for _ in range(50)])
        assert lines_of(answers) == {202: 1, 409: 49}

    def one(at: int) -> int:
        match at % 6:
            case 0:
                broken(server, os.urandom(100))
            case 1:
                broken(server, b"POST /approve/r9 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
            case 2:
                return server.ask("POST", "/approve/nobody").status - 404
            case 3:
                return server.ask("POST", "/webhook", "x" * 70_000).status - 400
            case 4:
                return server.ask("GET", "/").status - 200
            case _:
                return len(server.ask("GET", "/pending").json["paused_runs"]) - (RUNS - DECIDED)
        return 0

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(REQUESTS))) == {0}
    assert server.stop() == 0
    assert len(done(tmp_path)) == DECIDED


def test_ten_thousand_requests(serve: StartServer, pause: Callable[..., None], tmp_path: Path) -> None:
    """Good and bad requests, among clients that break off and others that never finish: all are answered, and memory stays flat."""
    pause("r0", publish(tmp_path))
    server = serve("--lite")
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    for at, client in enumerate(slow):
        client.sendall(
            (b"GET /pending HTT", b"POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")[at % 2]
        )

    def some(number: int) -> dict[int, int]:
        """Make a share of the requests over one connection; return how many had each status."""
        found: dict[int, int] = {}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        for at in range(number):
            method, path, body = SOAKED[at % len(SOAKED)]
            connection.request(method, path, body)
            answer = connection.getresponse()
            answer.read()
            found[answer.status] = found.get(answer.status, 0) + 1
            if at % 25 == 0:
                broken(server, os.urandom(50))
        connection.close()
        return found

    def all_of(number: int) -> dict[int, int]:
        with ThreadPoolExecutor(8) as pool:
            shares = list(pool.map(some, [number // 8] * 8))
        return {status: sum(share.get(status, 0) for share in shares) for status in (200, 400, 404, 409)}

    warm = all_of(SOAK // 5)
    before = megabytes(server)
    rest = all_of(SOAK - SOAK // 5)
    assert megabytes(server) - before < 8
    answered = {status: warm[status] + rest[status] for status in warm}
    assert answered == {200: SOAK * 2 // 5, 400: SOAK // 5, 404: SOAK // 5, 409: SOAK // 5}
    for client in slow:
        client.close()
    assert server.ask("POST", "/approve/r0").status == 202
    server.wait_for("run r0: success")
    assert server.stop() == 0
    assert done(tmp_path) == ["approved"]


SOAKED = (
    ("GET", "/pending", None),
    ("POST", "/webhook", '{"status": "awaiting_approval"}'),
    ("POST", "/webhook", "[]"),
    ("POST", "/approve/nobody", None),
    ("POST", "/approve/r0?step_id=other", None),
)
"""One of each has another status, 200 twice."""
