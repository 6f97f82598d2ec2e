"""The graph of a workflow as a picture: its steps in their layers, what routers ask on the arrows to their branches."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.graph import Graph, build_graph, find_cycles
from agentloom.analysis.labels import branch_labels, detail_of
from agentloom.diagnostics import Severity
from agentloom.drawing.picture import Edge, Kind, Node, Picture


def picture(document: WorkflowDocument, critical: Collection[str] = ()) -> Picture:
    """Return the picture of a workflow, also of one with mistakes; ``critical`` are the steps of the critical path.

    Of steps with one id, the first is drawn. A cycle is cut where the check says that it closes, and drawn there as such.
    """
    graph, closing = _without_cycles(document.graph)
    faulty = _faulty(document)
    order = {name: at for at, name in enumerate(document.by_id)}
    nodes = tuple(
        Node(
            name,
            document.by_id[name].type or "",
            graph.layer_of[name],
            detail_of(document.by_id[name].facts.data),
            name in critical,
            name in faulty,
        )
        for name in sorted(order, key=lambda name: (graph.layer_of[name], order[name]))
    )
    edges = tuple(_edges(document, graph, closing, critical))
    return Picture(str(document.head.data.get("name") or "workflow"), nodes, edges)


def _without_cycles(graph: Graph) -> tuple[Graph, set[tuple[str, str]]]:
    """Return a graph without cycles, and the edges (step, its dependency) that were taken out."""
    closing = {(loop[-1], loop[0]) for loop in find_cycles(graph.dependencies)}
    if not closing:
        return graph, closing
    kept = {name: [need for need in needs if (name, need) not in closing] for name, needs in graph.dependencies.items()}
    cut = build_graph(kept)
    if len(cut.layer_of) < len(kept):  # a tangle with more loops than are told: the rest of it has no order
        rest = {name for name in kept if name not in cut.layer_of}
        closing |= {(name, need) for name in rest for need in kept[name] if need in rest}
        cut = build_graph({name: [n for n in needs if (name, n) not in closing] for name, needs in kept.items()})
    return cut, closing


def _edges(
    document: WorkflowDocument, graph: Graph, closing: set[tuple[str, str]], critical: Collection[str]
) -> Iterator[Edge]:
    asked = {name: branch_labels(step.facts.data) for name, step in document.by_id.items() if step.type == "router"}
    for name, needs in document.graph.dependencies.items():
        for need in needs:
            label = asked.get(need, {}).get(name, "")
            kind: Kind = "cycle" if (name, need) in closing else "branch" if label else "plain"
            yield Edge(need, name, kind, label, name in critical and need in critical and kind != "cycle")


def _faulty(document: WorkflowDocument) -> set[str]:
    found: set[str] = set()
    errors = [d.span.start for d in document.diagnostics if d.severity is Severity.ERROR]
    if not errors:
        return found
    for name, step in document.by_id.items():
        span = step.alias or step.place(step.facts.node.span)
        if any(span.start <= at <= span.end for at in errors):
            found.add(name)
    return found
