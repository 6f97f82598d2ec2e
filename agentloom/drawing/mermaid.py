"""A picture as a Mermaid flowchart, which GitHub and many editors draw."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.drawing.picture import Picture

SHAPES = {
    "router": ("{{", "}}"),
    "tool": ("[/", "/]"),
    "subworkflow": ("[[", "]]"),
    "approval_gate": ("([", "])"),
    "embed": ("[(", ")]"),
    "agent": (">", "]"),
}
_OTHERS = ("(", ")")


def mermaid(picture: Picture) -> str:
    """Return the flowchart, from the top down. Ids that Mermaid takes are its ids; others get a number."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    names: dict[str, str] = {}
    for number, node in enumerate(picture.nodes):
        plain = node.id.isascii() and node.id.replace("_", "a").isalnum() and node.id[0].isalpha()
        names[node.id] = node.id if plain and node.id.lower() not in RESERVED else f"n{number}_"
        left, right = SHAPES.get(node.type, _OTHERS)
        yield f'  {names[node.id]}{left}"{quoted(node.id)}"{right}'
    for edge in picture.edges:
        source, target = names[edge.source], names[edge.target]
        arrow = "-.->" if edge.kind == "cycle" else "-->"
        label = f'|"{quoted(edge.label)}"|' if edge.label else ""
        yield f"  {source} {arrow}{label} {target}"


RESERVED = frozenset({
    "end", "graph", "flowchart", "subgraph", "style", "class", "classdef", "click", "linkstyle", "direction", "default",
    "call", "href", "o", "x",
})  # fmt: skip
"""Words that mean something to Mermaid where a node's id stands."""


def quoted(text: str) -> str:
    """Return a text as it stands between quotes: on one line, with entities for what Mermaid or HTML would read."""
    shown = " ".join(text.split())
    for char, entity in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        shown = shown.replace(char, entity)
    return shown
