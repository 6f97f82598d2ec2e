"""What the last run of a workflow left to show in its text: how each step went, and what the state held at the end.

Plain data that somebody hands in: nothing here knows where it comes from. Steps are known by their paths in the run: `sub.s1` is step `s1`
of the workflow that step `sub` runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.ide.nested import written_in
from agentloom.language.paths import MISSING, Part
from agentloom.text import Span

FAILED = ("failed", "timeout")


class StepRun(NamedTuple):
    """How a step went. ``status`` is that of its result, or `running`; ``duration`` in seconds, ``cost`` in US dollars.

    ``text`` is what stood in the file for it: what a step failed of is told until that is edited. ``cut`` says that only the beginning
    of ``output`` is there, as a text.
    """

    path: str
    status: str
    text: str = ""
    duration: float = 0.0
    cost: float = 0.0
    tokens: int = 0
    error: str | None = None
    output: Any = None
    model: str | None = None
    provider: str | None = None
    warnings: tuple[str, ...] = ()


class LastRun(NamedTuple):
    """A run of a workflow: its id, how it ended (`running` while it goes on), its steps by path, and the state at the end."""

    run_id: str
    status: str
    steps: Mapping[str, StepRun] = {}
    state: Mapping[str, Any] = {}


class Placed(NamedTuple):
    """A step of a text, with its path in a run, and the workflow that it stands in."""

    path: str
    document: WorkflowDocument
    step: Step


def steps_in(document: WorkflowDocument, prefix: str = "") -> Iterator[Placed]:
    """Yield the steps of a text by their paths in a run, those of workflows written in place behind the step around them."""
    for name, step in document.by_id.items():
        yield Placed(prefix + name, document, step)
        child = written_in(document, step)
        if child is not None:
            yield from steps_in(child, f"{prefix}{name}.")


def text_of(document: WorkflowDocument, step: Step) -> str:
    """Return what stands in the file for a step."""
    span = step.alias or step.place(step.facts.node.span)
    return document.source.text[span.start : span.end]


def texts_of(document: WorkflowDocument, prefix: str = "") -> dict[str, str]:
    """Return what stands in the files for each step, by path, those of workflows in other files too."""
    found = {placed.path: text_of(placed.document, placed.step) for placed in steps_in(document, prefix)}
    for below, child in files_below(document, prefix):
        found |= texts_of(child, below)
    return found


def files_below(document: WorkflowDocument, prefix: str = "") -> Iterator[tuple[str, WorkflowDocument]]:
    """Yield the workflows in other files that the steps of a text run, each with what the paths of its steps begin with."""
    for placed in steps_in(document, prefix):
        child = placed.document.children.get(placed.step.id or "")
        if child is not None and child.path is not None and child.document is not None and not child.loop:
            yield f"{placed.path}.", child.document


def files_of(document: WorkflowDocument, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Yield the files of all workflows below a text, at any depth, each with what the paths of its steps begin with."""
    for below, child in files_below(document, prefix):
        if child.path is not None:
            yield below, child.path
        yield from files_of(child, below)


def below(last: LastRun, prefix: str) -> LastRun:
    """Return the part of a run that lies below a prefix, as the run of the workflow there; its state isn't known."""
    steps = {path.removeprefix(prefix): step for path, step in last.steps.items() if path.startswith(prefix)}
    return LastRun(last.run_id, last.status, steps)


def path_of(document: WorkflowDocument, wanted: WorkflowDocument, name: str) -> str | None:
    """Return the path of a step of a workflow in a text; None when that is none of the text's."""
    for placed in steps_in(document):
        if placed.document is wanted and placed.step.id == name:
            return placed.path
    return None


def failures(document: WorkflowDocument, last: LastRun) -> Iterator[tuple[Span, StepRun]]:
    """Yield the steps that failed and weren't edited since, each with where its name stands; of a failure inside a step, the inner one."""
    failed = {path: run for path, run in last.steps.items() if run.status in FAILED}
    if not failed:
        return
    found = {
        placed.path: placed.step.name_span
        for placed in steps_in(document)
        if placed.path in failed and failed[placed.path].text == text_of(placed.document, placed.step)
    }
    for path, span in found.items():
        if not any(other.startswith(f"{path}.") for other in found):
            yield span, failed[path]


def value_at(last: LastRun, parts: tuple[Part, ...]) -> Any:
    """Return what the state held at a path when the run ended; ``MISSING`` when there was nothing."""
    found: Any = last.state
    for part in parts:
        in_mapping = isinstance(found, Mapping) and isinstance(part, str) and part in found
        in_list = isinstance(found, list) and isinstance(part, int) and -len(found) <= part < len(found)
        if not in_mapping and not in_list:
            return MISSING
        found = found[part]
    return found
