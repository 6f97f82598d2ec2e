"""Run programs and say how long they took and how much memory they had at their peak."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds from start to end (the median over the runs), the peak memory in MiB, and each run's standard output.

    The memory is that of the process that had most: of the program itself, or of one that it waited for.
    """

    seconds: float
    memory: float
    outputs: tuple[str, ...]


def measure(
    commands: Sequence[Sequence[str]], folder: Path, runs: int, environment: Mapping[str, str]
) -> list[Measured]:
    """Run some commands in turns, ``runs`` times each, so that a busy machine slows all of them alike.

    Raises ``RuntimeError`` with a command's last words when it fails.
    """
    found: list[list[tuple[float, float, str]]] = [[] for _ in commands]
    for _ in range(runs):
        for command, taken in zip(commands, found, strict=True):
            taken.append(run_once(command, folder, environment))
    return [
        Measured(
            statistics.median(seconds for seconds, _, _ in taken),
            max(m for _, m, _ in taken),
            tuple(o for _, _, o in taken),
        )
        for taken in found
    ]


def run_once(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, float, str]:
    """Run a command; return its seconds, its peak memory in MiB and its standard output."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
        if process.returncode:
            err.seek(0)
            last = (text + err.read().decode("utf-8", "replace")).strip()[-600:]
            raise RuntimeError(f"`{' '.join(map(str, command))}` ended with {process.returncode}: {last}")
        return seconds, usage.ru_maxrss / 1024, text
