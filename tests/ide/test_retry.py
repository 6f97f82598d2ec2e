"""The retry block: what is added, in every style, and where it isn't offered."""

from __future__ import annotations

import json

import pytest

from agentloom.diagnostics import apply_edits
from agentloom.ide.offers import offers
from agentloom.ide.results import Refusal, TextEdits
from agentloom.model.catalogue import catalogue
from agentloom.text import Span
from tests.analysis.checking import A, H, check
from tests.ide.marked import cut
from tests.ide.variants import VARIANTS

BLOCK = """\
    retry:
      max_retries: 3
      backoff_base: 2
      backoff_max: 60
      jitter: true
      retryable_status_codes: [429, 500, 502, 503, 504]
"""
FLOW = BLOCK.strip().replace("retry:\n      ", "retry: {").replace("\n      ", ", ") + "}"


def added(marked: str) -> str | None:
    """Return a text with the block added to the step under the cursor; None when that isn't offered."""
    text, offset = cut(marked)
    found = [offer for offer in offers(check(text), Span(offset, offset), ("rewrite",)) if "retry" in offer.title]
    if not found:
        return None
    (change,) = found[0].changes()
    assert isinstance(change, TextEdits)
    return apply_edits(text, change.edits)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("marked", "wanted"),
    [
        (H + "  - i¦d: a\n    type: llm_call\n    prompt: hi # x\n", H + A.replace("hi", "hi # x") + BLOCK),
        (H + "  - id: a\n    type: llm_call\n    prompt: h¦i", H + A + BLOCK.rstrip()),
        (
            H
            + "  - id: a\n    type: llm_call\n    prompt: |\n      on¦e\n\n      two\n\n"
            + A.replace("id: a", "id: b"),
            H + "  - id: a\n    type: llm_call\n    prompt: |\n      once\n\n      two\n" + BLOCK + "\n",
        ),
        (
            H + "  - id: a\n    type: llm_call\n    prompt: |+\n      on¦e\n\n",
            H + "  - id: a\n    type: llm_call\n" + BLOCK + "    prompt: |+\n      once\n\n",
        ),
        (
            H + "  - {id: a, type: llm_call, prompt: h¦i} # x\n",
            H + "  - {id: a, type: llm_call, prompt: hi, " + FLOW + "} # x\n",
        ),
        (
            H + "  - {\n      id: a, type: llm_call,\n      prompt: h¦i,\n    }\n",
            H + "  - {\n      id: a, type: llm_call,\n      prompt: hi, " + FLOW + ",\n    }\n",
        ),
        (H.replace("  ", "") + "- id: ¦a\n  type: tool\n  tool_name: x\n", ""),
        ("config: {max_retries: 5}\n" + H + A.replace("hi", "h¦i"), BLOCK.replace("3", "5", 1)),
    ],
)
def test_where_it_goes(marked: str, wanted: str, variant: str) -> None:
    """Behind the last field, in the step's indentation or its braces, in the file's line ends; the default is `config`'s."""
    after = added(VARIANTS[variant](marked))
    assert after is not None
    wanted = VARIANTS[variant](wanted)
    assert wanted.removeprefix("\ufeff").removeprefix("# 😀 é ✓\n").replace("once", "one") in after.replace(
        "once", "one"
    )
    step = check(after).steps[0]
    block = catalogue().blocks["retry"].fields
    data = step.facts.data["retry"]
    assert list(data) == list(block)
    for name, field in block.items():
        assert data[name] == (field.default if field.default is not None else data["max_retries"])
    assert json.dumps(data)


@pytest.mark.parametrize(
    "marked",
    [
        H + A + "    retry: ¦{}\n",
        H + "  - <<: &x {retry: {max_retries: 1}}\n    id: ¦a\n    type: llm_call\n    prompt: hi\n",
        H + A + "  - id: ¦r\n    type: router\n    default: a\n",
        H + "  - id: ¦g\n    type: approval_gate\n",
        "config: {max_retries: 0}\n" + H + A.replace("hi", "h¦i"),
        H + "  - &s {id: a, type: llm_call, prompt: hi}\n  - ¦*s\n",
        H + "  - id: ¦a\n    type: nope\n",
        "na¦me: w\n" + H[8:] + A,
        "¦",
    ],
)
def test_where_it_is_not_offered(marked: str) -> None:
    """Where there is one, where it would never be used, where the file asks for no retries, and where there is no step."""
    assert added(marked) is None


def test_a_workflow_in_place() -> None:
    """The step of a child takes the child's settings."""
    inner = "    workflow_inline:\n      name: k\n      config: {max_retries: 2}\n      steps:\n"
    step = "        - id: q\n          type: llm_call\n          prompt: h¦i\n"
    after = added(H + "  - id: s\n    type: subworkflow\n" + inner + step)
    assert after is not None
    assert "          prompt: hi\n          retry:\n            max_retries: 2\n" in after


def test_a_run_too_short_for_it() -> None:
    """Waits that can't fit into the run's time are no help: refused, with what would be said about them."""
    with pytest.raises(Refusal, match="AL504"):
        added("config: {timeout: 5}\n" + H + A.replace("hi", "h¦i"))


def test_a_broken_line_elsewhere() -> None:
    """A step beside broken text takes the block all the same."""
    after = added(H + "  - id: b\n    pro\n" + A.replace("hi", "h¦i"))
    assert after == H + "  - id: b\n    pro\n" + A + BLOCK
