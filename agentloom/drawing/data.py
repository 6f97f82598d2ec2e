"""A picture as plain data with positions, for programs that draw it themselves."""

from __future__ import annotations

from typing import Any

from agentloom.drawing.layout import Route
from agentloom.drawing.picture import Picture
from agentloom.drawing.svg import arrange, path_of

VERSION = 1
"""Of the form; raised only when a reader of an older one would go wrong."""


def as_data(picture: Picture) -> dict[str, Any]:
    """Return nodes with their layers (from 1) and boxes, edges with their ways as SVG path data, all in pixels."""
    layout = arrange(picture)

    def edge(route: Route) -> dict[str, Any]:
        found = {
            "source": route.edge.source,
            "target": route.edge.target,
            "kind": route.edge.kind,
            "label": route.edge.label,
            "critical": route.edge.marked,
            "path": path_of(route, layout),
        }
        if route.label is not None:
            found["label_at"] = [round(route.label.middle, 1), round(route.label.y + route.label.height / 2, 1)]
        return found

    return {
        "version": VERSION,
        "name": picture.name,
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "nodes": [
            {
                "id": node.id,
                "type": node.type,
                "layer": node.layer + 1,
                "detail": node.detail,
                "critical": node.marked,
                "faulty": node.faulty,
                **{name: round(value, 1) for name, value in layout.boxes[node.id]._asdict().items()},
            }
            for node in picture.nodes
        ],
        "edges": [edge(route) for route in layout.routes],
    }
