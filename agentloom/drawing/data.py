"""A picture as plain data with positions, for programs that draw it themselves."""

from __future__ import annotations

import re
from typing import Any, Literal

from agentloom.drawing.layout import Route
from agentloom.drawing.picture import Picture
from agentloom.drawing.svg import arrange, path_of

VERSION = 1
"""Of the form; raised only when a reader of an older one would go wrong."""


Direction = Literal["down", "right"]
"""Where layers lead to."""
_PAIR = re.compile(r"(-?[\d.]+) (-?[\d.]+)|V")


def as_data(picture: Picture, direction: Direction = "down") -> dict[str, Any]:
    """Return nodes with their layers (from 1) and boxes, edges with their ways as SVG path data, all in pixels."""
    turned = direction == "right"
    layout = arrange(picture, turned)
    boxes = {name: box.turned if turned else box for name, box in layout.boxes.items()}

    def edge(route: Route) -> dict[str, Any]:
        found = {
            "source": route.edge.source,
            "target": route.edge.target,
            "kind": route.edge.kind,
            "label": route.edge.label,
            "critical": route.edge.marked,
            "path": _turned(path_of(route, layout)) if turned else path_of(route, layout),
        }
        if route.label is not None:
            label = route.label.turned if turned else route.label
            found["label_at"] = [round(label.middle, 1), round(label.y + label.height / 2, 1)]
        return found

    return {
        "version": VERSION,
        "name": picture.name,
        "width": round(layout.height if turned else layout.width, 1),
        "height": round(layout.width if turned else layout.height, 1),
        "nodes": [
            {
                "id": node.id,
                "type": node.type,
                "layer": node.layer + 1,
                "detail": node.detail,
                "critical": node.marked,
                "faulty": node.faulty,
                **{name: round(value, 1) for name, value in boxes[node.id]._asdict().items()},
            }
            for node in picture.nodes
        ],
        "edges": [edge(route) for route in layout.routes],
    }


def _turned(path: str) -> str:
    """Return path data of ours with x and y exchanged."""
    return _PAIR.sub(lambda found: "H" if found[0] == "V" else f"{found[2]} {found[1]}", path)
