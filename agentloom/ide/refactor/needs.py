"""Dependencies after a refactoring: those that others imply now, and didn't before, are left out."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.graph import Graph, build_graph


def routers_of(document: WorkflowDocument) -> frozenset[str]:
    """Return the ids of a workflow's routers: a dependency on one of them chooses, and is implied by none."""
    return frozenset(name for name, step in document.by_id.items() if step.type == "router")


def without_implied(
    needs: Mapping[str, Sequence[str]], before: Graph, routers: Container[str]
) -> dict[str, tuple[str, ...]]:
    """Return dependencies without those that follow from others; what followed from others ``before`` stays as it was."""
    graph = build_graph(needs)
    found: dict[str, tuple[str, ...]] = {}
    for name, listed in needs.items():
        old = before.dependencies.get(name, ())
        found[name] = tuple(
            need
            for need in dict.fromkeys(listed)
            if need in routers
            or not any(graph.is_upstream(need, other) for other in listed)
            or (need in old and any(before.is_upstream(need, other) for other in old))
        )
    return found
