"""The pure parser gives the same nodes and places as the compiled one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from agentloom.syntax import backend
from agentloom.syntax.backend import Failure
from agentloom.syntax.compose import compose
from agentloom.syntax.reader import Reader
from tests.syntax.support import documents, drawn, line_ends, whole

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("examples/**/*.yaml"), *ROOT.glob("tests/fixtures/rules/*/*.yaml")])


def test_the_compiled_parser_is_here() -> None:
    """Otherwise the tests of this module compare the pure parser with itself."""
    assert backend.HAS_C


@given(documents(), line_ends())
def test_generated_documents(text: str, line_end: str) -> None:
    """Every generated document: both refuse it, or both give the same nodes."""
    text = text.replace("\n", line_end).partition("...")[0]
    compiled, pure = compose(text), compose(text, pure=True)
    if isinstance(compiled, Failure):
        assert isinstance(pure, Failure)
    else:
        assert not isinstance(pure, Failure), (text, pure)
        assert drawn(pure.node) == drawn(compiled.node)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_files_of_the_project(path: Path) -> None:
    """Examples and fixtures, broken ones too: the same findings and the same trees."""
    text = path.read_bytes().decode("utf-8")
    compiled, pure = Reader().read(text), Reader(pure=True).read(text)
    assert pure.findings == compiled.findings
    assert drawn(pure.root) == drawn(compiled.root)
    assert pure.comments == compiled.comments


def test_without_the_compiled_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the compiled parser is missing, reading needs no word about it."""
    text = "a: {url: https://x.y, q: why?}\nb: [1, 'two', *c]\n\nsteps:\n  - id: a\n    key:v\n"
    expected = Reader().read(text)
    monkeypatch.setattr(backend, "HAS_C", False)
    found = Reader().read(text)
    assert found.findings == expected.findings
    assert drawn(found.root) == drawn(expected.root)
    assert drawn(whole("a: b\tc\n").node) == drawn(whole("a: b\tc\n", pure=True).node)
