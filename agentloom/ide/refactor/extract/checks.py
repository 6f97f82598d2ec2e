"""What keeps steps where they are: anchors, steps in between, branches, agents of the file."""

from __future__ import annotations

from agentloom.ide.refactor.chunks import chunks_of, steps_of
from agentloom.ide.refactor.extract.selection import Selection
from agentloom.ide.refactor.naming import targets_of
from agentloom.ide.results import Refusal
from agentloom.syntax.aliases import walk
from agentloom.syntax.nodes import Alias


def check(selection: Selection) -> None:
    """Raise ``Refusal`` where the steps can't leave the graph that they are in."""
    if not selection.ids:
        raise Refusal("no step is selected")
    if not selection.document.ok:
        raise Refusal("the file has errors; mend them first")
    chunks_of(selection.document, steps_of(selection.document))
    _check_anchors(selection)
    _check_order(selection)
    _check_routers(selection)
    _check_branches(selection)
    _check_agents(selection)


def _check_anchors(selection: Selection) -> None:
    if any(selection.step(name).alias is not None for name in selection.ids):
        raise Refusal("a selected step is an alias of another one")
    if "&" not in selection.document.source.text:
        return
    items = chunks_of(selection.document, steps_of(selection.document)).items
    inside = {id(node) for at, item in enumerate(items) if selection.has(at) for node in walk(item.node)}
    for node in walk(selection.document.tree.root):
        if isinstance(node, Alias) and node.target is not None and (id(node) in inside) != (id(node.target) in inside):
            raise Refusal(
                f"`*{node.name}` and its anchor would stand in different workflows; write out what it stands for"
            )


def _check_order(selection: Selection) -> None:
    below = selection.graph.descendants(*selection.ids)
    above = selection.graph.ancestors(*selection.ids)
    between = [
        name
        for name in selection.graph.dependencies
        if name in below and name in above and name not in selection.inside
    ]
    if between:
        raise Refusal(f"step `{between[0]}` runs between the selected ones; select it, too")


def _check_routers(selection: Selection) -> None:
    """Routers choose on their side of the border; or one of them the step that all the others wait for."""
    graph, inside = selection.graph, selection.inside
    for name, step in selection.document.by_id.items():
        targets = targets_of(step)
        if name in inside:
            outside = [target for target in targets if target not in inside]
            if outside:
                raise Refusal(f"router `{name}` chooses `{outside[0]}`, which isn't selected; select it, too")
            continue
        entries = inside.intersection(targets)
        for entry in sorted(entries):
            if len(entries) > 1 or any(n != entry and not graph.is_upstream(entry, n) for n in selection.ids):
                raise Refusal(f"router `{name}` chooses `{entry}`, and not all selected steps wait for that one alone")


def _check_branches(selection: Selection) -> None:
    """A subworkflow runs as a whole or not at all, and always ends."""
    graph, inside, choices = selection.graph, selection.inside, selection.accesses.choices
    for name in selection.ids:
        own = [router for router in choices.get(name, {}) if router in inside]
        waiting = [other for other in graph.dependents[name] if other not in inside]
        if waiting and (own or selection.step(name).type == "router"):
            why = f"runs only if `{own[0]}` chooses so" if own else "is a router"
            raise Refusal(f"step `{waiting[0]}` depends on `{name}`, which {why}; a subworkflow always ends")
    for need in selection.outer_needs:
        router = selection.step(need).type == "router"
        if not router and not choices.get(need):
            continue
        targets = targets_of(selection.step(need))
        never = [n for n in selection.ids if router and need in graph.dependencies[n] and n not in targets]
        if never:
            raise Refusal(f"step `{never[0]}` depends on router `{need}`, which never chooses it")
        free = [n for n in selection.ids if not graph.is_upstream(need, n)]
        if free:
            raise Refusal(f"step `{free[0]}` runs even if `{need}` is skipped, and the new step wouldn't")


def _check_agents(selection: Selection) -> None:
    agents = selection.document.head.data.get("agents")
    for name in selection.ids:
        for found in selection.step(name).facts.occurrences:
            if found.kind == "agent" and isinstance(agents, dict) and found.name in agents:
                raise Refusal(f"step `{name}` runs the agent `{found.name}`, which this file defines")
