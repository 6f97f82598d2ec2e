"""Start-up stays cheap: what a command doesn't need is not imported."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("arguments", CHEAP, ids=" ".join)
def test_cheap_commands_import_nothing_heavy(root: Path, arguments: tuple[str, ...]) -> None:
    """The commands that run on every save and in every hook pay only for what they use."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    assert done.stderr.strip(), done.stdout
    code, loaded = json.loads(done.stderr.strip().splitlines()[-1])
    assert code == 0, done.stderr
    assert "agentloom.cli" in loaded
    assert [name for name in HEAVY if name in loaded] == []
