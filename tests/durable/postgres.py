"""PostgreSQL for tests: a server on loopback in a folder of its own, and the fixtures that make databases on it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import NoReturn

import pytest

_numbers = count(1)


def missing(what: str) -> NoReturn:
    """Leave a test out, since what it needs isn't there: but not in CI, where it has to be."""
    cure = f"{what} is missing; `make postgres` or `make test-scale` installs what it can, or says what to install"
    if os.environ.get("CI"):
        pytest.fail(cure, pytrace=False)
    pytest.skip(cure)


class Server:
    """A PostgreSQL server in a folder of its own, on loopback or another address of this machine. ``before`` stands before each command."""

    def __init__(self, programs: Path, host: str = "127.0.0.1", before: Sequence[str] = ()) -> None:
        self.programs = programs
        self.host = host
        self._before = before
        self.folder = Path(mkdtemp(prefix="agentloom-pg-"))
        self.folder.chmod(0o777)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._call("initdb", "-D", str(self.folder / "data"), "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8")
        with (self.folder / "data" / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write("host all all samenet trust\n")
        self.start()

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = f"-F -c listen_addresses={self.host} -p {self.port} -c unix_socket_directories={self.folder}"
        log = str(self.folder / "log")
        self._call("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-w", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is as if the machine lost its power."""
        self._call("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def database(self) -> str:
        """Make a database, and return its address."""
        import psycopg

        name = f"loom{next(_numbers)}"
        with psycopg.connect(f"{self._url}/postgres", autocommit=True) as session:
            session.execute(f"CREATE DATABASE {name}".encode())
        return f"{self._url}/{name}"

    @property
    def _url(self) -> str:
        return f"postgresql://postgres@{self.host}:{self.port}"

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str) -> None:
        """Call one of its programs, which refuse to run as root."""
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(
            [*self._before, *command],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def programs() -> Path:
    """Return the folder of PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    where = shutil.which("initdb")
    if not found and where is None:
        missing("PostgreSQL")
    return found[-1].parent if found else Path(str(where)).parent


@pytest.fixture(scope="session")
def new_server() -> Iterator[Callable[[], Server]]:
    """Return a function that starts a server."""
    started: list[Server] = []

    def new() -> Server:
        started.append(Server(programs()))
        return started[-1]

    try:
        yield new
    finally:
        for server in started:
            server.close()


@pytest.fixture(scope="session")
def server(new_server: Callable[[], Server]) -> Server:
    """The server that most tests share."""
    return new_server()


@pytest.fixture(scope="session")
def new_postgres(server: Server) -> Callable[[], str]:
    """Return a function that makes a database and returns its address."""
    return server.database
