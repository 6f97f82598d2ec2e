"""One run with all that is known of it: its record in the history, its checkpoint, and its journal while it goes on or if it was killed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentloom.checkpointing.base import CheckpointData
from agentloom.checkpointing.files import FileCheckpointer
from agentloom.checkpointing.history import History, RunRecord
from agentloom.core.keeping.runs import INTERRUPTED, RUNNING, journal_of, load_run
from agentloom.core.results import JSON
from agentloom.durable.journal import read_journal
from agentloom.durable.recorded import Recorded
from agentloom.errors import CheckpointSchemaError
from agentloom.records import record


@record(repr=True)
class ShownStep:
    """One step, known by its path. Times are in milliseconds, costs in US dollars; ``attempts`` counts over the life of the run.

    ``prompts`` are the texts that were captured, by what they are (`prompt`, `system_prompt`), without secrets.
    """

    step: str
    type: str | None
    status: str
    started_at: str | None
    duration_ms: float
    attempts: int
    cost_usd: float
    tokens: int
    model: str | None
    provider: str | None
    error: str | None
    prompts: Mapping[str, str]

    def to_dict(self) -> dict[str, JSON]:
        """Return the step as JSON."""
        return {
            "step": self.step,
            "type": self.type,
            "status": self.status,
            "started_at": self.started_at,
            "duration_ms": self.duration_ms,
            "attempts": self.attempts,
            "cost_usd": self.cost_usd,
            "tokens": self.tokens,
            "model": self.model,
            "provider": self.provider,
            "error": self.error,
            "prompts": dict(self.prompts),
        }


@record(repr=True)
class ShownRun:
    """One run. ``checkpoint`` and ``history`` are the files that tell of it, as far as there are any."""

    run_id: str
    workflow_name: str
    status: str
    source: str | None
    started_at: str
    updated_at: str | None
    duration_ms: float | None
    total_cost_usd: float
    total_tokens: int
    error: str | None
    providers_used: tuple[str, ...]
    paused_step_id: str | None
    checkpoint: Path | None
    history: Path | None
    steps: tuple[ShownStep, ...]

    def to_dict(self) -> dict[str, JSON]:
        """Return the run as JSON: what ``agentloom runs show --json`` prints."""
        return {
            "version": 1,
            "run_id": self.run_id,
            "workflow_name": self.workflow_name,
            "status": self.status,
            "source": self.source,
            "started_at": self.started_at,
            "updated_at": self.updated_at,
            "duration_ms": self.duration_ms,
            "total_cost_usd": self.total_cost_usd,
            "total_tokens": self.total_tokens,
            "error": self.error,
            "providers_used": list(self.providers_used),
            "paused_step_id": self.paused_step_id,
            "checkpoint": None if self.checkpoint is None else str(self.checkpoint),
            "history": None if self.history is None else str(self.history),
            "steps": [step.to_dict() for step in self.steps],
        }


def show_run(store: FileCheckpointer, history: History, run_id: str) -> ShownRun:
    """Return a run. Raises ``KeyError`` when nothing tells of it, ``CheckpointSchemaError`` for a checkpoint that can't be read."""
    remembered = history.read(run_id)
    try:
        kept: CheckpointData | None = load_run(store, run_id)
    except KeyError:
        kept = None
    if remembered is None and kept is None:
        raise KeyError(run_id)
    if kept is not None and kept.status in (INTERRUPTED, RUNNING):
        remembered = None  # it tells of an earlier life of the run
    recorded: Recorded | None = None
    if kept is not None and kept.status in (INTERRUPTED, RUNNING):
        with suppress(OSError, CheckpointSchemaError):
            recorded = read_journal(journal_of(store, run_id))
    results = dict(_results(store, kept)) if kept is not None else {}
    checkpoint = store.path(run_id)
    return shown(run_id, kept, results, recorded, remembered, checkpoint if checkpoint.exists() else None, history)


def shown(
    run_id: str,
    kept: CheckpointData | None,
    results: Mapping[str, Mapping[str, Any]],
    recorded: Recorded | None,
    remembered: RunRecord | None,
    checkpoint: Path | None,
    history: History,
) -> ShownRun:
    """Return a run from what is known of it: what was ``kept`` and ``remembered``, one of which there is; the ``results`` of its steps,
    by path; and what is ``recorded`` of a life that came to no end of its own.
    """
    told = {str(step.get("step")): step for step in remembered.steps} if remembered is not None else {}
    results = dict(results)
    attempts = dict(kept.attempts) if kept is not None else {}
    open_steps: dict[str, str] = {}
    if recorded is not None and kept is not None:
        results.update(recorded.outcomes)
        attempts.update(recorded.attempts)
        open_steps = {path: kept.status for path, is_open in recorded.open.items() if is_open}
    types = dict(_types(kept.workflow_definition, "")) if kept is not None else {}
    names = dict.fromkeys([*told, *results, *open_steps])
    known = [name for name in types if name in names]
    order = known + [name for name in names if name not in types]
    steps = tuple(
        _step(name, told.get(name), results.get(name), types.get(name), attempts.get(name), open_steps.get(name))
        for name in order
    )
    return _run(run_id, kept, remembered, steps, checkpoint, history)


def _run(
    run_id: str,
    kept: CheckpointData | None,
    remembered: RunRecord | None,
    steps: tuple[ShownStep, ...],
    checkpoint: Path | None,
    history: History,
) -> ShownRun:
    used = dict.fromkeys(f"{step.provider}/{step.model}" for step in steps if step.provider)
    file = None if remembered is None else history.folder / f"{run_id}.json"
    error = None if remembered is None else remembered.error
    if kept is None:
        assert remembered is not None
        return ShownRun(
            run_id, remembered.workflow_name, remembered.status, None, remembered.timestamp, None, remembered.duration_ms,
            remembered.total_cost_usd, remembered.total_tokens, error, remembered.providers_used, None, None, file, steps,
        )  # fmt: skip
    return ShownRun(
        run_id, kept.workflow_name, kept.status, kept.source, kept.created_at, kept.updated_at,
        None if remembered is None else remembered.duration_ms, kept.total_cost_usd, kept.total_tokens, error,
        tuple(dict.fromkeys([*(remembered.providers_used if remembered else ()), *used])), kept.paused_step_id,
        checkpoint, file, steps,
    )  # fmt: skip


def _results(store: FileCheckpointer, kept: CheckpointData) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the results of all steps that a checkpoint tells of, and those of the child workflows that ended for good."""
    yield from kept.step_results.items()
    for run_id in store.run_ids():
        if run_id.startswith(f"{kept.run_id}."):
            with suppress(KeyError, CheckpointSchemaError):
                part = store.read(run_id)
                if part.part_of == kept.run_id:
                    path = run_id[len(kept.run_id) + 1 :]
                    yield from ((f"{path}.{name}", result) for name, result in part.step_results.items())
    yield from kept.inside.items()


def _types(definition: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the type of every step of a workflow and of those below it, in the order of the file."""
    steps = definition.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if not isinstance(step, Mapping):
            continue
        path = f"{prefix}{step.get('id')}"
        yield path, str(step.get("type"))
        below = step.get("workflow_inline")
        if isinstance(below, Mapping):
            yield from _types(below, f"{path}.")


def _step(
    path: str,
    told: Mapping[str, Any] | None,
    result: Mapping[str, Any] | None,
    kind: str | None,
    attempts: int | None,
    going_on: str | None,
) -> ShownStep:
    told, result = told or {}, result or {}
    usage = result.get("token_usage")
    metadata = result.get("prompt_metadata")
    prompts = {
        name: text
        for name in ("system_prompt", "prompt")
        if isinstance(metadata, Mapping) and isinstance(text := metadata.get(name), str)
    }
    status = going_on or result.get("status") or told.get("status") or "unknown"
    tokens = usage.get("total_tokens") if isinstance(usage, Mapping) else told.get("tokens")
    return ShownStep(
        step=path,
        type=_text(kind or told.get("type")),
        status=str(status),
        started_at=_text(told.get("started_at")),
        duration_ms=_number(result.get("duration_ms", told.get("duration_ms"))),
        attempts=0 if status == "skipped" else max(1, attempts or 0, int(_number(told.get("attempts")))),
        cost_usd=_number(result.get("cost_usd", told.get("cost_usd"))),
        tokens=int(_number(tokens)),
        model=_text(result.get("model") or told.get("model")),
        provider=_text(result.get("provider") or told.get("provider")),
        error=_text(result.get("error") or told.get("error")),
        prompts=prompts,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 else 0.0
    )
