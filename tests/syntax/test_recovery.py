"""What the reader says about broken texts, what it can still read of them, and that its cures cure: `recovery.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from agentloom.diagnostics import apply_edits
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.reader import Reader, read
from agentloom.syntax.values import plain_value
from tests.syntax.support import check_ranges

CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(
    (Path(__file__).parent / "recovery.yaml").read_text("utf-8")
)
IDS = [case["name"] for case in CASES]
LINE_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


def said(text: str, pure: bool = False) -> list[list[str]]:
    """Return what is said about a text: code, the text it stands on, message."""
    return [[f.code, text[slice(*f.span)], f.message] for f in Reader(pure).read(text).findings]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_says_what_is_wrong(case: dict[str, Any]) -> None:
    """Each fault is reported at its place in plain words, and nothing else is."""
    assert said(case["text"]) == case["says"]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_reads_the_rest(case: dict[str, Any]) -> None:
    """Everything around the fault is still there, every scalar with the source it was read from."""
    tree = read(case["text"])
    assert plain_value(tree.root) == case["data"]
    for node in walk(tree.root):
        start, end = node.span
        assert 0 <= start <= end <= len(case["text"])
        if isinstance(node, Scalar):
            assert node.raw == case["text"][start:end]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_cures_cure(case: dict[str, Any]) -> None:
    """Each fix by itself takes its finding away and brings no other; all first fixes give the mended text."""
    text = case["text"]
    findings = read(text).findings
    for finding in findings:
        check_ranges(text, finding)
        for fix in finding.fixes:
            after = [f.message for f in read(apply_edits(text, fix.edits)).findings]
            before = [f.message for f in findings]
            assert after.count(finding.message) < before.count(finding.message), fix.title
    mended = text
    for _ in range(10):
        fixes = [finding.fixes[0] for finding in read(mended).findings if finding.fixes]
        if not fixes:
            break
        mended = apply_edits(mended, fixes[0].edits)
    assert mended == case["mended"]


@pytest.mark.parametrize("line_end", LINE_ENDS.values(), ids=LINE_ENDS.keys())
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "bom"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_line_ends_and_marks_change_nothing(case: dict[str, Any], mark: str, line_end: str) -> None:
    """With CRLF, CR and a byte order mark: the same findings on the same words, the same values; fixes keep the line end."""
    text = mark + case["text"].replace("\n", line_end)
    assert said(text) == case["says"]
    tree = read(text)
    assert plain_value(tree.root) == case["data"]
    for finding in tree.findings:
        for fix in finding.fixes:
            fixed = apply_edits(text, fix.edits)
            assert fixed.count("\n") == fixed.count(line_end) * (line_end != "\r")
            assert fixed.count("\r") == fixed.count(line_end) * (line_end != "\n")


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_pure_parser_says_the_same(case: dict[str, Any]) -> None:
    """Where the compiled parser is missing, the answers are the same."""
    assert said(case["text"], pure=True) == case["says"]
    assert plain_value(Reader(pure=True).read(case["text"]).root) == case["data"]
