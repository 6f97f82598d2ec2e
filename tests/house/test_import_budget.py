"""Start-up stays cheap: what a command doesn't need is not imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("pydantic", "httpx", "jsonschema", "pygls", "lsprotocol", "rich", "asyncio", "anyio")

PROBE = """
import json, sys
from agentloom.cli.app import app
try:
    code = app.main(sys.argv[1:], prog_name="agentloom")
except SystemExit as stop:
    code = stop.code
print(json.dumps([code or 0, sorted(sys.modules)]), file=sys.stderr)
"""

CHEAP = [
    ("--version",),
    ("--help",),
    ("validate", "examples/support-triage.loom.yaml"),
    ("validate", "examples"),
    ("validate", "--format", "json", "examples/quarterly-report.loom.yaml"),
    ("explain", "AL204"),
    ("schema", "workflow"),
]


# What only some files need: broken ones, and those with routers, settings, suppressions or many neighbours.
FOR_OTHERS = (
    "agentloom.language.evaluation",
    "agentloom.language.parser",
    "agentloom.language.tree",
    "agentloom.syntax.outline",
    "agentloom.syntax.recovery",
    "agentloom.syntax.repairs",
    "difflib",
    "logging",
    "multiprocessing",
    "pickle",
    "subprocess",
    "tomllib",
)
SMALL = """\
name: small
steps:
  - id: greet
    type: llm_call
    prompt: "Greet {state.name}."
    output: greeting
"""


def loaded_by(root: Path, folder: Path, *arguments: str) -> list[str]:
    """Return the modules that a command has loaded when it ends; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    assert done.stderr.strip(), done.stdout
    code, loaded = json.loads(done.stderr.strip().splitlines()[-1])
    assert code == 0, done.stderr
    assert "agentloom.cli" in loaded
    return [str(name) for name in loaded]


@pytest.mark.parametrize("arguments", CHEAP, ids=" ".join)
def test_cheap_commands_import_nothing_heavy(root: Path, arguments: tuple[str, ...]) -> None:
    """The commands that run on every save and in every hook pay only for what they use."""
    loaded = loaded_by(root, root, *arguments)
    assert [name for name in HEAVY if name in loaded] == []


def test_a_small_correct_file_pays_for_no_other(root: Path, tmp_path: Path) -> None:
    """What broken files and rarer parts of the format need is loaded with the first of them."""
    (tmp_path / "small.loom.yaml").write_text(SMALL, encoding="utf-8")
    loaded = loaded_by(root, tmp_path, "validate", "small.loom.yaml")
    assert [name for name in FOR_OTHERS if name in loaded] == []


def test_a_run_offline_imports_what_it_uses(root: Path, tmp_path: Path) -> None:
    """No client of a provider, no models, and no drawing where there is no terminal."""
    (tmp_path / "small.loom.yaml").write_text(SMALL + "config:\n  provider: mock\n", encoding="utf-8")
    loaded = loaded_by(root, tmp_path, "run", "small.loom.yaml", "-s", "name=Ann")
    assert [name for name in HEAVY if name in loaded] == ["asyncio", "anyio"]
    assert [name for name in ("agentloom.providers.recorder", "random", "tempfile") if name in loaded] == []
