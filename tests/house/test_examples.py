"""The examples work: no finding, and a run, offline, that does what its golden file says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Golden

EXAMPLES = sorted((ROOT / "examples").rglob("*.loom.yaml"))
RUNS = Path(__file__).parent / "runs"
MISTAKES = sorted((ROOT / "docs" / "mistakes").glob("*.loom.yaml"))


def loom(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    command = [sys.executable, "-m", "agentloom", *arguments]
    path = f"{ROOT}:{ROOT / 'lsp'}"
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )


def test_there_are_enough() -> None:
    """At least ten that a user would start, and each with its recording."""
    top = [path for path in EXAMPLES if path.parent.name == "examples"]
    assert len(top) >= 10
    recordings = {path.stem for path in (ROOT / "examples" / "recordings").glob("*.json")}
    assert recordings == {path.name.removesuffix(".loom.yaml") for path in EXAMPLES}


def test_no_example_has_a_finding() -> None:
    """Not even a hint of a mistake: errors, warnings and information, over the whole folder."""
    done = loom(ROOT, "validate", "--strict", "--severity", "information", "--format", "json", "examples")
    found = json.loads(done.stdout)
    assert [(d["path"], d["line"], d["code"], d["message"]) for d in found["diagnostics"]] == []
    assert found["summary"]["files"] == len(EXAMPLES)
    assert done.returncode == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs_offline(path: Path, tmp_path: Path, golden: Golden) -> None:
    """From another folder, without a key: what ran, what was skipped and what came out are as written down."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = loom(elsewhere, "run", "--json", f"../{path.relative_to(ROOT)}")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == "success"
    assert "placeholder" not in done.stderr
    kept = {
        "steps": {name: step["status"] for name, step in result["step_results"].items()},
        "total_tokens": result["total_tokens"],
        "final_state": {k: v for k, v in result["final_state"].items() if k != "steps"},
    }
    golden(RUNS / f"{path.name.removesuffix('.loom.yaml')}.json", json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.name)
def test_mistakes_are_found(path: Path, golden: Golden) -> None:
    """The files full of mistakes: every one is found, and the text shown to people is as written down."""
    done = loom(ROOT, "validate", "--severity", "hint", str(path.relative_to(ROOT)))
    assert done.returncode == 1, done.stdout + done.stderr
    golden(RUNS / f"mistakes-{path.name.removesuffix('.loom.yaml')}.txt", done.stdout)
