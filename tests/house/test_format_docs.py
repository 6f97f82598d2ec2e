"""The pages on the format say what the program does: their tables are tried, their example runs."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agentloom.cli.app import app
from agentloom.language.expression import evaluate
from agentloom.language.rendering import render
from agentloom.model.catalogue import catalogue
from agentloom.providers.recording import Entry
from agentloom.steps.table import EXECUTORS
from agentloom.syntax.reader import read
from agentloom.syntax.values import plain_value
from scripts import format_pages
from tests.conftest import ROOT
from tests.house.documents import blocks

RECORDINGS = ROOT / "docs" / "recordings.md"
PAIR = re.compile(r"^\| `(?P<left>[^`]+)` \| `(?P<right>[^`]*)` \|$", re.MULTILINE)


def part(heading: str) -> str:
    """Return a section of the page on workflow files."""
    text = format_pages.PAGE.read_text(encoding="utf-8")
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def state() -> Any:
    """Return the state that the page's examples read."""
    (block,) = [block for block in blocks(format_pages.PAGE) if block.text.startswith("ticket:")]
    return plain_value(read(block.text).root)


def pairs(heading: str) -> list[tuple[str, str]]:
    """Return the rows of a section's table."""
    found = [(hit["left"], hit["right"]) for hit in PAIR.finditer(part(heading))]
    assert len(found) >= 10
    return found


@pytest.mark.parametrize(("template", "text"), pairs("Templates"))
def test_templates_become_what_the_page_says(template: str, text: str) -> None:
    """Each row of the table."""
    assert render(template, state()) == text


@pytest.mark.parametrize(("expression", "value"), pairs("Expressions"))
def test_expressions_have_the_value_that_the_page_says(expression: str, value: str) -> None:
    """Each row of the table."""
    assert evaluate(expression, {**state(), "steps": {}}) is json.loads(value)


def test_the_table_of_types_has_all_of_them() -> None:
    """In order; and each has an executor."""
    rows = re.findall(r"^\| `(\w+)` \| .* \|$", part("Steps by type"), re.MULTILINE)
    assert rows == list(catalogue().steps)
    assert set(rows) == {executor.type for executor in EXECUTORS}


def test_every_block_and_key_is_on_the_page() -> None:
    """Each block has its section, each of its keys a row there."""
    for block in catalogue().blocks.values():
        section = part(format_pages.title(block))
        own = set(block.fields) - (set(catalogue().common) if block.tag else set())
        assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == own, block.name
    assert set(re.findall(r"^\| `(\w+)` \|", part(format_pages.COMMON), re.MULTILINE)) == set(catalogue().common)


@pytest.mark.parametrize("option", [(), ("--mock-responses", "replies.json")])
def test_the_example_of_a_recording_runs(
    option: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named either way, to the result that the page tells."""
    monkeypatch.chdir(tmp_path)
    (flow,) = [block for block in blocks(RECORDINGS) if block.words == ("yaml",)]
    (replies,) = [block for block in blocks(RECORDINGS) if block.words == ("json",)]
    named = flow.text.replace("  provider: mock\n", "  provider: mock\n  responses_file: replies.json\n")
    (tmp_path / "flow.loom.yaml").write_text(flow.text if option else named, encoding="utf-8")
    (tmp_path / "replies.json").write_text(replies.text, encoding="utf-8")
    done = CliRunner().invoke(app, ["run", "flow.loom.yaml", "--json", *option])
    assert done.exit_code == 0, done.stderr
    assert "warning" not in done.stderr.lower()
    result = json.loads(done.stdout)
    assert result["final_state"]["draft"] == "Tea is patience in a cup."
    assert result["final_state"]["verdict"] == "Yes."
    told = re.search(r"ends\nwith `verdict: Yes\.`, (\d+) tokens and a cost of \$([\d.]+)\.\n", RECORDINGS.read_text())
    assert told is not None
    assert (result["total_tokens"], result["total_cost_usd"]) == (int(told[1]), pytest.approx(float(told[2])))


def test_the_page_on_recordings_names_every_field() -> None:
    """Those of an entry, no others."""
    text = RECORDINGS.read_text(encoding="utf-8").split("| field of a reply |", 1)[1].split("\n\n", 1)[0]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == {field.name for field in fields(Entry)}
