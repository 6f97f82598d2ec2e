"""Broken variants of every fixture: no check crashes, every range is on one line, and what is found good can be built."""

from __future__ import annotations

import random

import pytest

from tests.rule_fixtures import all_fixtures, analyze_fixture, read_fixture

# What is put into a text: YAML's own signs, odd numbers, tags, breaks, wide and forbidden characters; also nothing, which removes.
BITS = (
    "", "", "", "!x ", "!!str ", "!!int ", "!!null ", "!!binary aGk=", "&a ", "*a", "<<: ", "? ", "- ", "[", "]", "{", "}", ": ", ", ",
    "~", "null", "true", "yes", ".inf", ".nan", "0x1f", "1_0", "1e5", "1e400", "-0", "'", '"', "|\n", "\n  ", "\n    ", "\t", " #", "\\", "%",
    "@", "\u2028", "\ufeff", "😀", "\x00", "\r",
)  # fmt: skip
FIXTURES = all_fixtures("*.yaml")
EACH = 5


@pytest.mark.parametrize("chunk", range(8))
def test_mutations(chunk: int) -> None:
    """One to three changes each, from a fixed seed; a text that is still good gives a typed workflow."""
    rng = random.Random(chunk)
    for path in FIXTURES[chunk::8]:
        original = read_fixture(path)[0]
        for _ in range(EACH):
            text = original
            for _ in range(rng.choice((1, 1, 2, 3))):
                start = rng.randrange(len(text) + 1)
                end = min(len(text), start + rng.choice((0, 0, 0, 1, 2, 5)))
                text = text[:start] + rng.choice(BITS) + text[end:]
            document = analyze_fixture(path, text)
            for d in document.diagnostics:
                assert 0 <= d.span.start <= d.span.end <= len(text), (d, text)
                assert not {"\n", "\r"} & set(text[d.span.start : d.span.end]), (d, text)
            if document.ok and document.kind == "workflow":
                assert document.workflow.steps, text
