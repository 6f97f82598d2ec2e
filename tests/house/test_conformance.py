"""The table of behaviours names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGES = ("docs/workflows-conformance.md", "docs/reliability-conformance.md", "tests/README.md")
HEADINGS = ("behaviour", "case", "promise")
ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>\w+)`")


def names_of_tests(path: Path) -> set[str]:
    """Return the names of a file's tests, those in classes too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def missing(text: str, root: Path) -> list[str]:
    """Return the rows of a table that name no test, or one that doesn't exist."""
    found = []
    for row in ROW.finditer(text):
        if row["what"] in HEADINGS or row["tests"] == "*later*":
            continue
        named = list(NAMED.finditer(row["tests"]))
        if not named:
            found.append(f"{row['what']}: no test")
        for test in named:
            path = root / test["file"]
            if not path.exists() or test["name"] not in names_of_tests(path):
                found.append(f"{row['what']}: {test.group()} doesn't exist")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_behaviour_and_case_has_its_test(root: Path, page: str) -> None:
    """Each row names at least one test, and each named test is there."""
    text = (root / page).read_text(encoding="utf-8")
    assert missing(text, root) == []
    assert len(list(ROW.finditer(text))) == text.count("\n| ") > 40, "a row that isn't read"


def test_the_tests_that_other_pages_name_exist(root: Path) -> None:
    """`docs/architecture.md` and CONTRIBUTING name files of tests: they are there."""
    named = set()
    for page in ("docs/architecture.md", "CONTRIBUTING.md", "README.md", "docs/json.md"):
        named |= set(re.findall(r"`(tests/[\w/]+\.py)`", (root / page).read_text(encoding="utf-8")))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (root / name).is_file()] == []


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("TODO", "no test"),
        ("`tests/house/test_conformance.py::test_gone`", "doesn't exist"),
        ("`tests/house/gone.py::test_every_behaviour_and_case_has_its_test`", "doesn't exist"),
    ],
)
def test_a_row_without_its_test_is_noticed(root: Path, cell: str, says: str) -> None:
    """An empty row, a renamed test and a moved file are noticed."""
    (found,) = missing(f"| it works | {cell} |", root)
    assert says in found
