"""One piece of a text, read: its unit, and what the whole text needs to know of it."""

from __future__ import annotations

from agentloom.syntax.backend import Failure
from agentloom.syntax.comments import find_comments
from agentloom.syntax.compose import Composed, compose
from agentloom.syntax.faults import OTHER_STRUCTURE, bad_characters
from agentloom.syntax.nodes import Alias, Comment, Entry, Mapping, Node, Sequence
from agentloom.syntax.pieces import Kind
from agentloom.syntax.tree import Unit
from agentloom.text import Span


class Part:
    """What one piece of text says, in its own offsets; shared by all versions of a document that hold this piece.

    ``entries`` are the top-level entries it gives (kinds `entry` and `header`), ``items`` the steps, ``list_span`` theirs.
    ``failure`` says why it does not compose; ``recovered`` then tells whether what can be read of it has been looked for.
    ``placed`` keeps the entries at the base they were last asked for: edits mostly leave what stands before them.
    """

    __slots__ = (
        "_comments",
        "anchors",
        "entries",
        "failure",
        "items",
        "kind",
        "list_span",
        "loose",
        "own",
        "placed",
        "recovered",
        "size",
        "unit",
    )

    def __init__(self, kind: Kind, unit: Unit, failure: Failure | None = None) -> None:
        self.kind = kind
        self.unit = unit
        self.failure = failure
        self.recovered = False
        self.entries: tuple[Entry, ...] = ()
        self.items: tuple[Node, ...] = ()
        self.list_span: Span | None = None
        self.anchors: dict[str, Node] = {}
        self.loose: tuple[Alias, ...] = ()
        self.size = 0
        self.own = 0
        self.placed: tuple[int, tuple[Entry, ...]] | None = None
        self._comments: tuple[Comment, ...] | None = None

    @property
    def comments(self) -> tuple[Comment, ...]:
        """The comments in this piece."""
        if self._comments is None:
            self._comments = tuple(find_comments(self.unit.text, self.unit.node))
        return self._comments


def read_part(kind: Kind, text: str, pure: bool = False) -> Part:
    """Return the part of a piece of text; one with a ``failure`` when it does not compose as its kind says."""
    composed = compose(text, pure)
    if isinstance(composed, Failure):
        return Part(kind, Unit(text, None), composed)
    node = composed.node
    if kind == "item":
        fits = isinstance(node, Sequence) and not node.flow and len(node.items) == 1
    else:
        fits = isinstance(node, Mapping) and not node.flow and len(node.entries) == 1
        if (
            kind == "header"
            and isinstance(node, Mapping)
            and node.entries[0].value.span.start < node.entries[0].value.span.end
        ):
            fits = False
    if not fits or node is None or node.anchor is not None or node.tag is not None:  # type: ignore[union-attr]
        return Part(kind, Unit(text, None), Failure(OTHER_STRUCTURE, 0))
    return _part(kind, text, composed)


def recovered_part(part: Part, pure: bool = False) -> Part:
    """Return a broken part with what can be read of it, and its faults as findings."""
    from agentloom.syntax.recovery import recover  # nine modules that only broken texts need

    text = part.unit.text
    failure = part.failure or Failure(OTHER_STRUCTURE, 0)
    found = _part(part.kind, text, recover(part.kind, text, failure, pure))
    found.failure = part.failure
    found.recovered = True
    return found


def _part(kind: Kind, text: str, composed: Composed) -> Part:
    node = composed.node
    entries: tuple[Entry, ...] = ()
    items: tuple[Node, ...] = ()
    span: Span | None = None
    if isinstance(node, Sequence) and kind == "item":
        items, span = node.items, node.span
    elif isinstance(node, Mapping) and kind != "item":
        entries = node.entries
        value = entries[-1].value if entries else None
        if kind == "header" and isinstance(value, Sequence):
            items, span = value.items, value.span
    findings = [*bad_characters(text), *composed.findings] if composed.odd else composed.findings
    part = Part(kind, Unit(text, items[0] if len(items) == 1 and kind == "item" else node, tuple(findings)))
    part.entries, part.items = entries, items
    part.list_span = span if items else None
    part.anchors = composed.anchors
    part.loose = tuple(composed.loose)
    part.size, part.own = composed.size, composed.own
    return part
