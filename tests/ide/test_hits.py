"""What stands at a place of a text, by structure."""

from __future__ import annotations

import pytest

from agentloom.ide.hits import hit_at
from tests.ide.marked import opened

HEAD = "name: w\nsteps:\n"
STEP = "  - id: a\n    type: llm_call\n    prompt: hi\n"


@pytest.mark.parametrize(
    ("marked", "path", "is_key", "block", "field", "word"),
    [
        ("na¦me: w\nsteps: []\n", ("name",), True, "workflow", "name", "name"),
        ("name: w¦\nsteps: []\n", ("name",), False, "workflow", "name", "w"),
        ("config:\n  model: g¦pt\nsteps: []\n", ("config", "model"), False, "config", "model", "gpt"),
        (HEAD + STEP.replace("prompt", "pro¦mpt"), ("prompt",), True, "llm_call_step", "prompt", "prompt"),
        (HEAD + STEP + "    retry: {max_retries: 2¦}\n", ("retry", "max_retries"), False, "retry", "max_retries", "2"),
        (HEAD + STEP + "    depends_on: [b, ¦c]\n", ("depends_on", 1), False, "llm_call_step", "depends_on", "c"),
        (HEAD + STEP + "    depends_on:\n    - ¦b\n", ("depends_on", 0), False, "llm_call_step", "depends_on", "b"),
        (HEAD + STEP + "    tool_choice: {na¦me: x}\n", ("tool_choice", "name"), True, "tool_choice", "name", "name"),
        ("state:\n  x: {y: ¦1}\nsteps: []\n", ("state", "x", "y"), False, None, None, "1"),
    ],
)
def test_what_stands_there(
    marked: str, path: tuple[object, ...], is_key: bool, block: str | None, field: str | None, word: str
) -> None:
    """The innermost node, the way to it, and what the catalogue calls it."""
    document, offset = opened(marked)
    hit = hit_at(document, offset)
    assert hit is not None
    assert (hit.path, hit.is_key) == (path, is_key)
    assert (hit.block and hit.block.name, hit.field and hit.field.name) == (block, field)
    assert document.source.text[hit.span.start : hit.span.end] == word


def test_a_workflow_written_in_place_is_a_document_of_its_own() -> None:
    """Inside `workflow_inline` the steps are those of the child."""
    inner = "      name: k\n      steps:\n        - id: q\n          type: tool\n          tool_na¦me: echo\n"
    document, offset = opened(HEAD + "  - id: s\n    type: subworkflow\n    workflow_inline:\n" + inner)
    hit = hit_at(document, offset)
    assert hit is not None
    assert hit.step is not None
    assert (hit.step.id, hit.path) == ("q", ("tool_name",))
    assert hit.document is document.children["s"].document


def test_nothing_stands_in_blank_places() -> None:
    """Comments and blank lines outside every node give nothing."""
    document, offset = opened("# a ¦comment\nname: w\nsteps: []\n")
    assert hit_at(document, offset) is None
