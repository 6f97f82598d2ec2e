"""All tokens of a document, or those of a part of it; what a step gives by itself is kept as long as the step stays the same."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.document import Facts, WorkflowDocument
from agentloom.ide.colour.facts import facts_tokens
from agentloom.ide.colour.tokens import Token, in_order
from agentloom.ide.nested import documents_in
from agentloom.text import Span


class TokenMemory:
    """What is kept from one version of a document to the next. Not for concurrent use."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[Facts, tuple[Token, ...]]] = {}

    def tokens(self, facts: Facts) -> tuple[Token, ...]:
        """Return the tokens of a mapping, in offsets of its unit."""
        known = self._known.get(id(facts))
        if known is None:
            known = self._known[id(facts)] = (facts, facts_tokens(facts))
        return known[1]

    @property
    def size(self) -> int:
        """The number of mappings whose tokens are kept."""
        return len(self._known)

    def keep_only(self, facts: set[int]) -> None:
        """Forget all mappings but these, given by their ids."""
        if len(self._known) > len(facts):
            self._known = {key: known for key, known in self._known.items() if key in facts}


def document_tokens(document: WorkflowDocument, memory: TokenMemory | None = None) -> list[Token]:
    """Return the tokens of a whole document in document offsets, in order, none over another."""
    memory = memory or TokenMemory()
    found: list[Token] = []
    seen: set[int] = set()
    for facts, base in _owners(document):
        seen.add(id(facts))
        if base:
            found.extend([Token(start + base, end + base, kind) for start, end, kind in memory.tokens(facts)])
        else:
            found.extend(memory.tokens(facts))
    memory.keep_only(seen)
    return list(in_order(found))


def range_tokens(document: WorkflowDocument, span: Span, memory: TokenMemory | None = None) -> list[Token]:
    """Return those tokens of a document that touch a span; only the steps that touch it, or merge what may, are looked at."""
    memory = memory or TokenMemory()
    found: list[Token] = []
    owners = list(_owners(document))
    if memory.size > 2 * len(owners):  # of versions gone by, when nothing but ranges is asked for
        memory.keep_only({id(facts) for facts, _ in owners})
    for facts, base in owners:
        whole = facts.node.span
        apart = whole.start + base > span.end or whole.end + base < span.start
        if apart and not (document.tree.whole and any(located.via is not None for located in facts.fields.values())):
            continue  # only merged fields stand outside of the mapping that they belong to
        for start, end, kind in memory.tokens(facts):
            if start + base < span.end and end + base > span.start:
                found.append(Token(start + base, end + base, kind))
    return list(in_order(found))


def _owners(document: WorkflowDocument) -> Iterator[tuple[Facts, int]]:
    """Yield the facts of all mappings, and where their units begin; those behind an alias stand at its anchor."""
    for owner in documents_in(document):
        yield owner.head, owner.base
        for step in owner.steps:
            if step.alias is None:
                yield step.facts, step.base
