"""Did-you-mean."""

from __future__ import annotations

import pytest

from agentloom.similar import closest, ranking


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("dependson", ["depends_on", "id"], "depends_on"),
        ("outptu", ["output", "id"], "output"),
        ("budgt_usd", ["budget_usd", "timeout"], "budget_usd"),
        ("opnai", ["openai", "ollama"], "openai"),
        ("zz", ["z", "a"], "z"),
        ("Prompt", ["prompt"], "prompt"),
        ("quite", ["different", "words"], None),
        ("", ["a"], None),
        ("a", [], None),
    ],
)
def test_closest(word: str, known: list[str], near: str | None) -> None:
    """The nearest word, if any is near enough."""
    assert closest(word, known) == near


def test_ranked_by_similarity() -> None:
    """The most similar comes first; equal ones in their given order."""
    assert ranking("sumarize", ["summary", "summarize", "sum"])[0] == "summarize"
    assert ranking("ab", ["abx", "aby"]) == ["abx", "aby"]


def test_long_lists_stay_quick() -> None:
    """Only so many words are compared."""
    assert closest("needle", [f"hay{i}" for i in range(5_000)] + ["needle"]) is None
