"""A picture as plain text: a step a line, layer by layer, with what it waits for."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.drawing.picture import Picture


def plain(picture: Picture) -> str:
    """Return the text. What is behind `<-` runs before; in brackets what a router asks."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    above: dict[str, list[str]] = {}
    for edge in picture.edges:
        words = [edge.label, "closes a cycle" if edge.kind == "cycle" else ""]
        said = ", ".join(_flat(word) for word in words if word)
        above.setdefault(edge.target, []).append(_flat(edge.source) + (f" [{said}]" if said else ""))
    yield _flat(picture.name)
    for number, nodes in enumerate(picture.layers, 1):
        yield f"layer {number}"
        for node in nodes:
            waits = f" <- {', '.join(above[node.id])}" if node.id in above else ""
            yield f"  {_flat(node.id)} ({_flat(node.detail)}){waits}"


def _flat(text: str) -> str:
    return " ".join(text.split())
