"""What is known of a router expression: its tree, what it reads, its faults. Plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from agentloom.language.faults import Fault
from agentloom.language.paths import Part
from agentloom.text import Span

if TYPE_CHECKING:
    from agentloom.language.tree import Name, Node


class Read(NamedTuple):
    """A place that reads the state: ``state.user["name"][0]``, ``state.get("k")``, ``steps.x.output``.

    Reads with a fault in them are left out. ``parts`` leads from the top of the state, so it begins with ``steps`` for the latter; ``spans`` holds the place of each
    part, inside the quotes of a text. ``span`` is the whole of it.
    """

    span: Span
    root: Literal["state", "steps"]
    parts: tuple[Part, ...]
    spans: tuple[Span, ...]


class Expression(NamedTuple):
    """A parsed expression.

    ``constant`` is True or False when it is so whatever the state holds, unless it fails. ``canonical`` is equal for
    expressions that say the same in other spelling; empty when there are faults.
    """

    value: str
    tree: Node
    faults: tuple[Fault, ...]
    reads: tuple[Read, ...]
    names: tuple[Name, ...]
    constant: bool | None
    canonical: str

    @property
    def steps(self) -> tuple[tuple[str, Span], ...]:
        """The step ids whose results are read, each with its place."""
        return tuple(
            (read.parts[1], read.spans[1])
            for read in self.reads
            if len(read.parts) > 1 and read.parts[0] == "steps" and isinstance(read.parts[1], str)
        )
