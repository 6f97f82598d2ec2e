"""Drawings of graphs: nothing over anything, whatever the graph; formats that their readers take."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from agentloom.drawing.data import as_data
from agentloom.drawing.dot import dot
from agentloom.drawing.layout import Layout
from agentloom.drawing.mermaid import mermaid
from agentloom.drawing.ordering import crossings, order_ranks
from agentloom.drawing.picture import Edge, Node, Picture
from agentloom.drawing.svg import arrange, svg

TYPES = ("llm_call", "router", "tool", "subworkflow", "approval_gate", "embed", "agent", "")
SVG = "{http://www.w3.org/2000/svg}"


def random_picture(seed: int) -> Picture:
    """Return a graph of up to 60 steps with long arrows, branches, loops and odd names."""
    chance = random.Random(seed)
    layers = chance.randint(1, 12)
    nodes: list[Node] = []
    for layer in range(layers):
        for _ in range(chance.randint(1, 6)):
            name = f"s{len(nodes)}" + "x" * chance.choice([0, 3, 40]) + chance.choice(["", "é漢字", '<"&'])
            nodes.append(Node(name, chance.choice(TYPES), layer, chance.choice(["", "tool · x", "y" * 60])))
    edges: dict[tuple[str, str], Edge] = {}
    for node in nodes:
        earlier = [n for n in nodes if n.layer < node.layer]
        for source in chance.sample(earlier, min(len(earlier), chance.randint(0, 3))):
            label = chance.choice(["", "", "default", "state.x == 'a long condition that is cut' and <more>"])
            edges[source.id, node.id] = Edge(source.id, node.id, "branch" if label else "plain", label)
    if layers > 2:
        edges[nodes[-1].id, nodes[0].id] = Edge(nodes[-1].id, nodes[0].id, "cycle")
    return Picture(f"graph {seed}", tuple(nodes), tuple(edges.values()))


def rectangles(layout: Layout) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield name, left, top, right and bottom of every box and every word on an arrow."""
    for name, box in layout.boxes.items():
        yield name, box.x, box.y, box.x + box.width, box.y + box.height
    for route in layout.routes:
        if route.label is not None:
            box = route.label
            yield f"{route.edge}", box.x, box.y, box.x + box.width, box.y + box.height


@pytest.mark.parametrize("seed", range(60))
def test_nothing_lies_over_anything(seed: int) -> None:
    """Boxes and words don't overlap, lie inside the drawing, and arrows pass beside the boxes of the layers that they cross."""
    picture = random_picture(seed)
    layout = arrange(picture)
    found = list(rectangles(layout))
    assert {name for name, *_ in found} >= set(picture.by_id)
    for _, left, top, right, bottom in found:
        assert left >= 0
        assert top >= 0
        assert right <= layout.width
        assert bottom <= layout.height
    for at, (one, left, top, right, bottom) in enumerate(found):
        for other, left2, top2, right2, bottom2 in found[at + 1 :]:
            apart = right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
            assert apart, f"{one} and {other} overlap"
    for route in layout.routes:
        for bend in route.bends:
            for name, left, top, right, bottom in found:
                beside = bend.x <= left or bend.x >= right or bend.y >= bottom or bend.y + bend.height <= top
                assert beside or name == f"{route.edge}", f"{route.edge} runs through {name}"


@pytest.mark.parametrize("seed", range(20))
def test_layers_are_drawn_from_the_top_down(seed: int) -> None:
    """A later layer lies lower, and every arrow but those of loops leads down."""
    picture = random_picture(seed)
    layout = arrange(picture)
    bottoms = [max(layout.boxes[n.id].y + layout.boxes[n.id].height for n in layer) for layer in picture.layers]
    tops = [min(layout.boxes[n.id].y for n in layer) for layer in picture.layers]
    assert all(bottom < top for bottom, top in zip(bottoms, tops[1:], strict=False))
    for route in layout.routes:
        if route.edge.kind != "cycle":
            ways = [route.start[1], *(bend.y for bend in route.bends), route.end[1]]
            assert all(a <= b for a, b in pairwise(ways))


def test_the_same_graph_gives_the_same_drawing() -> None:
    """Files made from it can be kept under version control."""
    assert svg(random_picture(7)) == svg(random_picture(7))


def test_crossings_are_counted_and_taken_away() -> None:
    """A graph that can be drawn without crossings is, whatever order it comes in."""
    above = {"a": [], "b": [], "c": [], "x": ["c"], "y": ["a"], "z": ["b"]}
    tangled = [["a", "b", "c"], ["x", "y", "z"]]
    assert crossings(tangled, above) == 2
    assert crossings(order_ranks(tangled, above), above) == 0


@pytest.mark.parametrize("seed", range(10))
def test_svg_is_well_formed_and_says_everything(seed: int) -> None:
    """Every step is there under its id, with its whole name in the tooltip; a condition that was cut is in one, too."""
    picture = random_picture(seed)
    root = ElementTree.fromstring(svg(picture))
    assert root.tag == f"{SVG}svg"
    assert [group.attrib["data-step"] for group in root.iter(f"{SVG}g") if "data-step" in group.attrib] == [
        node.id for node in picture.nodes
    ]
    titles = {title.text for title in root.iter(f"{SVG}title")}
    assert {edge.label for edge in picture.edges if edge.label} <= titles
    assert len(list(root.iter(f"{SVG}path"))) >= len(picture.edges)


def test_an_empty_graph() -> None:
    """Nothing to draw gives an empty drawing."""
    nothing = Picture("nothing", (), ())
    assert ElementTree.fromstring(svg(nothing)).attrib["width"] == "32"
    assert mermaid(nothing) == "flowchart TD\n"


def test_names_that_mermaid_would_misread() -> None:
    """Keywords, hyphens and quotes: such steps get an id of their own, and their name as a text."""
    nodes = tuple(Node(name, "llm_call", 0) for name in ("end", "a-b", 'say "hi"', "plain_1", "größe"))
    text = mermaid(Picture("odd", nodes, (Edge("end", "plain_1", "branch", 'x < "1" or `y`'),)))
    assert text.splitlines() == [
        "flowchart TD",
        '  n0_("end")',
        '  n1_("a-b")',
        '  n2_("say #quot;hi#quot;")',
        '  plain_1("plain_1")',
        '  n4_("größe")',
        '  n0_ -->|"x #lt; #quot;1#quot; or #96;y#96;"| plain_1',
    ]


def test_dot_quotes_everything() -> None:
    """Backslashes, quotes and line breaks can't end a string."""
    text = dot(Picture('a "b"\\', (Node('x"];', "tool", 0, "one\ntwo"), Node("y", "", 1)), (Edge('x"];', "y"),)))
    assert text.splitlines()[0] == 'digraph "a \\"b\\"\\\\" {'
    assert '  "x\\"];" [label="x\\"];\\none\\ntwo", shape=parallelogram, style=solid];' in text.splitlines()
    assert not re.search(r"^\s*\];", text, re.MULTILINE)


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_layers_from_left_to_right(seed: int) -> None:
    """Each layer lies to the right of the one before, boxes keep their sizes apart from each other, arrows lead from edge to edge."""
    picture = random_picture(seed)
    down, right = as_data(picture), as_data(picture, "right")
    boxes = {node["id"]: node for node in right["nodes"]}
    assert {name: (box["width"], box["height"]) for name, box in boxes.items()} == {
        node["id"]: (node["width"], node["height"]) for node in down["nodes"]
    }
    for one in boxes.values():
        assert 0 <= one["x"] <= one["x"] + one["width"] <= right["width"]
        assert 0 <= one["y"] <= one["y"] + one["height"] <= right["height"]
        for other in boxes.values():
            if one["layer"] < other["layer"]:
                assert one["x"] + one["width"] < other["x"]
            elif one is not other and one["layer"] == other["layer"] and one["y"] <= other["y"]:
                assert one["y"] + one["height"] < other["y"]
    for edge in right["edges"]:
        if edge["kind"] == "cycle":
            continue
        source, target = boxes[edge["source"]], boxes[edge["target"]]
        numbers = [float(number) for number in re.findall(r"[\d.]+", edge["path"])]
        assert numbers[0] == pytest.approx(source["x"] + source["width"], abs=0.5)
        last = numbers[-1] if re.search(r"H[\d.]+$", edge["path"]) else numbers[-2]
        assert last == pytest.approx(target["x"], abs=0.5)
