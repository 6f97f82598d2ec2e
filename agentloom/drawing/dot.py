"""A picture in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.drawing.picture import Picture

SHAPES = {
    "router": "hexagon",
    "tool": "parallelogram",
    "subworkflow": "box3d",
    "approval_gate": "octagon",
    "embed": "cylinder",
    "agent": "component",
}


def dot(picture: Picture) -> str:
    """Return a digraph, layers kept as ranks."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    yield f"digraph {quoted(picture.name)} {{"
    yield '  node [shape=box, style=rounded, fontname="Helvetica"];'
    yield '  edge [fontname="Helvetica", fontsize=10];'
    for node in picture.nodes:
        shape = f", shape={SHAPES[node.type]}, style=solid" if node.type in SHAPES else ""
        label = f"{node.id}\n{node.detail}" if node.detail else node.id
        yield f"  {quoted(node.id)} [label={quoted(label)}{shape}];"
    for layer in picture.layers:
        if len(layer) > 1:
            yield f"  {{ rank=same; {' '.join(f'{quoted(node.id)};' for node in layer)} }}"
    for edge in picture.edges:
        about = [f"label={quoted(edge.label)}"] if edge.label else []
        if edge.kind == "cycle":
            about += ["style=dashed", "color=red", "constraint=false"]
        yield f"  {quoted(edge.source)} -> {quoted(edge.target)}" + (f" [{', '.join(about)}];" if about else ";")
    yield "}"


def quoted(text: str) -> str:
    """Return a text as a quoted string of DOT."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n")
    return f'"{inner}"'
