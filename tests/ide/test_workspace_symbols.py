"""Names of all files by a few letters."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.workspace_symbols import FoundSymbol, best, match, symbols_of
from agentloom.text import Source
from tests.analysis.checking import A, H, check

TWO = (
    check(
        "name: triage\nagents: {scout: ./s.agent.yaml}\nsteps:\n  - id: classify\n    type: llm_call\n  - id: billing_reply\n"
        "  - id: sub\n    type: subworkflow\n    workflow_inline: {name: inner, steps: [{id: quote, type: tool}]}\n"
    ),
    analyze(Source("/x/finder.agent.yaml", "system_prompt: hi\n"), Context(), None, "agent"),
)


def found(query: str, documents: Iterable[WorkflowDocument] = TWO, most: int = 500) -> list[FoundSymbol]:
    named = ((symbol.name, symbol) for document in documents for symbol in symbols_of(document))
    return best(query, named, most)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["triage", "scout", "classify", "billing_reply", "sub", "inner", "quote", "finder"]),
        ("class", ["classify"]),
        ("REPLY", []),
        ("reply", ["billing_reply"]),
        ("brp", ["billing_reply"]),
        ("cf", ["classify"]),
        ("fi", ["finder"]),
        ("i e", ["triage", "inner", "finder", "billing_reply"]),
        ("zz", []),
        ("quote", ["quote"]),
    ],
)
def test_what_a_query_finds(query: str, names: list[str]) -> None:
    """Steps, agents and workflows, also those written in place; the closest first."""
    assert [symbol.name for symbol in found(query)] == names


def test_where_they_are() -> None:
    """A name's own place, and the workflow it belongs to."""
    (quote,) = found("quote")
    source = TWO[0].source
    assert (quote.container, quote.kind) == ("inner", "step")
    assert source.text[slice(*quote.location.span)] == "quote"
    (agent,) = found("scout")
    assert (agent.container, agent.kind, source.text[slice(*agent.location.span)]) == ("triage", "agent", "scout")


def test_the_number_of_answers_is_limited() -> None:
    """The best of many are kept."""
    text = H + "".join(A.replace("id: a", f"id: step_{n}") for n in range(60))
    assert [symbol.name for symbol in found("step_7", [check(text)], 5)] == [
        "step_7",
        "step_17",
        "step_27",
        "step_37",
        "step_47",
    ]


def test_case_counts_only_when_written() -> None:
    """Capitals in the query are meant; whole names are best, then beginnings, then beginnings of words."""
    assert match("Ab", "ab") is None
    ranks = [match("ab", name) for name in ("AB", "abc", "x_ab", "xab", "a_b")]
    assert None not in ranks
    assert ranks == sorted(ranks)  # type: ignore[type-var]
