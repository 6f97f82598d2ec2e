"""Findings inside a text that lacks its quotes stand where the text stands, not where it would stand in quotes."""

from __future__ import annotations

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.text import Source

WRITTEN = [
    ("prompt: Classify: {state.x} <{>", "AL304"),
    ("prompt: one: <{}> two", "AL304"),
    ("prompt: '<{}>': \"x\" it's", "AL304"),
    ('prompt: "one" <{}> two', "AL304"),
    ("prompt: @one\\t <{}> two", "AL304"),
    ("prompt: a: b\n      c: <{}> d", "AL304"),
    ("expression: <lambda>: 1", "AL302"),
]


@pytest.mark.parametrize(("line", "code"), WRITTEN)
def test_a_finding_inside_mended_text_is_in_its_place(line: str, code: str) -> None:
    """The part between `<` and `>` is what the finding is about."""
    head = "name: w\nsteps:\n"
    if line.startswith("expression"):
        start = "  - id: r\n    type: router\n    default: a\n    conditions:\n      - target: a\n        "
    else:
        start = "  - id: r\n    type: llm_call\n    "
    begin, end = line.index("<"), line.index(">") - 1
    text = head + start + line.replace("<", "").replace(">", "") + "\n"
    document = analyze(Source("file:///w.yaml", text, 1), Context())
    found = [d.span for d in document.diagnostics if d.code == code]
    base = len(head + start)
    assert [(span.start - base, span.end - base) for span in found] == [(begin, end)]
