"""Lenses: what can be done with a workflow, in a line above its name and above each step.

What there is on the disk and what runs at the moment is handed in as plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentloom.analysis.document import WorkflowDocument
from agentloom.text import Span

MOST_RUNS = 3
"""Kept runs that are offered to go on with."""
SHORT = 6
"""Characters of a run's id that tell it from its neighbours."""


class KeptRun(NamedTuple):
    """A run that can go on. ``waits_at`` is the gate at which it waits; ``folder`` is where it is kept."""

    run_id: str
    status: str
    waits_at: str | None = None
    folder: str = ""


class OngoingRun(NamedTuple):
    """A run that goes on now: how many of its steps are done."""

    run_id: str
    done: int
    steps: int


class Lens(NamedTuple):
    """Words above a place, and the command behind them with its one argument."""

    span: Span
    title: str
    command: str
    argument: Mapping[str, Any]


class Runs(NamedTuple):
    """What is known of the runs of a workflow. ``recording`` names the file that a replay takes its replies from."""

    ongoing: Sequence[OngoingRun] = ()
    kept: Sequence[KeptRun] = ()
    recording: str | None = None


def lenses(document: WorkflowDocument, runs: Runs, steps: bool = True, workflow: bool = True) -> list[Lens]:
    """Return the lenses of a workflow, in the order in which they are shown: its own, and those of its steps, as is wanted."""
    if document.kind != "workflow" or not document.steps:
        return []
    return [*(_of_workflow(document, runs) if workflow else ()), *(_of_steps(document) if steps else ())]


def _of_workflow(document: WorkflowDocument, runs: Runs) -> Iterator[Lens]:
    span = document.head.fields["name"].key.span if "name" in document.head.fields else document.head.first
    span = span.shift(document.base)
    uri = {"uri": document.source.uri}
    for going in runs.ongoing:
        yield Lens(
            span, f"■ Cancel {short(going.run_id)}{_progress(going)}", "agentloom.cancel", {"runId": going.run_id}
        )
    yield Lens(span, "▶ Run", "agentloom.run", uri)
    yield Lens(span, "▶ Run with mock", "agentloom.runWithMock", uri)
    if runs.recording is not None:
        yield Lens(span, "⟲ Replay", "agentloom.replay", {**uri, "recording": runs.recording})
    for kept in runs.kept[:MOST_RUNS]:
        again = {**uri, "runId": kept.run_id, "folder": kept.folder}
        if kept.waits_at is not None:
            at = f"{short(kept.run_id)} at {kept.waits_at}"
            yield Lens(span, f"✓ Approve {at}", "agentloom.approve", again)
            yield Lens(span, f"✗ Reject {at}", "agentloom.reject", again)
        else:
            yield Lens(span, f"⏵ Resume {short(kept.run_id)} ({words(kept.status)})", "agentloom.resume", again)


def _of_steps(document: WorkflowDocument) -> Iterator[Lens]:
    uri = document.source.uri
    for name, step in document.by_id.items():
        yield Lens(step.name_span, "▶ Run up to here", "agentloom.run", {"uri": uri, "until": name})


def short(run_id: str) -> str:
    """Return enough of a run's id for people to tell it from others."""
    return run_id[:SHORT]


def words(status: str) -> str:
    """Return a status in words."""
    return {"success": "ended early", "budget_exceeded": "over budget", "timeout": "out of time"}.get(status, status)


def _progress(going: OngoingRun) -> str:
    return f" ({going.done} of {going.steps})" if going.steps else ""
