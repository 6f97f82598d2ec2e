"""The rule about steps that wait for branches of which only one runs."""

from __future__ import annotations

from collections.abc import Iterator

from agentloom.analysis.dataflow import dataflow
from agentloom.analysis.dataflow.tables import Tables, bits
from agentloom.analysis.document import WorkflowDocument
from agentloom.diagnostics import Finding, Related


def join_never_runs(document: WorkflowDocument) -> Iterator[Finding]:
    """A step depends on branches of a router that exclude each other, so it never runs.

    A step runs only if everything that it depends on has run, and of these only one does: whatever the router picks, the other branch is
    skipped, and with it this step and all that follow.

    Put router and branches into a subworkflow and depend on that: it ends well whichever branch was taken. Or depend on one branch only.
    """
    tables = dataflow(document).tables
    for at in bits(tables.dead):
        step = tables.steps[at]
        needs = [
            (tables.index[name], place) for place in step.facts.dependencies if (name := place.name) in tables.index
        ]
        if any(tables.dead >> need & 1 or _never_picks(tables, need, step.id or "") for need, _ in needs):
            continue  # told further up, or as AL209
        edges = {need: _edges(tables, need, step.id or "") for need, _ in needs}
        found = next(
            (
                (place, other, pair)
                for number, (need, place) in enumerate(needs)
                for before, other in needs[:number]
                if (pair := _clash(tables, edges[before], edges[need])) is not None
            ),
            None,
        )
        if found is None:
            continue
        place, other, (one, two) = found
        yield Finding(
            "AL212",
            step.place(place.span),
            f"{_who(other.name, one, step.id)} runs only if `{one[0]}` picks `{one[1]}`, {_who(place.name, two, step.id)} only if "
            + (f"it picks `{two[1]}`" if two[0] == one[0] else f"`{two[0]}` picks `{two[1]}`")
            + f", so `{step.id}` never runs; depend on one of them",
            related=(
                Related(step.place(other.span), f"`{other.name}` is needed here, too"),
                *_targets(document, one, two),
            ),
        )


def _never_picks(tables: Tables, need: int, name: str) -> bool:
    """Tell whether a dependency is a router that never picks a step."""
    ways = tables.routers.get(need)
    return ways is not None and ways.targets is not None and name not in ways.when


def _who(need: str, edge: tuple[str, str], name: str | None) -> str:
    """Return which of two steps needs a choice: a dependency, or the step itself where the dependency is the router."""
    return f"`{name}`" if edge == (need, name) else f"`{need}`"


def _edges(tables: Tables, need: int, name: str) -> int:
    """Return the edges that must be taken for a dependency to let a step run."""
    found = tables.needed[need]
    if need in tables.routers:
        found |= 1 << tables.edges.index((need, name))
    return found


def _clash(tables: Tables, some: int, others: int) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Return two edges that can't both be taken, each as a router and what it picks."""
    for edge in bits(some & ~others):
        rivals = tables.rivals(edge) & others
        for rival in bits(rivals):
            (a, one), (b, two) = tables.edges[edge], tables.edges[rival]
            return (tables.steps[a].id or "", one), (tables.steps[b].id or "", two)
    return None


def _targets(document: WorkflowDocument, *edges: tuple[str, str]) -> Iterator[Related]:
    for router, target in edges:
        step = document.by_id[router]
        for place in step.facts.occurrences:
            if (
                place.kind == "step"
                and place.role == "refer"
                and place.name == target
                and not place.key.startswith("depends_on")
            ):
                yield Related(step.place(place.span), f"`{router}` picks `{target}` here")
                break
