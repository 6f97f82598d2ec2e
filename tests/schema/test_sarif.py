"""`agentloom validate --format sarif` under Microsoft's own checker: its schema and its rules."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, call
from tests.rule_fixtures import ROOT as FIXTURES

__all__ = ["call"]


def _checked(multitool: Path, log: Path) -> list[dict[str, Any]]:
    """Return what the checker says about a log."""
    report = log.with_suffix(".report.sarif")
    data = json.loads(log.read_text(encoding="utf-8"))
    for rule in data["runs"][0]["tool"]["driver"]["rules"]:
        assert rule.pop("helpUri").startswith("https://")  # the checker would look each of them up in the network
    log.write_text(json.dumps(data), encoding="utf-8")
    kinds = ("--rule-kind", "Sarif", "--level", "Error;Warning")
    done = subprocess.run(
        [str(multitool), "validate", str(log), "--output", str(report), "--log", "ForceOverwrite", *kinds],
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    (run,) = json.loads(report.read_text(encoding="utf-8-sig"))["runs"]
    results: list[dict[str, Any]] = run["results"]
    return results


@pytest.fixture
def log(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log with every kind of finding that the fixtures have, of a repository, with odd names and a file that isn't there."""
    monkeypatch.chdir(FIXTURES)
    odd = tmp_path / "ünd so.loom.yaml"
    (tmp_path / ".git").mkdir()
    odd.write_text('name: w\nsteps:\n  - {id: a, type: llm_cal, prompt: "😀", depends_on: [b]}\n', encoding="utf-8")
    names = [str(path.relative_to(FIXTURES)) for path in sorted(FIXTURES.glob("AL*/bad*.yaml"))]
    done = call("validate", "--format", "sarif", "--severity", "hint", str(odd), *names, "nowhere.yaml")
    assert done.code == 2
    path = tmp_path / "log.sarif"
    path.write_text(done.out, encoding="utf-8")
    return path


def test_the_checker_has_nothing_to_say(multitool: Path, log: Path) -> None:
    """Neither an error nor a warning."""
    assert _checked(multitool, log) == []


def test_the_checker_would_say_it(multitool: Path, log: Path) -> None:
    """The same checker tells when a message is missing and when a line is none."""
    data = json.loads(log.read_text(encoding="utf-8"))
    del data["runs"][0]["results"][0]["message"]
    data["runs"][0]["results"][1]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    log.write_text(json.dumps(data), encoding="utf-8")
    assert {"JSON1002", "JSON1008"} <= {result["ruleId"] for result in _checked(multitool, log)}


def test_places_are_those_of_the_repository(log: Path) -> None:
    """Paths from the repository's root, percent-encoded; columns in code points; what couldn't be checked is a notification."""
    (run,) = json.loads(log.read_text(encoding="utf-8"))["runs"]
    first = run["results"][0]["locations"][0]["physicalLocation"]
    assert first["artifactLocation"] == {"uri": "%C3%BCnd%20so.loom.yaml", "uriBaseId": "%SRCROOT%"}
    second = run["results"][1]["locations"][0]["physicalLocation"]["region"]
    assert second == {"startLine": 3, "startColumn": 54, "endLine": 3, "endColumn": 55}
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["invocations"][0]["executionSuccessful"] is False
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "nowhere.yaml" in note["message"]["text"]
