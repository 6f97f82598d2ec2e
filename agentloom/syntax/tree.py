"""What the reader returns: a text's nodes, read whole or piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from agentloom.diagnostics import Finding
from agentloom.records import record
from agentloom.syntax.nodes import Comment, Mapping, Node, Scalar, Sequence


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Unit:
    """A piece of text composed by itself; shared between versions of a document as long as its text stays the same.

    ``node`` and ``findings`` are in offsets of ``text``. Compared by identity, so it serves as a cache key.
    """

    text: str
    node: Node | None
    findings: tuple[Finding, ...] = ()


class Placed(NamedTuple):
    """A node of a unit and where the unit begins in the document: document offset = ``base`` + offset in the unit.

    ``unit`` may hold more than ``node`` (a whole document composed in one go; then ``base`` is 0).
    """

    base: int
    unit: Unit
    node: Node


@record(slots=False)
class Tree:
    """A text and its nodes.

    ``top`` is the document's node in document offsets. When its ``steps`` is a block list that was read piece by piece, that
    list's ``items`` are empty in ``top``; ``steps`` always has the items. ``findings`` (AL001 to AL007) are in document
    offsets. ``whole`` tells whether the text was composed in one go.
    """

    text: str
    top: Node | None
    steps: tuple[Placed, ...] = ()
    findings: tuple[Finding, ...] = ()
    whole: bool = True
    materialise: Callable[[], Node | None] | None = None
    find_comments: Callable[[], tuple[Comment, ...]] | None = None

    @cached_property
    def root(self) -> Node | None:
        """The complete tree in document offsets, steps included; built when first asked for."""
        return self.materialise() if self.materialise else self.top

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """All comments, in order, in document offsets; built when first asked for."""
        return self.find_comments() if self.find_comments else ()

    def entry(self, key: str) -> tuple[Scalar, Node] | None:
        """Return key and value of a top-level entry, the last one of that name (as YAML readers that don't refuse take it)."""
        if isinstance(self.top, Mapping):
            for item in reversed(self.top.entries):
                if isinstance(item.key, Scalar) and item.key.value == key:
                    return item.key, item.value
        return None

    @property
    def steps_node(self) -> Sequence | None:
        """The list at ``steps``, if there is one (its items may be empty here: see ``steps``)."""
        found = self.entry("steps")
        return found[1] if found and isinstance(found[1], Sequence) else None
