"""Where boxes and arrows go: a layered drawing in the manner of Sugiyama, Tagawa and Toda (1981).

Layers are given. Arrows that run through several of them get a place in each, and so does the word on an arrow, so nothing is drawn
over a box. Order within a layer: medians, swept up and down (Gansner et al. 1993). Coordinates: Brandes and Köpf (2002).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentloom.drawing.coordinates import place_across
from agentloom.drawing.ordering import order_ranks
from agentloom.drawing.picture import Edge, Picture


class Size(NamedTuple):
    """Width and height, in pixels."""

    width: float
    height: float


class Box(NamedTuple):
    """A rectangle: its upper left corner and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The horizontal middle."""
        return self.x + self.width / 2

    @property
    def turned(self) -> Box:
        """The same box with x and y exchanged."""
        return Box(self.y, self.x, self.height, self.width)


class Route(NamedTuple):
    """The way of one arrow, from the lower edge of a box to the upper edge of another; ``label`` is where its words stand.

    ``bends`` are rectangles without width that it has to pass through, top down: inside each it runs straight.
    """

    edge: Edge
    start: tuple[float, float]
    end: tuple[float, float]
    bends: tuple[Box, ...] = ()
    label: Box | None = None


class Layout(NamedTuple):
    """A drawing: its size, the boxes by id, and the arrows."""

    width: float
    height: float
    boxes: Mapping[str, Box]
    routes: tuple[Route, ...]


class Gaps(NamedTuple):
    """Distances in pixels: around everything, between neighbours in a layer, between arrows, between layers."""

    margin: float = 16
    nodes: float = 28
    arrows: float = 14
    layers: float = 44


GAPS = Gaps()


def lay_out(picture: Picture, sizes: Mapping[str, Size], labels: Mapping[Edge, Size], gaps: Gaps = GAPS) -> Layout:
    """Return the drawing of a picture; ``sizes`` of its boxes by id, ``labels`` the room that words on arrows take."""
    grid = _Grid(picture, sizes, labels)
    ranks = order_ranks(grid.ranks, grid.above)
    across = place_across(
        ranks,
        grid.above,
        grid.widths,
        grid.long,
        lambda a, b: gaps.arrows if a in grid.thin and b in grid.thin else gaps.nodes,
    )
    left = min((across[name] - grid.widths[name] / 2 for name in across), default=0.0)
    shift = gaps.margin - left
    tops, heights = _down(ranks, grid, gaps)
    boxes: dict[str, Box] = {}
    for rank, names in enumerate(ranks):
        for name in names:
            width, height = grid.widths[name], grid.heights[name]
            x = across[name] + shift - width / 2
            if name in grid.thin:
                boxes[name] = Box(x, tops[rank], width, heights[rank] if rank % 2 == 0 else 0)
            else:
                boxes[name] = Box(x, tops[rank] + (heights[rank] - height) / 2, width, height)
    routes = tuple(_route(edge, grid, boxes) for edge in picture.edges)
    right = max((box.x + box.width for box in boxes.values()), default=gaps.margin)
    loops = any(edge.kind == "cycle" for edge in picture.edges)
    bottom = (tops[-1] + heights[-1]) if tops else gaps.margin
    named = {node.id: boxes[node.id] for node in picture.nodes}
    return Layout(right + gaps.margin + (2 * gaps.nodes if loops else 0), bottom + gaps.margin, named, routes)


class _Grid:
    """Boxes, and the places of arrows and words between them, by rank: even ranks hold layers, odd ones what is between."""

    def __init__(self, picture: Picture, sizes: Mapping[str, Size], labels: Mapping[Edge, Size]) -> None:
        depth = 2 * max((node.layer for node in picture.nodes), default=-1) + 1
        self.ranks: list[list[str]] = [[] for _ in range(max(depth, 0))]
        self.widths: dict[str, float] = {}
        self.heights: dict[str, float] = {}
        self.above: dict[str, list[str]] = {}
        self.thin: set[str] = set()
        self.long: set[str] = set()
        self.ways: dict[Edge, list[str]] = {}
        self.words: dict[Edge, str] = {}
        for node in picture.nodes:
            self._add(node.id, 2 * node.layer, sizes[node.id])
        for number, edge in enumerate(picture.edges):
            if edge.kind != "cycle" and edge not in self.ways:
                self._lead(number, edge, picture, labels.get(edge))

    def _add(self, name: str, rank: int, size: Size) -> None:
        self.ranks[rank].append(name)
        self.widths[name], self.heights[name] = size
        self.above[name] = []

    def _lead(self, number: int, edge: Edge, picture: Picture, label: Size | None) -> None:
        first, last = 2 * picture.by_id[edge.source].layer, 2 * picture.by_id[edge.target].layer
        before, way = edge.source, []
        for rank in range(first + 1, last):
            name = f"\0{number}:{rank}"
            worded = label is not None and rank == first + 1
            self._add(name, rank, label if worded and label is not None else Size(0, 0))
            if worded:
                self.words[edge] = name
            else:
                self.thin.add(name)
            if rank > first + 1:
                self.long.add(name)
            self.above[name].append(before)
            before = name
            way.append(name)
        self.above[edge.target].append(before)
        self.ways[edge] = way


def _down(ranks: Sequence[Sequence[str]], grid: _Grid, gaps: Gaps) -> tuple[list[float], list[float]]:
    """Return top and height of each rank. The ranks between layers are as high as their words, and no higher."""
    tops: list[float] = []
    heights: list[float] = []
    at = gaps.margin
    for names in ranks:
        height = max((grid.heights[name] for name in names), default=0.0)
        tops.append(at)
        heights.append(height)
        at += height + gaps.layers / 2
    return tops, heights


def _route(edge: Edge, grid: _Grid, boxes: Mapping[str, Box]) -> Route:
    source, target = boxes[edge.source], boxes[edge.target]
    if edge.kind == "cycle":  # from the side of one to the side of the other, around
        start = (source.x + source.width, source.y + source.height / 2)
        return Route(edge, start, (target.x + target.width, target.y + target.height / 2))
    word = grid.words.get(edge)
    # Between layers there is nothing to pass by but words: without them one curve leads from layer to layer.
    way = [boxes[name] for name in grid.ways[edge] if name == word or boxes[name].height]
    bends = tuple(Box(box.middle, box.y, 0, box.height) for box in way)
    start = (source.middle, source.y + source.height)
    return Route(edge, start, (target.middle, target.y), bends, boxes[word] if word is not None else None)
