"""Below the dash of a step that isn't finished: its own keys come first, since many editors begin a new line there."""

from __future__ import annotations

import pytest

from agentloom.diagnostics import apply_edits
from agentloom.ide.completion.complete import complete
from agentloom.ide.completion.items import filled
from tests.ide.marked import cut, opened

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"


def after(marked: str, label: str) -> str:
    """Return the text after the first item of that name is chosen."""
    item = next(item for item in complete(*opened(marked)) if item.label == label)
    text = filled(item.edit.text) if item.snippet else item.edit.text
    return apply_edits(cut(marked)[0], [item.edit._replace(text=text), *item.additional])


# (what is typed behind H, the label, the text afterwards)
UNFINISHED = [
    ("  - id: b\n  ¦", "type", "  - id: b\n    type: "),
    ("  - id: b\n  ty¦\n", "type", "  - id: b\n    type: \n"),
    (A + "  - id: b\n  ¦\n" + A.replace("id: a", "id: c"), "type", A + "  - id: b\n    type: \n" + A.replace("id: a", "id: c")),
    ("  - type: tool\n  to¦", "tool_name", "  - type: tool\n    tool_name: "),
    (A + "  - id: b\n  dep¦", "depends_on", A + "  - id: b\n    depends_on:\n      - "),
    ("  -   id: b\n  ¦", "type", "  -   id: b\n      type: "),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "label", "text"), UNFINISHED)
def test_keys_of_the_step_above(typed: str, label: str, text: str) -> None:
    """What is chosen stands where the keys of the step stand, and nothing is offered before these."""
    found = complete(*opened(H + typed))
    assert found[0].kind == "key"
    assert not any(item.kind == "key" and item.edit.text.startswith("- ") for item in found)
    assert after(H + typed, label) == H + text


def test_a_new_step_can_still_begin_there() -> None:
    """Whole steps are offered below the keys."""
    assert after(H + "  - id: b\n  ¦", "llm_call step").startswith(H + "  - id: b\n  - id: ")


@pytest.mark.parametrize(
    "typed", [A + "  ¦", "  - id: b\n\n  ¦", "  - id: b\n  - ¦", "  - id: b\n    retry:\n      jitter: true\n  ¦"]
)
def test_elsewhere_a_new_step_begins(typed: str) -> None:
    """Below a whole step, behind an empty line, behind a dash, and below what isn't the step's own key."""
    found = complete(*opened(H + typed))
    assert found[0].label == "llm_call step"
