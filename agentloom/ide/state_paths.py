"""State paths as a step sees them: who writes what, what is there from the start, and which names stand below a path.

Everything comes from the file: `state`, what steps write, the shapes that are known of results, settings. Nothing is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentloom.analysis.dataflow import dataflow
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.rules.collisions import router_choices
from agentloom.ide.around import Around
from agentloom.ide.result_shapes import NOTHING, below, shape_of_result, shape_of_write
from agentloom.language.paths import MISSING, Part, get

RESULTS = "steps"
"""The state key under which the engine keeps results."""


class Writer(NamedTuple):
    """A step that writes a path, something above it or something below it; ``parts`` is what it writes.

    ``upstream`` tells whether the reading step waits for it. ``routes`` are the choices of routers with which it runs.
    """

    step: Step
    parts: tuple[Part, ...]
    upstream: bool
    routes: tuple[tuple[str, str], ...] = ()


class Known(NamedTuple):
    """A name below a path, and what is known of it. ``writers`` are in file order, those upstream first.

    ``given``: it stands in `state`; ``declared``: the settings or `state_schema` name it. ``deeper``: names are known below it.
    ``origin`` says what kind of value it is, ``outside`` where it comes from when it isn't this workflow.
    """

    name: Part
    writers: tuple[Writer, ...] = ()
    given: bool = False
    value: Any = None
    declared: bool = False
    deeper: bool = False
    origin: str = ""
    outside: str = ""


def writers_of(document: WorkflowDocument, parts: Sequence[Part], step: Step | None) -> tuple[Writer, ...]:
    """Return the steps that write a path, something above it or something below it; those upstream of ``step`` first."""
    upstream = scope_of(document, step)
    found: list[Writer] = []
    choices: Mapping[str, Mapping[str, str]] | None = None
    wanted = tuple(parts)
    for own in document.steps:
        for write in own.facts.writes:
            shorter = min(len(write.parts), len(wanted))
            if write.parts[:shorter] != wanted[:shorter]:
                continue
            if choices is None:
                choices = router_choices(document) if any(step.type == "router" for step in document.steps) else {}
            routes = tuple(choices.get(own.id, {}).items()) if own.id is not None else ()
            found.append(Writer(own, write.parts, upstream(own), routes))
    return tuple(sorted(found, key=lambda writer: not writer.upstream))


def initial_value(document: WorkflowDocument, parts: Sequence[Part]) -> Any:
    """Return what `state` sets at a path, or ``MISSING``."""
    state = document.head.data.get("state")
    return get(state, parts) if isinstance(state, dict) else MISSING


def names_below(
    document: WorkflowDocument, parts: Sequence[Part], step: Step | None, outer: Around | None = None
) -> tuple[Known, ...]:
    """Return the names that may follow a path, as seen from a step: those in scope first, upstream writers before all.

    For a workflow written in place, ``outer`` is what is around it: what comes from there follows.
    """
    head = tuple(parts)
    known = _names_below(document, head, step)
    if outer is None or head[:1] == (RESULTS,):
        return known
    seen = {found.name for found in known}
    return (*known, *(found for found in _from_around(head, outer) if found.name not in seen))


def _from_around(head: tuple[Part, ...], outer: Around) -> Iterator[Known]:
    """Yield what a workflow written in place is handed."""
    if not head:
        for name in sorted(outer.given):
            yield Known(name, outside=f"from `input` of {outer.step.id}")
    if outer.isolated:
        return
    for found in names_below(outer.document, head, outer.step, outer.around):
        there = found.outside or found.given or found.declared or any(writer.upstream for writer in found.writers)
        if there and found.name != RESULTS and found.name not in outer.given:
            value = found.value if found.given else None
            yield Known(
                found.name, given=found.given, value=value, deeper=found.deeper, outside=found.outside or "from around"
            )


def _names_below(document: WorkflowDocument, head: tuple[Part, ...], step: Step | None) -> tuple[Known, ...]:
    if head[:1] == (RESULTS,):
        return tuple(_results(document, head[1:], step))
    upstream = scope_of(document, step)
    found: dict[Part, list[Writer]] = {}
    deeper: set[Part] = set()
    origin: dict[Part, str] = {}
    for own in document.steps:
        for write in own.facts.writes:
            shorter = min(len(write.parts), len(head))
            if write.parts[:shorter] != head[:shorter]:
                continue
            writer = Writer(own, write.parts, upstream(own))
            if len(write.parts) > len(head):
                found.setdefault(write.parts[len(head)], []).append(writer)
                if len(write.parts) > len(head) + 1 or shape_of_write(document, own, write.parts) != NOTHING:
                    deeper.add(write.parts[len(head)])
                continue
            for name, inner in below(shape_of_write(document, own, write.parts), head[len(write.parts) :]).items():
                found.setdefault(name, []).append(writer)
                origin.setdefault(name, inner.words)
                if inner.names:
                    deeper.add(name)
    value = initial_value(document, head)
    given = _entries(value)
    declared: dict[Part, None] = {}
    for path in _declared(document):
        if len(path) > len(head) and path[: len(head)] == head:
            declared[path[len(head)]] = None
            if len(path) > len(head) + 1:
                deeper.add(path[len(head)])
    names = dict.fromkeys((*found, *given, *declared))
    known = [
        Known(
            name,
            tuple(sorted(found.get(name, ()), key=lambda writer: not writer.upstream)),
            name in given,
            given.get(name),
            name in declared,
            name in deeper or bool(_entries(given.get(name))),
            origin.get(name, ""),
        )
        for name in names
        if name != RESULTS or head
    ]
    known.sort(key=_rank)
    if not head and document.steps:
        known.append(Known(RESULTS, deeper=True))
    return tuple(known)


def _rank(known: Known) -> int:
    if any(writer.upstream for writer in known.writers):
        return 0
    return 1 if known.given or known.declared else 2


def _results(document: WorkflowDocument, parts: Sequence[Part], step: Step | None) -> Iterator[Known]:
    """Yield what stands below `steps`: the ids of other steps, then what a result holds."""
    upstream = scope_of(document, step)
    if not parts:
        others = [own for name, own in document.by_id.items() if step is None or name != step.id]
        others.sort(key=lambda own: not upstream(own))
        for own in others:
            yield Known(own.id or "", (Writer(own, (RESULTS, own.id or ""), upstream(own)),), deeper=True)
        return
    named = document.by_id.get(str(parts[0]))
    if named is None:
        return
    shape = shape_of_result(document, named)
    writer = Writer(named, (RESULTS, named.id or ""), upstream(named))
    if len(parts) == 1:
        yield Known("output", (writer,), deeper=shape != NOTHING)
        yield Known("status", (writer,))
    elif parts[1] == "output":
        for name, inner in below(shape, parts[2:]).items():
            yield Known(name, (writer,), deeper=bool(inner.names), origin=inner.words)


def scope_of(document: WorkflowDocument, step: Step | None) -> Callable[[Step], bool]:
    """Return what tells whether a step is waited for; seen from the head, every step counts.

    Steps on a cycle, and those whose id is missing or taken, are asked for what they depend on themselves.
    """
    if step is None:
        return lambda own: True
    graph, name = document.graph, step.id
    if name is not None and name in graph.layer_of and document.by_id.get(name) is step:
        return lambda own: own.id is not None and graph.is_upstream(own.id, name)
    above = {need for need in step.needs if need in document.by_id}
    for need in tuple(above):
        above |= graph.ancestors(need)
    return lambda own: own.id in above and own is not step


def _entries(value: Any) -> dict[Part, Any]:
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if isinstance(key, str)}
    if isinstance(value, list):
        return dict(enumerate(value[:20]))
    return {}


def _declared(document: WorkflowDocument) -> Iterator[tuple[str, ...]]:
    """Yield the paths whose values come with the run: named in settings, in `state_schema` or in a comment."""
    yield from dataflow(document).declared.expected
