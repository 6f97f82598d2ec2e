"""Rules about other files: children that are missing, broken, or lead back here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentloom.analysis import edits
from agentloom.analysis.document import Child, Facts, WorkflowDocument, word_span
from agentloom.diagnostics import Finding, Fix, Related, Severity
from agentloom.model.sources import names_file
from agentloom.similar import closest
from agentloom.syntax.nodes import Scalar
from agentloom.syntax.values import find
from agentloom.text import Span

MOST_RELATED = 5
"""Errors of a child that are shown with the reference to it."""


def missing_file(document: WorkflowDocument) -> Iterator[Finding]:
    """A file that the workflow names doesn't exist, or can't be read.

    Paths are relative to the file they stand in, never to the folder in which the command is run.

    Correct the path, or create the file.
    """
    yield from _missing(document, document.head, document.base, "")
    for step in document.steps:
        yield from _missing(document, step.facts, step.base, step.id or "")


def _missing(document: WorkflowDocument, facts: Facts, base: int, step_id: str) -> Iterator[Finding]:
    for place in facts.files:
        if not place.name or place.key.startswith("config.sandbox."):
            continue  # what the sandbox allows need not be there yet
        reason = "it does not exist"
        if place.key == "workflow_path":
            child = document.children.get(step_id)
            if child is None or child.missing is None:
                continue
            reason = child.missing
        elif place.name in document.agents:
            child = document.agents[place.name]
            if child.missing is None:
                continue
            reason = child.missing
        elif place.key.rpartition(".")[2] == "agent":
            continue  # the name of one
        elif not names_file(place.name):
            continue  # made at run time, or not a file here
        home = document.path
        if home is None:
            yield Finding(
                "AL701",
                place.span,
                f"`{place.name}` can't be looked up yet; save this file first, paths are relative to it",
                severity=Severity.INFORMATION,
            ).shift(base)
            continue
        folder = Path(os.path.abspath(home)).parent
        try:
            target = folder / place.name
            read = place.key == "workflow_path" or place.name in document.agents
            if not read and document.context.exists(target):
                continue
        except (OSError, ValueError):
            reason = "it is no path that can be opened"
            target = folder
        yield _finding(document, facts, place.key, place.name, target, reason, base)


def _finding(
    document: WorkflowDocument, facts: Facts, key: str, name: str, target: Path, reason: str, base: int
) -> Finding:
    path = tuple(int(part) if part.isdigit() else part for part in key.split("."))
    node = find(facts.node, path)
    near = _neighbour(document, target)
    fixes: tuple[Fix, ...] = ()
    cure = "create it or correct the path" if reason.endswith("does not exist") else "correct the path"
    if near is not None:
        better = name[: len(name) - len(target.name)] + near
        cure = f"did you mean `{better}`?"
        if isinstance(node, Scalar):
            fixes = (Fix(f"change to `{better}`", edits.replace_value(node, better), safe=False),)
    span = word_span(node) if node is not None else facts.first
    return Finding("AL701", span, f"file `{name}` {reason.removeprefix('it ')}; {cure}", fixes=fixes).shift(base)


def _neighbour(document: WorkflowDocument, target: Path) -> str | None:
    """Return the name of a file beside a missing one that was probably meant: alike before the extension, and not ourselves."""
    if target.name in ("", ".", "..") or document.context.exists(target):
        return None  # there is something, but not what is needed
    own = document.path.name if document.path else None
    by_stem: dict[str, str] = {}
    for name in document.context.list_folder(target.parent):
        if name not in (own, target.name):
            by_stem.setdefault(name.split(".", 1)[0], name)
    stem = target.name.split(".", 1)[0]
    near = closest(stem, by_stem) if stem else None
    return by_stem[near] if near else None


def broken_subworkflow(document: WorkflowDocument) -> Iterator[Finding]:
    """The file of a subworkflow or of an agent has errors.

    The step would fail for good. The file's first errors are listed with the reference to it.

    Open that file and mend it.
    """
    yield from _broken_agents(document)
    for step in document.steps:
        child = document.children.get(step.id or "")
        if child is None or child.path is None or child.document is None or child.loop or child.document.ok:
            continue
        yield _broken(step.place(step.facts.span_of("workflow_path")), step.facts.text("workflow_path") or "", child)


def _broken_agents(document: WorkflowDocument) -> Iterator[Finding]:
    broken = {
        name: child
        for name, child in document.agents.items()
        if child.document is not None and not child.loop and not child.document.ok
    }
    for facts, base in ((document.head, document.base), *((step.facts, step.base) for step in document.steps)):
        for place in facts.files if broken else ():
            if place.name in broken:
                yield _broken(_span(facts, place.key).shift(base), place.name, broken[place.name])


def _span(facts: Facts, key: str) -> Span:
    node = find(facts.node, tuple(int(part) if part.isdigit() else part for part in key.split(".")))
    return word_span(node) if node is not None else facts.first


def _broken(span: Span, name: str, child: Child) -> Finding:
    assert child.document is not None
    errors = [d for d in child.document.diagnostics if d.severity is Severity.ERROR]
    count = "an error; mend it first" if len(errors) == 1 else f"{len(errors)} errors; mend them first"
    return Finding(
        "AL702",
        span,
        f"`{name}` has {count}",
        related=tuple(
            Related(error.span, f"{error.code}: {error.message}", str(child.path)) for error in errors[:MOST_RELATED]
        ),
    )


def subworkflow_cycle(document: WorkflowDocument) -> Iterator[Finding]:
    """A workflow runs itself, directly or through other files.

    It would never end.

    Take one of the references out.
    """
    for step in document.steps:
        child = document.children.get(step.id or "")
        if child is not None and child.loop:
            names = " -> ".join(path.name for path in child.loop)
            yield Finding(
                "AL703",
                step.place(step.facts.span_of("workflow_path")),
                f"this workflow runs itself: `{names}`; take one of the references out",
            )
