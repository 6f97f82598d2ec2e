"""Workflows, agents and steps of all files, found by a few letters of their name."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from agentloom.analysis.document import WorkflowDocument
from agentloom.ide.nested import written_in
from agentloom.ide.outline import SymbolKind
from agentloom.ide.results import Location
from agentloom.syntax.nodes import Mapping
from agentloom.text import Span

T = TypeVar("T")
MOST_FOUND = 500
"""Answers to one query; editors show far fewer."""


class FoundSymbol(NamedTuple):
    """One name of a workspace. ``container`` is the workflow that it belongs to."""

    name: str
    kind: SymbolKind
    container: str
    location: Location


def best(query: str, named: Iterable[tuple[str, T]], most: int = MOST_FOUND) -> list[T]:
    """Return what a query means, best first: of (name, value), the values whose names hold its letters in this order.

    Letter case counts only where the query has capitals. An empty query finds everything.
    """
    found = (
        (rank, number, value) for number, (name, value) in enumerate(named) if (rank := match(query, name)) is not None
    )
    return [value for _, _, value in heapq.nsmallest(most, found)]


def match(query: str, name: str) -> tuple[int, int] | None:
    """Return how well a name answers a query (smaller is better); None when it doesn't hold its letters in order."""
    wanted = "".join(query.split())
    if not wanted:
        return 0, 0
    text = name
    if wanted == wanted.lower():
        wanted, text = wanted.casefold(), name.casefold()
    if text == wanted:
        return 0, 0
    if text.startswith(wanted):
        return 1, len(text)
    at = text.find(wanted)
    if at >= 0:
        return (2 if not text[at - 1].isalnum() else 3), len(text)
    position = first = -1
    for letter in wanted:
        position = text.find(letter, position + 1)
        if position < 0:
            return None
        first = position if first < 0 else first
    return 4, position - first


def symbols_of(document: WorkflowDocument) -> Iterator[FoundSymbol]:
    """Yield the names that a file defines: itself, its agents and its steps, those of workflows written in place included."""
    source, base, head = document.source, document.base, document.head
    path = document.path
    stem = path.name.split(".")[0] if path is not None else ""
    own = " ".join((head.text("name") or "").split()) or stem
    if document.kind == "agent":
        if isinstance(head.node, Mapping):
            whole = head.node.span.shift(base)
            yield FoundSymbol(own or "agent", "agent", "", Location(source, head.span_of("name").shift(base), whole))
        return
    if own and isinstance(head.node, Mapping):
        span = head.span_of("name").shift(base)
        yield FoundSymbol(own, "workflow", "", Location(source, span, span))
    if head.block is not None:
        for name, field in head.block.fields.items():
            mark, located = field.shape.mark("defines"), head.fields.get(name)
            if mark is None or mark.of != "agent" or located is None or not isinstance(located.value, Mapping):
                continue
            for entry in located.value.entries:
                key = getattr(entry.key, "value", "")
                if isinstance(key, str) and key:
                    whole = Span(entry.key.span.start, max(entry.key.span.end, entry.value.span.end))
                    place = Location(source, entry.key.span.shift(base), whole.shift(base))
                    yield FoundSymbol(" ".join(key.split()), "agent", own, place)
    for step in document.steps:
        if step.id is None or not step.id.strip():
            continue
        whole = step.alias or step.place(step.facts.node.span)
        yield FoundSymbol(" ".join(step.id.split()), "step", own, Location(source, step.name_span, whole))
        child = written_in(document, step)
        if child is not None:
            yield from symbols_of(child)
