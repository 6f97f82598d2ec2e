"""Labels that a prompt demands: told where it is clear, and nowhere else."""

from __future__ import annotations

import pytest

from agentloom.analysis.asked import demanded_labels


@pytest.mark.parametrize(
    ("prompt", "labels"),
    [
        ("Classify as billing or technical. Answer with one word.", ("billing", "technical")),
        ("Classify the ticket as billing, technical, or other. Reply with one word only.\n{state.t}", ("billing", "technical", "other")),
        ("Answer with exactly one of: bug, feature, question.", ("bug", "feature", "question")),
        ("Reply with one of `low`, `high` or `critical`", ("low", "high", "critical")),
        ("Is it clear? Answer with one word, yes or no.", ("yes", "no")),
        ("Answer with one word: yes/no", ("yes", "no")),
        ("Say yes or no, nothing else.", ()),
        ("Write about cats or dogs.", ()),
        ("Is it billing or technical?", ()),
        ("Answer with one word.", ()),
        ("Classify as billing or technical. Or say yes or no. Answer with one word.", ()),
        ("Choose one of: not sure, quite sure. Answer with one word.", ()),
        ("Answer with one word: {state.a} or {state.b}", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_what_is_demanded(prompt: str, labels: tuple[str, ...]) -> None:
    """One list of single words in a sentence that asks, in a prompt that wants one of them."""
    assert demanded_labels(prompt) == labels


def test_a_long_prompt_takes_no_time() -> None:
    """Linear: a hundred thousand words, and lists that never end."""
    assert demanded_labels("Answer with one word: " + "a, " * 50_000) == ()
    assert demanded_labels("answer one word " * 20_000) == ()
