"""A run, as a process, whose own tools hang, fork, end the program and raise what nobody catches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import environment

TOOLS = """\
import os, subprocess, sys, threading, time
from agentloom.tools.base import tool


@tool("hang", "Never comes back.")
def hang() -> None:
    while True:
        time.sleep(1000)


@tool("leave", "Ends the program.")
def leave() -> None:
    sys.exit(7)


@tool("fork", "Comes back twice.")
def fork() -> str:
    os.fork()
    return "once"


@tool("odd", "Raises what is no error.")
async def odd() -> None:
    raise BaseException("odd")


@tool("shout", "Prints.")
def shout() -> str:
    print("noise")
    os.write(1, b"noise ")
    subprocess.run(["echo", "noise"])
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return "done"
"""
FLOW = """\
name: hostile
config: {provider: mock, model: m, max_retries: 0}
steps:
  - {id: hang, type: tool, tool_name: hang, timeout: 0.5}
  - {id: leave, type: tool, tool_name: leave}
  - {id: fork, type: tool, tool_name: fork}
  - {id: odd, type: tool, tool_name: odd}
  - {id: shout, type: tool, tool_name: shout}
  - {id: after, type: llm_call, depends_on: [fork, shout], prompt: "{state.steps.fork.output}"}
"""


def test_the_run_goes_on_and_ends(tmp_path: Path) -> None:
    """Each step has its own end; there is one result, and nobody waits for what hangs."""
    (tmp_path / "agentloom.toml").write_text('tools = ["hostile_tools"]\n')
    (tmp_path / "hostile_tools.py").write_text(TOOLS)
    (tmp_path / "w.loom.yaml").write_text(FLOW)
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "run", "w.loom.yaml", "--json"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert {name: (step["status"], step["error"]) for name, step in result["step_results"].items()} == {
        "hang": ("timeout", "Step timed out after 0.5s"),
        "leave": ("failed", "it tried to end the program: exit code 7"),
        "fork": ("success", None),
        "odd": ("failed", "Tool 'odd' failed: it raised BaseException: odd"),
        "shout": ("success", None),
        "after": ("success", None),
    }
    assert "Traceback" not in done.stderr
    assert done.stderr.count("noise") == 3
