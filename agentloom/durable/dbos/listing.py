"""Runs in a list: what the rows of their segments tell, without inputs, results and journals. So a list of 10,000 runs takes a moment, and little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dbos import DBOSClient, WorkflowStatus

from agentloom import __version__
from agentloom.checkpointing.base import CheckpointData, now
from agentloom.checkpointing.history import RunRecord
from agentloom.core.keeping.runs import seed_of
from agentloom.core.results import JSON
from agentloom.durable.dbos.orders import RUN, run_of, segment_id
from agentloom.durable.dbos.received import is_segment
from agentloom.durable.recorded import Recorded

ALIVE = ("ENQUEUED", "PENDING", "DELAYED")
"""What DBOS calls a segment that hasn't come to an end."""

PAGE = 500
"""How many segments are asked for at once."""

UNTOLD = ""
"""The status of a run in a list whose worker could no longer note it there: its result says it."""

LONGEST = 300
"""Characters of an error that a list knows."""


class Row(NamedTuple):
    """A run in a list, by its last ``segment``; ``is_open`` tells that it is under way for DBOS.

    ``began`` and ``updated`` are ISO 8601, UTC; ``cost_usd`` and ``tokens`` are those of the whole run as far as a segment has ended.
    """

    run_id: str
    workflow: str
    status: str
    began: str
    updated: str
    source: str | None
    paused_step: str | None
    cost_usd: float
    tokens: int
    duration_ms: float
    providers: tuple[str, ...]
    executed: int
    done: int
    steps: int
    error: str | None
    version: str
    segment: str
    is_open: bool

    def in_brief(self) -> dict[str, JSON]:
        """Return what a list shows of the run, as JSON; as ``CheckpointData.in_brief`` does."""
        return {
            "run_id": self.run_id,
            "workflow_name": self.workflow,
            "status": self.status,
            "source": self.source,
            "created_at": self.began,
            "updated_at": self.updated,
            "paused_step_id": self.paused_step,
            "total_cost_usd": self.cost_usd,
            "total_tokens": self.tokens,
            "steps_done": self.done,
            "steps": self.steps,
        }

    @property
    def record(self) -> RunRecord:
        """The run as the history tells of it, without its steps."""
        return RunRecord(
            run_id=self.run_id,
            timestamp=self.began,
            workflow_name=self.workflow,
            status=self.status,
            providers_used=self.providers,
            total_cost_usd=self.cost_usd,
            total_tokens=self.tokens,
            steps_executed=self.executed,
            duration_ms=self.duration_ms,
            error=self.error,
            agentloom_version=self.version,
        )


def begun(order: Mapping[str, Any], number: int) -> dict[str, JSON]:
    """Return the attributes of a segment that is asked for."""
    definition = order["definition"]
    steps = definition.get("steps")
    return {
        "run": str(order["run_id"]),
        "segment": number,
        "workflow": str(definition.get("name") or ""),
        "source": order["source"],
        "asked": now(),
        "steps": len(steps) if isinstance(steps, list) else 0,
    }


def ended(output: Mapping[str, Any]) -> dict[str, JSON]:
    """Return what is added to them when the segment ends with an output."""
    result, kept = output.get("result"), output.get("checkpoint")
    found = {"version": __version__, **({} if kept is None else _kept(CheckpointData.from_dict(kept)))}
    if result is None:
        return {**found, "status": "failed", "error": str(output.get("refused"))[:LONGEST]}
    steps = [step for step in result["step_results"].values() if step["status"] != "skipped"]
    used = dict.fromkeys(f"{step['provider']}/{step['model']}" for step in steps if step.get("provider"))
    return {
        **found,
        "status": result["status"],
        "cost_usd": result["total_cost_usd"],
        "tokens": result["total_tokens"],
        "duration_ms": result["total_duration_ms"],
        "providers": list(used),
        "executed": len(steps),
        "error": None if result["error"] is None else result["error"][:LONGEST],
    }


def cut(recorded: Recorded | None, run_id: str) -> dict[str, JSON]:
    """Return what is added to them when the segment was stopped before it had an output."""
    found = {} if recorded is None else _kept(seed_of(recorded, run_id, "cancelled", now()))
    return {"version": __version__, **found}


def _kept(data: CheckpointData) -> dict[str, JSON]:
    return {
        "cost_usd": data.total_cost_usd,
        "tokens": data.total_tokens,
        "done": len(set(data.completed_steps)),
        "gate": data.paused_step_id,
    }


def rows(client: DBOSClient, word: Callable[[WorkflowStatus], str]) -> Iterator[Row]:
    """Yield every run, the one whose last segment was asked for latest first. ``word`` returns the status of one that is under way for DBOS."""
    for page in _pages(client):
        after = {_next(status): status for status in page}
        gone_on = client.list_workflows(workflow_ids=list(after), load_input=False, load_output=False)
        earlier = {after[status.workflow_id].workflow_id for status in gone_on}
        yield from (_row(status, word) for status in page if status.workflow_id not in earlier)


def _pages(client: DBOSClient) -> Iterator[list[WorkflowStatus]]:
    """Yield all segments, the latest first, each once, whatever comes and goes meanwhile."""
    before: str | None = None
    edge: set[str] = set()
    while True:
        page = client.list_workflows(
            name=RUN, limit=PAGE + len(edge), end_time=before, sort_desc=True, load_input=False, load_output=False
        )
        fresh = [status for status in page if status.workflow_id not in edge]
        if not fresh:
            return
        fresh.sort(key=lambda status: (status.created_at or 0, _text(_known(status).get("asked")) or ""), reverse=True)
        if ours := [status for status in fresh if is_segment(status.workflow_id)]:
            yield ours
        oldest = page[-1].created_at or 0
        edge = {status.workflow_id for status in page if status.created_at == oldest}
        # Half a millisecond more: DBOS rounds down.
        before = datetime.fromtimestamp((oldest + 0.5) / 1000, UTC).isoformat()


def _next(status: WorkflowStatus) -> str:
    run_id, number = run_of(status.workflow_id)
    return segment_id(run_id, number + 1)


def _known(status: WorkflowStatus) -> Mapping[str, Any]:
    return status.attributes if isinstance(status.attributes, dict) else {}


def _row(status: WorkflowStatus, under_way: Callable[[WorkflowStatus], str]) -> Row:
    known = _known(status)
    is_open = status.status in ALIVE
    if status.status == "CANCELLED":
        word = "cancelled"
    elif not is_open:
        word = _text(known.get("status")) or ("failed" if status.status != "SUCCESS" else UNTOLD)
    else:
        word = under_way(status)
    error, providers = _text(known.get("error")), known.get("providers")
    return Row(
        run_id=run_of(status.workflow_id)[0],
        workflow=_text(known.get("workflow")) or "",
        status=word,
        began=_time(status.dequeued_at or status.created_at),
        updated=_time(status.completed_at or status.updated_at or status.created_at),
        source=_text(known.get("source")),
        paused_step=_text(known.get("gate")) if word == "paused" else None,
        cost_usd=float(_number(known.get("cost_usd"))),
        tokens=int(_number(known.get("tokens"))),
        duration_ms=float(_number(known.get("duration_ms"))),
        providers=tuple(map(str, providers)) if isinstance(providers, list) else (),
        executed=int(_number(known.get("executed"))),
        done=int(_number(known.get("done"))),
        steps=int(_number(known.get("steps"))),
        error=error,
        version=_text(known.get("version")) or "",
        segment=status.workflow_id,
        is_open=is_open,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300 else 0


def _time(milliseconds: int | None) -> str:
    return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC).isoformat()
