"""What is drawn: boxes and arrows with their words, in layers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from agentloom.records import record

Kind = Literal["plain", "branch", "cycle"]


class Node(NamedTuple):
    """A box. ``id`` is unique; ``type`` chooses its shape and colour; ``detail`` is a second line; ``layer`` counts from 0.

    ``marked`` boxes are on the critical path, ``faulty`` ones have problems.
    """

    id: str
    type: str
    layer: int
    detail: str = ""
    marked: bool = False
    faulty: bool = False


class Edge(NamedTuple):
    """An arrow: what runs first to what runs then. ``branch`` arrows carry the condition; ``cycle`` ones close a loop."""

    source: str
    target: str
    kind: Kind = "plain"
    label: str = ""
    marked: bool = False


@record(slots=False)
class Picture:
    """A graph. Every edge but those of kind ``cycle`` leads to a later layer, and names nodes that are there."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def layers(self) -> tuple[tuple[Node, ...], ...]:
        """The nodes of each layer, in the order given."""
        found: dict[int, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(node.layer, []).append(node)
        return tuple(tuple(found[layer]) for layer in sorted(found))

    @cached_property
    def by_id(self) -> Mapping[str, Node]:
        """The nodes by id."""
        return {node.id: node for node in self.nodes}
