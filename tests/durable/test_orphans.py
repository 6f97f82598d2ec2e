"""A worker that is killed takes its commands with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from select import poll

from tests.cli.conftest import environment

COMMAND = """\
name: shell
config: {provider: mock}
steps:
  - id: wait
    type: tool
    tool_name: shell_command
    tool_args: {command: "exec < held; (cat; sleep 600) & cat & sleep 600", timeout: 0}
"""


def test_a_killed_worker_leaves_no_orphan(tmp_path: Path, sqlite: str) -> None:
    """SIGKILL: the command of a step ends with its worker, and what it started too, before the step comes again."""
    os.mkfifo(tmp_path / "held")
    (tmp_path / "shell.loom.yaml").write_text(COMMAND, encoding="utf-8")
    order = [sys.executable, "-m", "agentloom", "run", "shell.loom.yaml", "--detach", "--no-history"]
    subprocess.run(order, cwd=tmp_path, env=environment(AGENTLOOM_ON=sqlite), check=True, capture_output=True)
    worker = subprocess.Popen(
        [sys.executable, "-m", "agentloom", "worker"], cwd=tmp_path, env=environment(AGENTLOOM_ON=sqlite),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with (tmp_path / "held").open("wb") as held:  # returns once the command has it open
            worker.kill()
            worker.wait()
            end = poll()
            end.register(held, 0)
            assert end.poll(30_000)  # nobody reads it any more
    finally:
        worker.kill()
        worker.wait()
