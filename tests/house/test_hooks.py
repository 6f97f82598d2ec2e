"""The hooks for pre-commit, installed and run by the real program on a real repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOOD = "name: w\nsteps:\n  - {id: a, type: llm_call, prompt: hi}\n"
BROKEN = GOOD + "  - {id: c, type: llm_call, prompt: hi, depends_on: [b]}\n"
TWICE = GOOD + "  - {id: c, type: llm_call, prompt: hi, depends_on: [a, a]}\n"


def test_the_hooks_on_a_real_repository(tmp_path: Path) -> None:
    """Three staged files, one of them broken and one to be fixed: they are checked, and nothing else is."""
    here = tmp_path / "repository"
    here.mkdir()
    subprocess.run(["git", "init", "--quiet", str(here)], check=True)
    for name, text in (("good", GOOD), ("twice", TWICE), ("broken", BROKEN), ("not-staged", BROKEN)):
        (here / f"{name}.loom.yaml").write_text(text, encoding="utf-8")
    (here / "compose.yaml").write_text("services: {}\n", encoding="utf-8")
    staged = ["good.loom.yaml", "twice.loom.yaml", "broken.loom.yaml", "compose.yaml"]
    subprocess.run(["git", "add", *staged], cwd=here, check=True)
    # A hook of this very repository may run these tests: its variables would lead git astray.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "try-repo", "--color", "never", "--verbose", str(ROOT)],
        cwd=here,
        env={**env, "PRE_COMMIT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    fixed, _, checked = output.partition("- hook id: agentloom-validate")
    assert "- hook id: agentloom-fix" in fixed, output
    assert "files were modified by this hook" in fixed
    assert "3 files checked: 1 fixed, 1 error left" in fixed
    assert "broken.loom.yaml:4:54: error[AL202]" in checked
    assert "3 files checked: 1 error" in checked
    assert "not-staged" not in output
    assert (here / "twice.loom.yaml").read_text(encoding="utf-8") == TWICE.replace("[a, a]", "[a]")
    assert (here / "not-staged.loom.yaml").read_text(encoding="utf-8") == BROKEN
