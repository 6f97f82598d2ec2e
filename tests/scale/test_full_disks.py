"""Disks that are full in the middle of runs: PostgreSQL's, and that of a SQLite file. Each is a small file system in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.durable.crew import Workers
from tests.durable.postgres import Server
from tests.scale.receiver import Receiver, build
from tests.scale.test_databases import LAYERS, STEPS, WIDE, all_is_well, put, wait_until

MAKE_SMALL = Callable[[Path, str], Path]


@pytest.fixture
def small() -> Iterator[MAKE_SMALL]:
    """Return a function that makes a folder whose disk has only so much room, as ``mount`` writes it."""
    made: list[Path] = []

    def make(folder: Path, room: str) -> Path:
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={room},mode=0777", "none", str(folder)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            if os.environ.get("CI"):
                pytest.fail(f"no small disk can be made: {done.stderr}", pytrace=False)
            pytest.skip(f"only root can make a small disk: {done.stderr}")
        made.append(folder)
        return folder

    yield make
    for folder in made:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def fill(folder: Path) -> Path:
    """Write a file until there is no room left, and return it."""
    file = folder / "ballast"
    with suppress(OSError), file.open("wb", buffering=0) as handle:
        while True:
            handle.write(bytes(1 << 16))
    with suppress(OSError), file.open("ab", buffering=0) as handle:
        while True:
            handle.write(bytes(512))
    return file


def test_the_server_has_no_room_for_a_while(
    tmp_path: Path, workers: Workers, server: Server, small: MAKE_SMALL
) -> None:
    """Runs wait as long as their tables can't grow, and go on when they can."""
    disk = small(server.folder / "disk", "64m")
    (disk / "tables").mkdir()
    shutil.chown(disk / "tables", "postgres" if os.geteuid() == 0 else None)
    administrator, _, name = workers.url.rpartition("/")
    with psycopg.connect(f"{administrator}/postgres", autocommit=True) as session:
        session.execute(f"CREATE TABLESPACE small LOCATION '{disk / 'tables'}'".encode())
        session.execute(f"ALTER DATABASE {name} SET TABLESPACE small".encode())
    file = build(tmp_path, LAYERS, WIDE)
    ballast: Path | None = None
    try:
        with Receiver(0.05) as receiver:
            workers.environment["RECEIVER"] = receiver.url
            workers.options = ("--concurrency", "2")
            workers.begin(2)
            segments = put(workers, file, 12)
            wait_until(lambda: len(receiver.requests) > STEPS)
            ballast = fill(disk)
            log = server.folder / "log"
            wait_until(lambda: "No space left on device" in log.read_text(errors="replace"))
            before = len(receiver.requests)
            assert before < len(segments) * STEPS, "the runs were faster than the disk was full"
            ballast.unlink()
            all_is_well(workers, segments, receiver)
            assert all(process.poll() is None for process in workers.running), "a worker gave up"
    finally:
        workers.end()
        with psycopg.connect(f"{administrator}/postgres", autocommit=True) as session:
            session.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            session.execute(b"DROP TABLESPACE small")


def test_a_file_has_no_room_for_a_while(tmp_path: Path, small: MAKE_SMALL) -> None:
    """The run says that it waits, and goes on."""
    disk = small(tmp_path / "disk", "24m")
    alone = Workers(f"sqlite:///{disk / 'runs.db'}", tmp_path, 0)
    file = build(tmp_path, LAYERS, WIDE)
    with Receiver(0.1) as receiver:
        alone.environment["RECEIVER"] = receiver.url
        process = subprocess.Popen(
            [sys.executable, "-m", "agentloom", "run", str(file), "--run-id", "run0", "--state", "name=run0", "--no-history"],
            cwd=tmp_path, env=alone.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        alone.running.append(process)
        try:
            wait_until(lambda: len(receiver.requests) > 2 * WIDE)
            ballast = fill(disk)
            assert process.stderr is not None
            told = ""
            while "disk is full" not in told:
                line = process.stderr.readline()
                assert line, f"it ended: {told}"
                told += line
            ballast.unlink()
            out, rest = process.communicate()
            assert process.returncode == 0, out + told + rest
            assert "Traceback" not in told + rest
            accepted = receiver.accepted
            assert len(accepted) == STEPS
            assert set(accepted.values()) == {1}
        finally:
            alone.end()
