"""`agentloom validate` for programs: one diagnostic a line, GitHub's annotations, JUnit; numbers by code."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Call

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
GOOD = H + A
BAD = H + A + "    depends_on: [😀b, c, c]\n  - {id: c, type: llm_call, prompt: hi}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a git repository, with a good and a bad file."""
    folder = tmp_path / "repo" / "flows, 100%"
    folder.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    monkeypatch.chdir(folder)
    (folder / "good.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "bad.yaml").write_text(BAD, encoding="utf-8")
    return folder


def test_a_diagnostic_a_line(call: Call, here: Path) -> None:
    """The lines are the diagnostics of the JSON report."""
    lines = call("validate", "--format", "jsonl", "good.yaml", "bad.yaml")
    whole = call("validate", "--format", "json", "good.yaml", "bad.yaml")
    assert (lines.code, whole.code) == (1, 1)
    told = [json.loads(line) for line in lines.out.splitlines()]
    assert told == json.loads(whole.out)["diagnostics"]
    assert [d["code"] for d in told] == ["AL202", "AL205"]


def test_annotations_for_github(call: Call, here: Path) -> None:
    """Paths from the repository's root with forward slashes, 1-based places, everything escaped; nothing else is printed."""
    done = call("validate", "--format", "github", "good.yaml", "bad.yaml", "nowhere.yaml")
    assert done.code == 2
    first, second = done.out.splitlines()
    assert first.startswith(
        "::error file=flows%2C 100%25/bad.yaml,line=6,endLine=6,col=18,endColumn=19,title=AL202 unknown-dependency::"
    )
    assert "`😀b`" in first
    assert second.startswith("::warning file=flows%2C 100%25/bad.yaml,line=6,")
    assert done.err == "error: nowhere.yaml: no such file or folder\n"


def test_annotations_outside_a_repository(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the path is as it was given."""
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("sub/bad.yaml").write_text(BAD, encoding="utf-8")
    done = call("validate", "--format", "github", "sub/bad.yaml")
    assert done.out.startswith("::error file=sub/bad.yaml,line=6")


@pytest.mark.parametrize("format_", ["text", "json", "jsonl", "sarif", "github", "junit"])
def test_a_file_whose_name_is_no_text(process: Call, here: Path, format_: str) -> None:
    """Bytes that are no UTF-8 break no format; in a URI they stand as such."""
    name = os.fsdecode(b"b\xffd.yaml")
    (here / name).write_text(BAD, encoding="utf-8")
    done = process("validate", "--format", format_, "--", name)
    assert (done.code, done.err) == (1, "")
    if format_ == "sarif":
        place = json.loads(done.out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"].endswith("b%FFd.yaml")


@pytest.mark.parametrize(("strict", "failures"), [(False, 1), (True, 2)])
def test_junit(call: Call, here: Path, strict: bool, failures: int) -> None:
    """Errors fail, warnings when they count; a clean file is a passing case, what can't be read an error."""
    (here / "odd\x01.yaml").write_text(GOOD, encoding="utf-8")
    options = ["--strict"] if strict else []
    done = call("validate", "--format", "junit", *options, "good.yaml", "bad.yaml", "odd\x01.yaml", "nowhere.yaml")
    root = ElementTree.fromstring(done.out)
    assert root.tag == "testsuites"
    (suite,) = root
    assert {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors")} == {
        "tests": 5,
        "failures": failures,
        "errors": 1,
    }
    assert len(suite.findall("testcase")) == 5
    assert len(suite.findall("testcase/failure")) == failures
    (failed, *_) = suite.findall("testcase/failure")
    assert failed.attrib["type"] == "AL202"
    assert "bad.yaml:6:18: error[AL202]" in (failed.text or "")
    assert [case.attrib["name"] for case in suite if len(case) == 0] == ["good.yaml", "odd\ufffd.yaml"]


def test_numbers_by_code(call: Call, here: Path) -> None:
    """`--statistics` counts instead of showing."""
    done = call("validate", "--statistics", "good.yaml", "bad.yaml")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[:2] == [
        "  1  AL202  error        unknown-dependency",
        "  1  AL205  warning      repeated-dependency",
    ]
    assert lines[2] == "2 files checked: 1 error, 1 warning"
    assert not re.search(r"\^", done.out)


@pytest.mark.parametrize("arguments", [["bad.yaml"], ["--diff", "bad.yaml"], ["--format", "github", "bad.yaml"]])
def test_exit_zero(call: Call, here: Path, arguments: list[str]) -> None:
    """Findings are shown all the same; what can't be read still counts."""
    done = call("validate", "--exit-zero", *arguments)
    assert done.code == 0
    assert done.out
    assert call("validate", "--exit-zero", "nowhere.yaml").code == 2
