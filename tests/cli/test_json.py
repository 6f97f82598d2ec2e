"""Output for machines holds to the schemas that `docs/json.md` gives, and says the same as the text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentloom.cli.positions import place
from agentloom.text import LineTable
from tests.cli.conftest import ROOT, Call

BLOCK = re.compile(r"<!-- schema: (?P<name>\w+) -->\n```json\n(?P<body>.*?)\n```", re.DOTALL)
EMOJI = 'name: w\nsteps:\n  - {id: a, type: llm_call, prompt: "😀é {state.nope."}\n  - {id: b, type: llm_cal}\n'


def schema(name: str) -> dict[str, Any]:
    """Return a schema from the documentation."""
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    found = {block["name"]: json.loads(block["body"]) for block in BLOCK.finditer(text)}
    checked = found[name]
    jsonschema.Draft7Validator.check_schema(checked)
    return dict(checked)


def report(call: Call, *arguments: str, **more: Any) -> dict[str, Any]:
    """Return what `validate --format json` prints, held to its schema."""
    done = call("validate", "--format", "json", *arguments, **more)
    found = json.loads(done.out)
    jsonschema.validate(found, schema("validate"), jsonschema.Draft7Validator)
    return dict(found)


def test_files_full_of_mistakes(call: Call) -> None:
    """Every finding of every file, hints too."""
    found = report(call, str(ROOT / "docs" / "mistakes"), "--severity", "hint")
    assert len(found["diagnostics"]) > 10
    assert found["summary"]["files"] == len(list((ROOT / "docs" / "mistakes").glob("*.yaml")))
    assert any(d["fix"] for d in found["diagnostics"])
    assert any(d["related"] for d in found["diagnostics"])


@pytest.mark.parametrize(
    "text", ["", "\ufeff", "- a\n", "a: [\n", "\ufeffname: w\nsteps: 1\n", EMOJI, EMOJI.replace("\n", "\r\n")]
)
def test_odd_files(call: Call, text: str) -> None:
    """Empty files, byte order marks, broken text, emoji: places are always inside the text, and on one line."""
    lines = LineTable(text)
    last_line, _ = place(lines, len(text))
    for found in report(call, "-", "--severity", "hint", stdin=text.encode())["diagnostics"]:
        start, end = (found["line"], found["column"]), (found["end_line"], found["end_column"])
        assert start <= end
        assert found["line"] == found["end_line"] <= last_line
        width = lines.line_span(found["line"] - 1)
        assert found["end_column"] <= width.end - width.start + 1


def test_nothing_found_is_a_report_too(call: Call, tmp_path: Path) -> None:
    """The object is printed whatever the exit code; messages about the call are on standard error."""
    found = call("validate", "--format", "json", str(tmp_path))
    assert found.code == 3
    assert json.loads(found.out)["summary"] == {"files": 0, "errors": 0, "warnings": 0, "informations": 0, "hints": 0}
    found = call("validate", "--format", "json", str(tmp_path / "gone"))
    assert found.code == 2
    assert json.loads(found.out)["diagnostics"] == []


def test_columns_count_code_points_and_edits_apply(call: Call) -> None:
    """An emoji before the fault is one column; carrying out the edits by line and column gives the cured text."""
    found = {d["code"]: d for d in report(call, "-", stdin=EMOJI.encode())["diagnostics"]}
    lines = EMOJI.splitlines(keepends=True)
    assert lines[2][found["AL304"]["column"] - 1 :].startswith("{state.nope.")
    (edit,) = found["AL103"]["fix"]["edits"]
    line = lines[edit["line"] - 1]
    assert line[edit["column"] - 1 : edit["end_column"] - 1] == "llm_cal"
    assert edit["text"] == "llm_call"


def test_related_places_in_other_files(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have that file's name and places."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "child.loom.yaml").write_text("name: c\n\n\nsteps:\n  - {id: a, type: llm_cal}\n", encoding="utf-8")
    text = "name: w\nsteps:\n  - {id: a, type: subworkflow, workflow_path: child.loom.yaml}\n"
    found = report(call, "-", "--stdin-filename", "w.loom.yaml", stdin=text)["diagnostics"]
    (broken,) = [d for d in found if d["code"] == "AL702"]
    assert [(r["path"], r["line"]) for r in broken["related"]] == [("child.loom.yaml", 5)]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_json_whatever_the_terminal_takes(process: Call, encoding: str) -> None:
    """Characters that the encoding lacks are escaped, so the JSON stays JSON."""
    done = process("validate", "-", "--format", "json", stdin=EMOJI.encode(), PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert json.loads(done.out)["summary"]["errors"] == 2
    if encoding != "utf-8":
        assert done.out.isascii()
