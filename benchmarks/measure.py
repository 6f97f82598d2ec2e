"""Run a program and say how long it took and how much memory it had at its peak."""

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
    """Seconds from start to end (the median over the runs), the peak memory in MiB, and the last run's standard output."""

    seconds: float
    memory: float
    output: str


def measure(
    command: Sequence[str], folder: Path, runs: int = 1, environment: Mapping[str, str] | None = None
) -> Measured:
    """Run a command ``runs`` times. Raises ``RuntimeError`` with its last words when it fails."""
    times: list[float] = []
    memory = 0.0
    text = ""
    for _ in range(runs):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            start = time.perf_counter()
            process = subprocess.Popen(
                command, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment
            )
            _, status, usage = os.wait4(process.pid, 0)
            times.append(time.perf_counter() - start)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read().decode("utf-8", "replace")
            if process.returncode:
                err.seek(0)
                last = (text + err.read().decode("utf-8", "replace")).strip()[-600:]
                raise RuntimeError(f"`{' '.join(map(str, command))}` ended with {process.returncode}: {last}")
            memory = max(memory, usage.ru_maxrss / 1024)
    return Measured(statistics.median(times), memory, text)
