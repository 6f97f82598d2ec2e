"""Two writers of one key: told only where the order is known."""

from __future__ import annotations

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.text import Source
from tests.analysis.checking import H, check

TEXT = """\
name: w
steps:
  - {{id: r, type: router, conditions: [{{expression: state.x, target: a}}], default: b}}
  - {{id: a, type: llm_call, prompt: hi, output: x, depends_on: [{a}]}}
  - {{id: b, type: llm_call, prompt: hi, output: x, depends_on: [{b}]}}
"""


@pytest.mark.parametrize(
    ("a", "b", "codes"),
    [
        ("r", "r", []),
        ("r", "rr", ["AL202"]),
        ("rr", "rr", ["AL202", "AL202"]),
    ],
)
def test_a_misspelled_dependency_is_no_collision(a: str, b: str, codes: list[str]) -> None:
    """The one mistake is told once; a step whose dependency is unknown could stand in any layer."""
    document = analyze(Source("x.loom.yaml", TEXT.format(a=a, b=b)), Context())
    assert [d.code for d in document.diagnostics if d.code in ("AL202", "AL404")] == codes


def test_output_and_conversation_are_two_places() -> None:
    """What the engine refuses is an error, whatever `strict_outputs` says; beside each other they are fine."""
    step = "  - {{id: a, type: llm_call, prompt: hi, conversation: chat, output: {}}}\n"
    for output, codes in (("chat", ["AL404"]), ("chat.answer", ["AL404"]), ("answer", [])):
        document = check(H + step.format(output))
        assert [found.code for found in document.diagnostics if found.severity == 1] == codes, output
