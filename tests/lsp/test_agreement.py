"""The promise of the house: what the editor underlines, `validate` prints and the engine refuses, with the same words and places."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.core.loader import load_workflow
from agentloom.errors import WorkflowError
from tests.lsp.peer import FULL, ROOT, Process

FILES = sorted(
    path
    for folder in ("examples", "docs/mistakes", "tests/fixtures/rules")
    for path in (ROOT / folder).rglob("*.y*ml")
    if not re.search(rb"^system_prompt:", path.read_bytes(), re.MULTILINE)  # agent files aren't run by themselves
)
SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}


class Said(NamedTuple):
    """One diagnostic as any of the readers says it, places from 0 in code points."""

    code: str
    severity: int
    place: tuple[int, int, int, int]
    message: str


def from_command_line() -> dict[Path, set[Said]]:
    """What `agentloom validate` says about all files."""
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "validate", "--format", "json", "--severity", "hint", *map(str, FILES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    said: dict[Path, set[Said]] = {path: set() for path in FILES}
    for found in json.loads(done.stdout)["diagnostics"]:
        place = (found["line"] - 1, found["column"] - 1, found["end_line"] - 1, found["end_column"] - 1)
        said[Path(found["path"])].add(Said(found["code"], SEVERITIES[found["severity"]], place, found["message"]))
    assert done.returncode == int(any(one.severity == 1 for every in said.values() for one in every))
    return said


def from_server() -> dict[Path, set[Said]]:
    """What the language server says about all files, over standard input and output."""
    said: dict[Path, set[Said]] = {}
    capabilities: dict[str, Any] = {**FULL, "general": {"positionEncodings": ["utf-32"]}}
    with Process() as peer:
        peer.initialize(capabilities)
        for path in FILES:
            # The language says that it is ours, as naming a file on the command line does.
            text = path.read_bytes().decode("utf-8")
            peer.open(path.as_uri(), text, language="agentloom")
            said[path] = {said_by(report, text) for report in peer.published(path.as_uri(), 1)}
        assert peer.leave() == 0
    return said


def said_by(report: dict[str, Any], text: str) -> Said:
    start, end = report["range"]["start"], report["range"]["end"]
    # An editor's first line has the byte order mark in it, a person's hasn't.
    mark = 1 if text.startswith("\ufeff") else 0
    columns = [place["character"] - (mark if place["line"] == 0 else 0) for place in (start, end)]
    place = (start["line"], max(columns[0], 0), end["line"], max(columns[1], 0))
    return Said(report["code"], report["severity"], place, report["message"])


def refused() -> set[Path]:
    """Which files the engine doesn't load."""
    found: set[Path] = set()
    for path in FILES:
        try:
            load_workflow(path)
        except WorkflowError:
            found.add(path)
    return found


def test_editor_command_line_and_engine_agree() -> None:
    """Over every fixture, example and mistake: the same codes, severities, ranges and messages; errors, and only they, refuse."""
    ours, theirs = from_server(), from_command_line()
    for path in FILES:
        assert ours[path] == theirs[path], path
    assert refused() == {path for path in FILES if any(said.severity == 1 for said in theirs[path])}
