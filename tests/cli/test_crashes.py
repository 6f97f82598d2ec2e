"""Runs that are killed with SIGKILL at random moments, as real processes, and resumed until they are done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, environment

KILLS = 50


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_two_hundred_kills(tmp_path: Path, seed: int) -> None:
    """Fifty steps, wide layers, children in children, commands: fifty kills each, of four times.

    No step that was finished runs again, one that was running comes again with the same key, and the result is that of a run that was left alone.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.cli.crashing", str(tmp_path), str(seed), str(KILLS)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert told["faults"] == []
    assert (told["steps"], told["kills"]) == (50, KILLS)
    # Of the four that run at once, at most.
    assert told["repeated"] <= 4 * told["kills"]
