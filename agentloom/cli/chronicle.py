"""What a run's events add up to, for its record in the history."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from time import perf_counter
from typing import Any

from agentloom import __version__
from agentloom.analysis.document import WorkflowDocument
from agentloom.checkpointing.history import History, RunRecord, history_of, now
from agentloom.core.events import RunEvent, StepFinished, StepRetrying, StepSkipped, StepStarted
from agentloom.core.results import WorkflowResult
from agentloom.files import in_plain_words

log = logging.getLogger(__name__)

_UNKNOWN: Mapping[str, Any] = {
    "type": None,
    "status": "cancelled",
    "duration_ms": 0.0,
    "attempts": 1,
    "cost_usd": 0.0,
    "tokens": 0,
    "model": None,
    "provider": None,
    "error": None,
}
"""What a record says of a step of which nothing was heard yet."""


class Chronicle:
    """Listens to a run, and writes its record when it is over. That it can't be written is a warning, and no more."""

    def __init__(self, history: History, document: WorkflowDocument, resumed: bool = False) -> None:
        self._history = history
        self._resumed = resumed
        self._document = document
        self._began = now()
        self._clock = perf_counter()
        self._steps: dict[str, dict[str, Any]] = {}

    def take(self, event: RunEvent) -> None:
        """Take one event."""
        if isinstance(event, StepStarted):
            step = self._step(event.step)
            step["type"] = event.type
            step["started_at"] = None if event.time is None else event.time.isoformat()
        elif isinstance(event, StepRetrying):
            self._step(event.step)["attempts"] = event.attempt + 1
        elif isinstance(event, StepSkipped):
            self._step(event.step).update(status="skipped", attempts=0, error=event.error)
        elif isinstance(event, StepFinished):
            self._step(event.step).update(
                status=event.status,
                duration_ms=event.duration_ms,
                cost_usd=event.cost_usd,
                tokens=event.tokens,
                model=event.model,
                provider=event.provider,
                error=event.error,
            )

    def end(self, run_id: str, result: WorkflowResult | None) -> None:
        """Write the record. Without a result, the run was cancelled."""
        try:
            self._history.save(self.record(run_id, result))
        except OSError as error:
            log.warning("The run can't be kept in '%s': %s", self._history.folder, in_plain_words(error))

    def record(self, run_id: str, result: WorkflowResult | None) -> RunRecord:
        """Return the record of the run as it ended; without a result, it was cancelled."""
        earlier = self._history.read(run_id) if self._resumed else None
        lived = [step for path, step in self._steps.items() if "." not in path]
        cost, tokens = _sum(lived, "cost_usd"), int(_sum(lived, "tokens"))
        if earlier is not None and result is None:
            told = {str(step["step"]): dict(step) for step in earlier.steps if set(_UNKNOWN) <= set(step)}
            self._steps = {**told, **self._steps}
            cost, tokens = cost + earlier.total_cost_usd, tokens + earlier.total_tokens
        for name, step in result.step_results.items() if result is not None else ():
            facts = self._step(name)
            if "started_at" not in facts:  # it needn't run again, or never began
                facts.update(
                    status=step.status,
                    duration_ms=step.duration_ms,
                    cost_usd=step.cost_usd,
                    tokens=step.token_usage.total_tokens,
                    model=step.model,
                    provider=step.provider,
                    error=step.error,
                )
            if step.status != "skipped":
                facts["attempts"] = max(facts["attempts"], step.attempts)
        top = [step for path, step in self._steps.items() if "." not in path]
        used = [f"{step['provider']}/{step['model']}" for step in self._steps.values() if step["provider"]]
        source = self._document.source.text.encode("utf-8", "surrogatepass")
        return RunRecord(
            run_id=run_id,
            timestamp=self._began,
            workflow_name=str(self._document.data.get("name") or "") if result is None else result.workflow_name,
            status="cancelled" if result is None else result.status,
            workflow_hash=earlier.workflow_hash if earlier else f"sha256:{sha256(source).hexdigest()[:32]}",
            providers_used=tuple(dict.fromkeys(used)),
            total_cost_usd=cost if result is None else result.total_cost_usd,
            total_tokens=tokens if result is None else result.total_tokens,
            steps_executed=sum(step["status"] != "skipped" for step in top),
            duration_ms=(perf_counter() - self._clock) * 1000 if result is None else result.total_duration_ms,
            error=None if result is None else result.error,
            agentloom_version=__version__,
            python_version=sys.version.split()[0],
            steps=tuple(self._steps.values()),
        )

    def _step(self, path: str) -> dict[str, Any]:
        found = self._steps.get(path)
        if found is None:
            found = self._steps[path] = {"step": path, **_UNKNOWN}
        return found


def chronicle_of(document: WorkflowDocument, resumed: bool = False) -> Chronicle:
    """Return what keeps the record of a run of a workflow; ``resumed`` says that the run goes on from an earlier life."""
    return Chronicle(history_of(None, os.environ), document, resumed)


def _sum(steps: list[dict[str, Any]], name: str) -> float:
    return float(sum(step[name] for step in steps))
