"""What needs what, as a hierarchy: a step calls the steps that it depends on, and the workflow that it runs.

A workflow calls its last steps, those that no other depends on; so from the top one gets to every step, through files too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.hits import hit_at
from agentloom.ide.names.calls import links_of
from agentloom.ide.names.mentions import child_of
from agentloom.ide.names.scope import file_of
from agentloom.ide.nested import written_in
from agentloom.ide.results import Location, Project
from agentloom.text import Span


class Caller(NamedTuple):
    """What can call and be called: a step, or a workflow.

    ``trail`` finds it in its file again: the ids of the steps around it, from the outside in, and its own. That of a workflow
    ends with the step that it is written in, and is empty for the file's own.
    """

    kind: Literal["step", "workflow"]
    name: str
    detail: str
    place: Location
    trail: tuple[str, ...]


class Call(NamedTuple):
    """One caller or what is called, and the places in the caller's text where that is said."""

    end: Caller
    spans: tuple[Span, ...]


class _Here(NamedTuple):
    """A document with the ids of the steps that it is written in; ``step`` is one of its steps, or None for itself."""

    document: WorkflowDocument
    trail: tuple[str, ...]
    step: Step | None = None


def callers_at(document: WorkflowDocument, offset: int) -> list[Caller]:
    """Return what a place stands for: the step that is named there, else the step around it; the workflow at its name."""
    hit = hit_at(document, offset)
    if hit is None:
        return []
    trail = _trail_to(document, hit.document)
    if trail is None:
        return []
    named = next(
        (
            found.name
            for found in hit.facts.occurrences
            if found.kind == "step" and found.node is hit.node and found.span.shift(hit.base).contains(offset)
        ),
        None,
    )
    step = hit.document.by_id.get(named) if named is not None else hit.step
    if step is None:
        is_name = hit.step is None and hit.path == ("name",)
        return [_caller(_Here(hit.document, trail))] if is_name else []
    return [_caller(_Here(hit.document, trail, step))] if step.id is not None else []


def outgoing(document: WorkflowDocument, kind: str, trail: tuple[str, ...], project: Project) -> list[Call]:
    """Return what a step needs and runs, or what a workflow ends with; empty when it isn't there any more."""
    here = _find(document, kind, trail)
    if here is None:
        return []
    owner, step = here.document, here.step
    if step is None:
        last = [found for found in _steps(owner) if not owner.graph.dependents.get(found.id or "")]
        return [Call(_caller(here._replace(step=found)), (found.name_span,)) for found in last]
    needed: dict[str, list[Span]] = {}
    for dependency in step.facts.dependencies:
        if dependency.name in owner.by_id and dependency.name != step.id:
            needed.setdefault(dependency.name, []).append(step.place(dependency.span))
    calls = [Call(_caller(here._replace(step=owner.by_id[name])), tuple(spans)) for name, spans in needed.items()]
    return [*calls, *_runs(here, step, project)]


def incoming(document: WorkflowDocument, kind: str, trail: tuple[str, ...], project: Project) -> list[Call]:
    """Return the steps that need a step, and the workflow that ends with it; or the steps that run a workflow."""
    here = _find(document, kind, trail)
    if here is None:
        return []
    owner, step = here.document, here.step
    if step is not None:
        return list(_needed_by(here, owner, step))
    if here.trail:
        outer = _find(document, "step", here.trail)
        located = (
            outer.step.facts.fields.get("workflow_inline") if outer is not None and outer.step is not None else None
        )
        if outer is None or outer.step is None or located is None:
            return []
        return [Call(_caller(outer), (outer.step.place(located.key.span),))]
    return list(_run_by(file_of(document), project))


def _needed_by(here: _Here, owner: WorkflowDocument, step: Step) -> Iterator[Call]:
    dependents = owner.graph.dependents.get(step.id or "", ())
    for name in dependents:
        other = owner.by_id[name]
        spans = tuple(other.place(found.span) for found in other.facts.dependencies if found.name == step.id)
        yield Call(_caller(here._replace(step=other)), spans)
    if not dependents:
        yield Call(_caller(here._replace(step=None)), (step.name_span,))


def _runs(here: _Here, step: Step, project: Project) -> Iterator[Call]:
    """Yield the workflow that a step runs, written in it or in a file of its own."""
    inner = written_in(here.document, step)
    if inner is not None:
        located = step.facts.fields["workflow_inline"]
        below = _Here(inner, (*here.trail, step.id or ""))
        yield Call(_caller(below), (step.place(located.key.span),))
        return
    child = child_of(here.document, step)
    if child is None or child.path is None:
        return
    document = project.document(child.path)
    if document is not None:
        yield Call(_caller(_Here(document, ())), (step.place(step.facts.span_of("workflow_path")),))


def _run_by(file: str, project: Project) -> Iterator[Call]:
    """Yield the steps of all files that run a file."""
    parents = [links.file for links in project.each(links_of) if links is not None and file in links.runs]
    for parent in sorted(parents):
        document = project.document(Path(parent))
        for here in _everything(document) if document is not None else ():
            step = here.step
            child = child_of(here.document, step) if step is not None else None
            if step is not None and child is not None and child.path is not None and str(child.path) == file:
                yield Call(_caller(here), (step.place(step.facts.span_of("workflow_path")),))


def _everything(document: WorkflowDocument, trail: tuple[str, ...] = ()) -> Iterator[_Here]:
    """Yield every document in a text, and every step that can be found by its id."""
    yield _Here(document, trail)
    for step in _steps(document):
        yield _Here(document, trail, step)
        inner = written_in(document, step)
        if inner is not None:
            yield from _everything(inner, (*trail, step.id or ""))


def _steps(document: WorkflowDocument) -> Iterable[Step]:
    by_id: Mapping[str, Step] = document.by_id
    return by_id.values()


def _trail_to(document: WorkflowDocument, wanted: WorkflowDocument) -> tuple[str, ...] | None:
    if document is wanted:
        return ()
    return next((here.trail for here in _everything(document) if here.document is wanted), None)


def _find(document: WorkflowDocument, kind: str, trail: tuple[str, ...]) -> _Here | None:
    """Return what a trail leads to; None when the file has changed so that it leads nowhere."""
    around, last = (trail[:-1], trail[-1:]) if kind == "step" else (trail, ())
    for name in around:
        step = document.by_id.get(name)
        inner = written_in(document, step) if step is not None else None
        if inner is None:
            return None
        document = inner
    if not last:
        return _Here(document, around) if kind == "workflow" else None
    step = document.by_id.get(last[0])
    return _Here(document, around, step) if step is not None else None


def _caller(here: _Here) -> Caller:
    document, step = here.document, here.step
    if step is not None:
        whole = step.alias or step.place(step.facts.node.span)
        place = Location(document.source, step.name_span, whole)
        return Caller("step", step.id or "", step.type or "", place, (*here.trail, step.id or ""))
    head, base = document.head, document.base
    whole = head.node.span.shift(base)
    if not document.base and not here.trail:
        whole = Span(0, len(document.source.text))
    path = document.path
    name = " ".join((head.text("name") or "").split()) or (path.name.split(".")[0] if path is not None else "workflow")
    named = head.fields.get("name")
    span = head.span_of("name") if named is not None and named.via is None else head.first
    place = Location(document.source, span.shift(base), whole)
    return Caller("workflow", name, path.name if path is not None else "", place, here.trail)
