"""One piece of a text, read: its unit, and what the whole text needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from agentloom.syntax.backend import Failure
from agentloom.syntax.comments import find_comments
from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.faults import OTHER_STRUCTURE, bad_characters
from agentloom.syntax.nodes import Alias, Comment, Entry, Mapping, Node, Sequence
from agentloom.syntax.pieces import Kind
from agentloom.syntax.recovery import recover
from agentloom.syntax.tree import Unit


@dataclass(eq=False)
class Part:
    """What one piece of text says, in its own offsets; shared by all versions of a document that hold this piece.

    ``entries`` are the top-level entries it gives (kinds `entry` and `header`), ``items`` the steps: one, unless it is broken.
    """

    kind: Kind
    unit: Unit
    entries: tuple[Entry, ...] = ()
    items: tuple[Node, ...] = ()
    list_span: tuple[int, int] | None = None
    anchors: dict[str, Node] = field(default_factory=dict)
    loose: tuple[Alias, ...] = ()
    size: int = 0
    own: int = 0
    failure: Failure | None = None
    """Why it does not compose; then ``recovered`` tells whether what can be read of it has been looked for."""
    recovered: bool = False
    placed: tuple[int, tuple[Entry, ...]] | None = None
    """The entries at the base they were last asked for; kept, since edits mostly leave what stands before them."""

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """The comments in this piece."""
        return tuple(find_comments(self.unit.text, self.unit.node))


def read_part(kind: Kind, text: str, pure: bool = False) -> Part:
    """Return the part of a piece of text; one with a ``failure`` when it does not compose as its kind says."""
    composed = compose(text, pure)
    if isinstance(composed, Failure):
        return Part(kind, Unit(text, None), failure=composed)
    node = composed.node
    if kind == "item":
        fits = isinstance(node, Sequence) and not node.flow and len(node.items) == 1
    else:
        fits = isinstance(node, Mapping) and not node.flow and len(node.entries) == 1
    if not fits or node is None or node.anchor is not None or node.tag is not None:  # type: ignore[union-attr]
        return Part(kind, Unit(text, None), failure=Failure(OTHER_STRUCTURE, 0))
    return _part(kind, text, composed)


def recovered_part(part: Part, pure: bool = False) -> Part:
    """Return a broken part with what can be read of it, and its faults as findings."""
    text = part.unit.text
    assert part.failure is not None
    found = _part(part.kind, text, recover(part.kind, text, part.failure, pure))
    found.failure = part.failure
    found.recovered = True
    return found


def _part(kind: Kind, text: str, composed: Composed) -> Part:
    node = composed.node
    entries = node.entries if isinstance(node, Mapping) and kind != "item" else ()
    items = node.items if isinstance(node, Sequence) and kind == "item" else ()
    findings = [*bad_characters(text), *composed.findings]
    unit = Unit(text, items[0] if len(items) == 1 else node, tuple(findings))
    return Part(
        kind,
        unit,
        entries,
        items,
        node.span if node is not None and items else None,
        composed.anchors,
        tuple(composed.loose),
        composed.size,
        composed.own,
    )
