"""Thousands of runs: the workers take up no more at the end than at the beginning."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.durable.crew import Workers
from tests.scale.receiver import build
from tests.scale.soak import soak, thirds

RUNS = int(os.environ.get("SOAK", "1500"))
STEPS = 10


@pytest.mark.timeout(3600)
def test_memory_threads_and_connections_stay_flat(tmp_path: Path, workers: Workers) -> None:
    """However many runs wait, and however many have ended."""
    file = build(tmp_path, STEPS, 1, "nothing")
    workers.begin(2)
    samples = soak(workers.url, file, RUNS, workers.running)
    last_s = samples[-1].at_s
    print(f"{RUNS} runs of {STEPS} steps in {last_s:.0f} s: {RUNS * STEPS / last_s:.0f} steps a second")
    for sample in samples[:: max(1, len(samples) // 12)]:
        print(sample)
    first, last = thirds(samples)
    assert first
    assert last
    most = max(sample.memory_mb for sample in first)
    assert max(sample.memory_mb for sample in last) <= most * 1.15 + 10, "memory grows"
    assert max(sample.threads for sample in last) <= max(sample.threads for sample in first) + 4, "threads grow"
    assert max(sample.connections for sample in last) <= max(sample.connections for sample in first) + 2
