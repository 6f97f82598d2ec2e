"""Many runs, many decisions, and clients that break off: nothing is lost, and memory stays flat."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.callbacks.conftest import Server, StartServer, done, lines_of, publish

RUNS = 500
DECIDED = 5
REQUESTS = 600


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
    """Five hundred runs wait; fifty decisions at once about each of several: one winner each, among broken and mistaken clients."""
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
        before = megabytes(server)
        assert set(pool.map(one, range(REQUESTS))) == {0}
    assert megabytes(server) - before < 8
    assert server.stop() == 0
    assert len(done(tmp_path)) == DECIDED
