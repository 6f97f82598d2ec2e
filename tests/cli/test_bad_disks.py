"""Disks that fill up, become read-only or lose the folder while a run goes on: real file systems, in a mount namespace of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import environment

FLOW = """\
name: kept
config: {provider: mock, model: m, responses_file: rec.json}
steps:
  - {id: a, type: llm_call, prompt: a, output: x}
  - {id: b, type: tool, tool_name: shell_command, depends_on: [a], output: y, tool_args: {command: "COMMAND"}}
  - {id: c, type: llm_call, prompt: "c {state.x}", depends_on: [b], output: z}
"""
RECORDING = {"a": {"content": "A", "cost_usd": 0.1}, "c": {"content": "C", "cost_usd": 0.3}}
KEPT = "--checkpoint --checkpoint-dir kept --json"


class Told:
    """What a script's calls of the program gave: exit codes, results, and standard error."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[bytes]) -> None:
        self.folder = folder
        assert done.returncode == 0, done.stderr.decode()

    def result(self, name: str) -> dict[str, Any]:
        """Return the result that a call printed."""
        found: dict[str, Any] = json.loads((self.folder / f"{name}.out").read_text(encoding="utf-8"))
        return found

    def err(self, name: str) -> str:
        """Return what a call said."""
        return (self.folder / f"{name}.err").read_text(encoding="utf-8")

    def code(self, name: str) -> int:
        """Return a call's exit code."""
        return int((self.folder / f"{name}.code").read_text(encoding="utf-8"))

    def done(self) -> list[str]:
        """Return what the steps' commands have written."""
        return (self.folder / "done").read_text(encoding="utf-8").split()


def in_a_namespace(folder: Path, command: str, script: str) -> Told:
    """Run a shell script in which `loom NAME ARGUMENTS` calls the program, and `mount` touches nobody else's file systems."""
    (folder / "flow.yaml").write_text(FLOW.replace("COMMAND", command), encoding="utf-8")
    (folder / "rec.json").write_text(json.dumps(RECORDING), encoding="utf-8")
    (folder / "kept").mkdir()
    loom = f'loom() {{ n=$1; shift; {sys.executable} -m agentloom "$@" >$n.out 2>$n.err && c=0 || c=$?; echo $c >$n.code; }}\n'
    unshare = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run(
        [*unshare, "sh", "-ec", loom + script],
        cwd=folder,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    return Told(folder, done)


def refused(folder: Path, spoiled: str, why: str) -> None:
    """Hold a run to it that nothing of it begins where the folder of its checkpoints has been spoiled."""
    told = in_a_namespace(folder, "echo b >> done", f"{spoiled}\nloom run run flow.yaml {KEPT}\n")
    assert told.code("run") == 1
    assert f"error: the run can't be kept: {why}" in told.err("run")
    assert (folder / "run.out").read_text() == ""
    assert not (folder / "done").exists()


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    """The run ends with a clear word and its result so far; with room again it goes on after what was written down."""
    told = in_a_namespace(
        tmp_path,
        "echo b >> done; printf %09000d 1; [ -f full ] || cat /dev/zero > kept/zeros; touch full",
        f"""
        mount -t tmpfs -o size=64k none kept
        loom run run flow.yaml {KEPT}
        rm kept/zeros
        loom runs runs --checkpoint-dir kept
        loom resume resume latest --checkpoint-dir kept --json
        """,
    )
    result = told.result("run")
    assert told.code("run") == 1
    assert (result["status"], result["error"]) == ("failed", "the journal can't be written: no space left on device")
    assert {name: step["output"] for name, step in result["step_results"].items() if name == "a"} == {"a": "A"}
    assert result["total_cost_usd"] == pytest.approx(0.1)
    assert "interrupted" in (tmp_path / "runs.out").read_text()
    again = told.result("resume")
    assert (told.code("resume"), again["status"]) == (0, "success")
    assert again["total_cost_usd"] == pytest.approx(0.4)
    assert "a: started" not in told.err("resume")
    assert told.done() == ["b", "b"], "it could not be written down"
    for name in ("run", "resume"):
        assert "Traceback" not in told.err(name)


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    """Nothing is run, and nothing paid, that could not be kept."""
    full = "mount -t tmpfs -o size=64k none kept; cat /dev/zero > kept/zeros 2>/dev/null || true"
    refused(tmp_path, full, "No space left on device")


def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    """Nothing is run that could not be kept."""
    refused(tmp_path, "mount -t tmpfs -o ro none kept", "Read-only file system")


def test_a_folder_that_becomes_read_only(tmp_path: Path) -> None:
    """The result is printed all the same, and the journal is what a resume goes on with: nothing is left to run."""
    told = in_a_namespace(
        tmp_path,
        "echo b >> done; mount --bind kept kept && mount -o remount,bind,ro kept",
        f"""
        loom run run flow.yaml {KEPT}
        umount kept
        loom resume resume latest --checkpoint-dir kept --json
        """,
    )
    result = told.result("run")
    assert told.code("run") == 1
    assert (result["status"], result["error"]) == (
        "failed",
        "the checkpoint can't be written: read-only file system",
    )
    assert {name: step["status"] for name, step in result["step_results"].items()} == dict.fromkeys("abc", "success")
    assert result["final_state"]["z"] == "C"
    again = told.result("resume")
    assert (told.code("resume"), again["status"], again["final_state"]["z"]) == (0, "success", "C")
    assert "started" not in told.err("resume")
    assert again["total_cost_usd"] == pytest.approx(0.4)


def test_a_folder_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    """The run says so and ends well: its checkpoint is written into a new folder."""
    told = in_a_namespace(
        tmp_path,
        "echo b >> done; rm -r kept",
        f"""
        loom run run flow.yaml {KEPT}
        loom runs runs --checkpoint-dir kept
        """,
    )
    assert (told.code("run"), told.result("run")["status"]) == (0, "success")
    assert "was deleted while the run went on" in told.err("run")
    assert "success" in (tmp_path / "runs.out").read_text()


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """Deleted, and something else put there: the result is printed, with a clear word."""
    told = in_a_namespace(
        tmp_path,
        "echo b >> done; rm -r kept; touch kept",
        f"loom run run flow.yaml {KEPT}",
    )
    result = told.result("run")
    assert told.code("run") == 1
    assert result["status"] == "failed"
    assert result["error"].startswith("the checkpoint can't be written: ")
    assert result["final_state"]["z"] == "C"
    assert "Traceback" not in told.err("run")
