"""A message stays one readable line, whatever the user wrote."""

from __future__ import annotations

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.diagnostics import LONGEST_WORD, in_one_line
from agentloom.text import Source


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("step `zz` is not defined; did you mean `z`?", "step `zz` is not defined; did you mean `z`?"),
        ("`two\nlines` is no step type", "`two lines` is no step type"),
        ("`a\tb\x07c` is no key", "`a b c` is no key"),
        (f"`{'x' * 500}` is no key; remove it", f"`{'x' * (LONGEST_WORD - 1)}…` is no key; remove it"),
        ("`a` and " * 40, "`a` and " * 40),
        ("an odd ` in\nit", "an odd ` in it"),
    ],
)
def test_one_line(message: str, shown: str) -> None:
    """Short words stay as they are; breaks become blanks; a whole prompt is cut."""
    assert in_one_line(message) == shown


def test_a_prompt_in_the_place_of_a_type() -> None:
    """A line that was lost makes a prompt part of the type: the message doesn't repeat all of it."""
    text = f"name: w\nsteps:\n  - id: a\n    type: llm_call\n      {'word ' * 200}\n\n      more\n"
    (found,) = [d for d in analyze(Source("x.loom.yaml", text), Context()).diagnostics if d.code == "AL103"]
    assert "\n" not in found.message
    assert len(found.message) < 300
