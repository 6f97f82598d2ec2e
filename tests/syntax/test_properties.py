"""Whatever the text: reading never raises, everything lies inside the text, nothing is broken without a word."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from agentloom.diagnostics import apply_edits
from agentloom.syntax.aliases import walk
from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.nodes import Mapping, Scalar, Sequence
from agentloom.syntax.pieces import find_body
from agentloom.syntax.reader import Reader, read
from agentloom.syntax.scalars import places
from agentloom.syntax.values import plain_value
from tests.syntax.support import check_ranges, documents, drawn

ROOT = Path(__file__).resolve().parents[2]
FILES = [path.read_text("utf-8") for path in sorted(ROOT.glob("examples/*.yaml"))[:6]]
BITS = [
    '"', "'", "[", "]", "{", "}", ":", ": ", " #", "\t", "- ", "\n", "  ", "*a", "&a ", "!", "|", ">", "%", "@", "`", ",", "\r", "\\", "\ufeff",
    "\0", "\u2028", "?", "=", "{state.x} rest", "key", "key:v", "\n---\n", "\n...\n", "\n- x", "\n    pro\n", "\npro\n", "<<: *s\n", "\n\t- x\n", "😀",
]  # fmt: skip


def check(text: str) -> None:
    """Hold a tree to what holds for all of them."""
    tree = read(text)
    nodes = list(walk(tree.root))
    for node in nodes:
        start, end = node.span
        assert 0 <= start <= end <= len(text)
        if isinstance(node, Scalar):
            assert node.raw == text[start:end]
            found = places(node)
            assert len(found.starts) == len(node.value)
            assert all(a <= b for a, b in pairwise(found.starts))
        elif isinstance(node, Mapping):
            assert all(start <= e.key.span.start and e.value.span.end <= end for e in node.entries)
        elif isinstance(node, Sequence):
            assert all(start <= item.span.start and item.span.end <= end for item in node.items)
    for placed in tree.steps:
        for node in walk(placed.node):
            if isinstance(node, Scalar):
                assert placed.unit.text[slice(*node.span)] == node.raw
                assert text[slice(*node.span.shift(placed.base))] == node.raw
    for finding in tree.findings:
        check_ranges(text, finding)
        for fix in finding.fixes:
            read(apply_edits(text, fix.edits))
    for comment in tree.comments:
        assert text[slice(*comment.span)] == comment.text
    plain_value(tree.root)


@st.composite
def mutated(draw: DrawFn) -> str:
    """A file, or a generated document, with a few changes of the kinds that typing makes."""
    text = draw(st.sampled_from(FILES) | documents())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            text = text[:at] + text[at + draw(st.integers(1, 3)) :]
        elif kind == 1:
            text = text[:at] + draw(st.sampled_from(BITS)) + text[at:]
        elif kind == 2:
            text = text[:at]
        else:
            lines = text.split("\n")
            number = draw(st.integers(0, len(lines) - 1))
            if kind == 3:
                del lines[number]
            else:
                lines[number] = draw(st.sampled_from([" ", "  ", "\t", "- "])) + lines[number]
            text = "\n".join(lines)
    return text


@given(mutated(), st.sampled_from(["\n", "\n", "\r\n", "\r"]))
def test_mutated_documents(text: str, line_end: str) -> None:
    """Files under the hands of somebody who types."""
    check(text.replace("\n", line_end))


@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}'\"#&*!|>%@`,? \n\t\\", max_size=60))
def test_any_text(text: str) -> None:
    """Texts of any characters, lone surrogates included."""
    check(text)


@given(st.text(alphabet="a:-[]{}'\" \n", max_size=40))
def test_nothing_is_broken_without_a_word(text: str) -> None:
    """A text that a parser refuses has a finding; a text without findings is the same to one that reads it whole."""
    body = find_body(text)
    composed = compose(text[: body.end])
    tree = read(text)
    if isinstance(composed, Composed):
        assert {f.code for f in tree.findings} <= {"AL002", "AL003", "AL004", "AL007"}
        empty = isinstance(composed.node, Scalar) and not composed.node.raw  # `---` and nothing: no node at all
        if body.extra < 0 and not empty:
            assert drawn(tree.root) == drawn(composed.node)
    else:
        assert tree.findings


@pytest.mark.parametrize("text", FILES[:2], ids=["first", "second"])
def test_typed_letter_by_letter(text: str) -> None:
    """Every prefix of a file, read by one reader as it grows, gives what a fresh one gives."""
    reader = Reader()
    for end in range(0, min(len(text), 1_200), 7):
        kept = reader.read(text[:end])
        assert kept.findings == read(text[:end]).findings
        for finding in kept.findings:
            check_ranges(kept.text, finding)
