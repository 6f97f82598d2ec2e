"""One run for people: which one is meant, and the lines about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from agentloom.checkpointing.files import FileCheckpointer
from agentloom.checkpointing.history import History, RunRecord
from agentloom.cli.cells import draw, visible
from agentloom.cli.console import BOLD, DIM, RED, Look
from agentloom.cli.stores import LATEST, all_runs, refuse_nothing
from agentloom.cli.summary import MARK_STYLES, OTHER_STEP_MARK, RUN_MARKS, STEP_MARKS, dollars, one_line, seconds
from agentloom.cli.tables import columns, count
from agentloom.core.keeping.showing import ShownRun, ShownStep, show_run
from agentloom.errors import WorkflowError
from agentloom.similar import closest

MOST_LINES = 30
"""Lines of a prompt that are shown; ``--json`` has the whole of it."""

_GOING_ON = {"queued": "[...]", "running": "[...]", "interrupted": "[CUT]", "cancelled": "[CUT]", "unknown": "[?]"}


def shown_run(store: FileCheckpointer, history: History, word: str) -> ShownRun:
    """Return the run that a word names: its id, the beginning of it, or `latest`. Raises ``WorkflowError``, which says what there is."""
    refuse_nothing(word)
    with suppress(KeyError):
        return show_run(store, history, word)
    remembered: list[RunRecord] = []
    with suppress(OSError):
        remembered = history.runs()[0]
    times = {run.run_id: run.timestamp for run in remembered}
    times |= {run.run_id: max(run.updated_at, times.get(run.run_id, "")) for run in all_runs(store)[0]}
    if word == LATEST:
        if not times:
            raise WorkflowError(f"there is no run in `{store.folder}` or `{history.folder}`")
        return show_run(store, history, max(times, key=lambda name: times[name]))
    fitting = sorted(name for name in times if name.startswith(word))
    if len(fitting) == 1:
        return show_run(store, history, fitting[0])
    if fitting:
        names = ", ".join(f"`{name}`" for name in fitting[:5])
        raise WorkflowError(f"`{word}` begins the ids of {len(fitting)} runs: {names}; write more of it")
    near = closest(word, list(times))
    cure = f"did you mean `{near}`?" if near else "`agentloom runs` and `agentloom history` list them"
    raise WorkflowError(f"there is no run `{word}` in `{store.folder}` or `{history.folder}`; {cure}")


def lines_of(run: ShownRun, look: Look) -> Iterator[str]:
    """Yield the lines about a run."""
    mark = RUN_MARKS.get(run.status) or _GOING_ON.get(run.status, "[FAIL]")
    name = look.paint(visible(run.workflow_name, look.encoding), BOLD)
    yield f"{look.paint(mark, MARK_STYLES.get(mark, RED))} {name}"
    rows = [("run", run.run_id), ("status", visible(run.status, look.encoding))]
    if run.paused_step_id:
        rows.append(("waits at", visible(run.paused_step_id, look.encoding)))
    if run.source:
        rows.append(("file", visible(run.source, look.encoding)))
    rows.append(("started", visible(run.started_at[:19], look.encoding)))
    if run.updated_at:
        rows.append(("updated", visible(run.updated_at[:19], look.encoding)))
    if run.duration_ms is not None:
        rows.append(("duration", seconds(run.duration_ms)))
    rows += [("tokens", str(run.total_tokens)), ("cost", dollars(run.total_cost_usd))]
    if run.providers_used:
        rows.append(("models", visible(", ".join(run.providers_used), look.encoding)))
    if run.error:
        rows.append(("error", one_line(run.error, look)))
    yield from columns(rows)
    if not run.steps:
        yield "  steps     unknown: neither a checkpoint nor its record tells of them"
        return
    yield "  steps"
    edge = max(draw(visible(step.step, look.encoding), look.encoding).width for step in run.steps)
    for step in run.steps:
        yield from _step(step, edge, look)


def _step(step: ShownStep, edge: int, look: Look) -> Iterator[str]:
    mark = STEP_MARKS.get(step.status) or _GOING_ON.get(step.status, OTHER_STEP_MARK)
    shown = visible(step.step, look.encoding)
    pad = " " * (edge - draw(shown, look.encoding).width)
    yield f"    {look.paint(f'{mark:8}', MARK_STYLES.get(mark, RED))} {shown}{pad}  {_facts(step, look)}".rstrip()
    for name, text in step.prompts.items():
        lines = text.splitlines() or [""]
        yield f"             {look.paint(name.replace('_', ' '), DIM)}"
        for line in lines[:MOST_LINES]:
            yield f"               {visible(line, look.encoding)}".rstrip()
        if len(lines) > MOST_LINES:
            yield f"               {look.more} {count(len(lines) - MOST_LINES, 'line')} more; `--json` has them"


def _facts(step: ShownStep, look: Look) -> str:
    facts: list[str] = []
    if step.status not in ("skipped", "running", "interrupted", "cancelled"):
        facts.append(seconds(step.duration_ms))
    if step.attempts > 1:
        facts.append(count(step.attempts, "attempt"))
    if step.tokens:
        facts.append(count(step.tokens, "token"))
    if step.cost_usd:
        facts.append(dollars(step.cost_usd))
    if step.model:
        facts.append(visible(f"{step.provider}/{step.model}" if step.provider else step.model, look.encoding))
    if step.error:
        facts.append(one_line(step.error, look))
    return "  ".join(facts)
