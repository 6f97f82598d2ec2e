"""A picture as SVG: one file that looks right in light and dark pages, without scripts or fonts of its own."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from agentloom.drawing.layout import Box, Layout, Route, Size, lay_out
from agentloom.drawing.picture import Edge, Node, Picture

CHARACTER = 7.3
"""Pixels that a character of a name takes on average; a wide one takes twice that."""
SMALL = 6.1
"""The same for the smaller second lines and the words on arrows."""
MOST_NAME, MOST_DETAIL, MOST_LABEL = 34, 44, 40
"""Characters shown of a name, a second line, the words on an arrow; the rest is in the tooltip."""
HEIGHT = 44.0

STYLE = """
  svg { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; color: #1f2328; background: #ffffff }
  .box { fill: #f6f8fa; stroke: #8c959f; stroke-width: 1.2 }
  .name { font-size: 13px; font-weight: 600; fill: currentColor; text-anchor: middle }
  .detail { font-size: 11px; fill: #57606a; text-anchor: middle }
  .arrow { fill: none; stroke: #6e7781; stroke-width: 1.3 }
  .branch { stroke: #8250df }
  .cycle { stroke: #cf222e; stroke-dasharray: 5 3 }
  .marked { stroke-width: 2.6 }
  .faulty { stroke: #cf222e; stroke-width: 2.2 }
  .word { font-size: 11px; fill: #8250df; text-anchor: middle }
  .under { fill: #ffffff; opacity: .92 }
  .head { fill: #6e7781 } .head-branch { fill: #8250df } .head-cycle { fill: #cf222e }
  .llm_call { fill: #ddf4ff; stroke: #54aeff } .router { fill: #fbefff; stroke: #a475f9 } .tool { fill: #dafbe1; stroke: #4ac26b }
  .subworkflow { fill: #fff8c5; stroke: #d4a72c } .approval_gate { fill: #ffebe9; stroke: #ff8182 }
  .embed { fill: #ddf4ff; stroke: #218bff } .agent { fill: #fff1e5; stroke: #fb8f44 }
  @media (prefers-color-scheme: dark) {
    svg { color: #e6edf3; background: #0d1117 }
    .box { fill: #161b22; stroke: #6e7681 } .detail { fill: #9198a1 } .arrow { stroke: #8b949e }
    .branch { stroke: #b392f0 } .word { fill: #d2b7ff } .under { fill: #0d1117 }
    .cycle, .faulty { stroke: #ff7b72 }
    .head { fill: #8b949e } .head-branch { fill: #b392f0 } .head-cycle { fill: #ff7b72 }
    .llm_call { fill: #0c2d6b; stroke: #388bfd } .router { fill: #341a66; stroke: #a371f7 } .tool { fill: #0f3d20; stroke: #3fb950 }
    .subworkflow { fill: #3d2e00; stroke: #d29922 } .approval_gate { fill: #5d0f12; stroke: #ff7b72 }
    .embed { fill: #0c2d6b; stroke: #79c0ff } .agent { fill: #4d2600; stroke: #ffa657 }
  }
"""


def svg(picture: Picture) -> str:
    """Return a picture as an SVG document: layers from the top down, what a router asks beside its arrows."""
    layout = arrange(picture)
    title = escape(f"{picture.name}: {len(picture.nodes)} steps in {len(picture.layers)} layers")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(layout.width)}" height="{_n(layout.height)}" '
        f'viewBox="0 0 {_n(layout.width)} {_n(layout.height)}" role="img">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        "<defs>",
        *(_head(name) for name in ("head", "head-branch", "head-cycle")),
        "</defs>",
        f'<rect class="under" style="opacity:1" width="{_n(layout.width)}" height="{_n(layout.height)}"/>',
    ]
    for route in layout.routes:
        lines.append(_arrow(route, layout))
    for route in layout.routes:
        lines.extend(_words(route))
    for node in picture.nodes:
        lines.extend(_box(node, layout.boxes[node.id]))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def arrange(picture: Picture, turned: bool = False) -> Layout:
    """Return the layout of a picture as this module draws it; ``turned`` is one that is right once x and y are exchanged."""
    boxes, labels = {node.id: size_of(node) for node in picture.nodes}, _label_sizes(picture)
    if not turned:
        return lay_out(picture, boxes, labels)
    lying = {name: Size(size.height, size.width) for name, size in boxes.items()}
    return lay_out(picture, lying, {edge: Size(size.height, size.width) for edge, size in labels.items()})


def size_of(node: Node) -> Size:
    """Return the room that a step's box takes."""
    slant = 18 if node.type == "router" else 0
    wide = max(
        width_of(_cut(node.id, MOST_NAME)) * CHARACTER, width_of(_cut(node.detail or node.type, MOST_DETAIL)) * SMALL
    )
    return Size(max(64.0, wide + 26 + slant), HEIGHT)


def _label_sizes(picture: Picture) -> Mapping[Edge, Size]:
    return {
        edge: Size(width_of(_cut(edge.label, MOST_LABEL)) * SMALL + 12, 18.0) for edge in picture.edges if edge.label
    }


def width_of(text: str) -> int:
    """Return how many average characters wide a text is: marks that combine count nothing, East Asian characters twice."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _cut(text: str, most: int) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _head(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        f'<path class="{name}" d="M0 1 L10 5 L0 9 z"/></marker>'
    )


def _arrow(route: Route, layout: Layout) -> str:
    kind = route.edge.kind
    marked = " marked" if route.edge.marked else ""
    style = "arrow" if kind == "plain" else f"arrow {kind}"
    head = "head" if kind == "plain" else f"head-{kind}"
    return f'<path class="{style}{marked}" d="{path_of(route, layout)}" marker-end="url(#{head})"/>'


def path_of(route: Route, layout: Layout) -> str:
    """Return an arrow's way as SVG path data: straight within layers, curved between them."""
    x, y = route.start
    parts = [f"M{_n(x)} {_n(y)}"]
    if route.edge.kind == "cycle":
        end_x, end_y = route.end
        out = max(box.x + box.width for box in layout.boxes.values()) + 24
        return f"M{_n(x)} {_n(y)}C{_n(out)} {_n(y)} {_n(out)} {_n(end_y)} {_n(end_x)} {_n(end_y)}"
    for bend in (*route.bends, Box(route.end[0], route.end[1], 0, 0)):
        if bend.x == x:
            parts.append(f"V{_n(bend.y + bend.height)}")
        else:
            middle = (y + bend.y) / 2
            parts.append(f"C{_n(x)} {_n(middle)} {_n(bend.x)} {_n(middle)} {_n(bend.x)} {_n(bend.y)}")
            if bend.height:
                parts.append(f"V{_n(bend.y + bend.height)}")
        x, y = bend.x, bend.y + bend.height
    return "".join(parts)


def _words(route: Route) -> Iterator[str]:
    box, label = route.label, route.edge.label
    if box is None:
        return
    yield (
        f'<g><title>{escape(label)}</title><rect class="under" x="{_n(box.x + 2)}" y="{_n(box.y)}" '
        f'width="{_n(box.width - 4)}" height="{_n(box.height)}" rx="4"/>'
        f'<text class="word" x="{_n(box.middle)}" y="{_n(box.y + box.height / 2 + 4)}">{escape(_cut(label, MOST_LABEL))}</text></g>'
    )


def _box(node: Node, box: Box) -> Iterator[str]:
    classes = " ".join(["box", node.type, *(["marked"] if node.marked else []), *(["faulty"] if node.faulty else [])])
    tip = f"{node.id} ({node.type})" + (f": {node.detail}" if node.detail else "")
    yield f"<g data-step={quoteattr(node.id)}><title>{escape(tip)}</title>"
    yield _shape(node, box, classes)
    second = _cut(node.detail or node.type, MOST_DETAIL)
    yield f'<text class="name" x="{_n(box.middle)}" y="{_n(box.y + 19)}">{escape(_cut(node.id, MOST_NAME))}</text>'
    yield f'<text class="detail" x="{_n(box.middle)}" y="{_n(box.y + 34)}">{escape(second)}</text></g>'


def _shape(node: Node, box: Box, classes: str) -> str:
    x, y, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    if node.type == "router":
        middle = y + box.height / 2
        points = [(x, middle), (x + 12, y), (right - 12, y), (right, middle), (right - 12, bottom), (x + 12, bottom)]
        return f'<polygon class="{classes}" points="{" ".join(f"{_n(a)},{_n(b)}" for a, b in points)}"/>'
    radius = 20 if node.type == "approval_gate" else 6
    frame = f'<rect class="{classes}" x="{_n(x)}" y="{_n(y)}" width="{_n(box.width)}" height="{_n(box.height)}" rx="{radius}"/>'
    if node.type == "subworkflow":
        inner = f'<path class="box {node.type}" d="M{_n(x + 6)} {_n(y)}V{_n(bottom)}M{_n(right - 6)} {_n(y)}V{_n(bottom)}"/>'
        return frame + inner
    return frame


def _n(value: float) -> str:
    """Return a number as short as it can be: halves of a pixel are enough."""
    rounded = round(value * 2) / 2
    return str(int(rounded)) if rounded == int(rounded) else str(rounded)
