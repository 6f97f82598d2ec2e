"""All tokens of a document, or those of a part of it; what a step gives by itself is kept as long as the step stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agentloom.analysis.document import Facts, WorkflowDocument
from agentloom.ide.colour.facts import facts_tokens
from agentloom.ide.colour.tokens import Token, in_order
from agentloom.ide.nested import documents_in, written_in
from agentloom.text import Span

BREATH = 32
"""Steps between two breaths."""


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


class Stretch(NamedTuple):
    """Tokens that follow each other, and nothing between them, in offsets of ``text``, which begins at ``base`` in the document.

    ``owner`` is the mapping that they were worked out from: as long as it is the same, so are they. None where several had a part.
    """

    base: int
    text: str
    tokens: tuple[Token, ...]
    owner: Facts | None = None


def stretches(
    document: WorkflowDocument, memory: TokenMemory | None = None, breathe: Callable[[], None] = lambda: None
) -> list[Stretch]:
    """Return the tokens of a whole document, in order, none over another: those of each step by themselves, where that can be.

    ``breathe`` is called after each few steps whose tokens had to be worked out.
    """
    memory = memory or TokenMemory()
    known = memory.size
    text = document.source.text
    seen = {id(document.head)}
    steps: list[Stretch] = []
    for step in document.steps:
        if step.alias is not None:
            continue
        inner = written_in(document, step)
        seen.add(id(step.facts))
        tokens = memory.tokens(step.facts)
        if memory.size >= known + BREATH:
            known = memory.size
            breathe()
        if inner is None:
            steps.append(Stretch(step.base, step.facts.unit.text, tokens, step.facts))
            continue
        found = [shifted(token, step.base) for token in tokens]
        for facts, base in _owners(inner):
            seen.add(id(facts))
            found.extend(shifted(token, base) for token in memory.tokens(facts))
        steps.append(Stretch(0, text, in_order(found)))
    memory.keep_only(seen)
    head = in_order([shifted(token, document.base) for token in memory.tokens(document.head)])
    filled = [stretch for stretch in steps if stretch.tokens]
    start = filled[0].base + filled[0].tokens[0].start if filled else 0
    above = tuple([token for token in head if token.start < start])
    ordered = [Stretch(0, text, above), *filled, Stretch(0, text, head[len(above) :])]
    if _follow(ordered):
        return ordered
    every = (shifted(token, stretch.base) for stretch in ordered for token in stretch.tokens)
    return [Stretch(0, text, in_order(list(every)))]


def _follow(found: list[Stretch]) -> bool:
    """Tell whether stretches stand in the text one behind the other; not so where merge keys bring in what stands elsewhere."""
    end = 0
    for stretch in found:
        if stretch.tokens:
            if stretch.base + stretch.tokens[0].start < end:
                return False
            end = stretch.base + stretch.tokens[-1].end
    return True


def document_tokens(document: WorkflowDocument, memory: TokenMemory | None = None) -> list[Token]:
    """Return the tokens of a whole document in document offsets, in order, none over another."""
    return [shifted(token, stretch.base) for stretch in stretches(document, memory) for token in stretch.tokens]


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


def shifted(token: Token, by: int) -> Token:
    """Return a token, ``by`` code points further on."""
    return Token(token.start + by, token.end + by, token.kind) if by else token


def _owners(document: WorkflowDocument) -> Iterator[tuple[Facts, int]]:
    """Yield the facts of all mappings, and where their units begin; those behind an alias stand at its anchor."""
    for owner in documents_in(document):
        yield owner.head, owner.base
        for step in owner.steps:
            if step.alias is None:
                yield step.facts, step.base
