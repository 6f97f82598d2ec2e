"""The checkpoint of a run as data, and what a store of checkpoints has to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agentloom.errors import CheckpointSchemaError

SCHEMA_VERSION = 1
STATUSES = ("success", "failed", "timeout", "budget_exceeded", "paused", "cancelled", "interrupted", "running")

_TEXTS = ("workflow_name", "run_id", "status", "created_at", "updated_at")
_MAPPINGS = ("workflow_definition", "state", "step_results")


@dataclass(slots=True)
class CheckpointData:
    """What is kept of a run. May be changed before the run is resumed: its definition, its state.

    ``workflow_definition`` is the workflow as it ran, overrides and child workflows included; ``source`` the file it came from, which
    its relative paths start at. ``state`` and ``step_results`` are plain data, without secrets. ``attempts`` counts what was tried, by
    path: idempotency keys go on from there. ``inside`` holds, by path, the results of finished steps of child workflows that were cut
    short, ``spent_inside`` what the child workflows behind such steps have spent so far, ``paused_since`` since when each gate waits.
    ``part_of`` is the id of the run that a subworkflow's own checkpoint belongs to. ``begun`` tells of an interrupted run when its last
    life began. Times are ISO 8601, UTC; money in US dollars.
    """

    workflow_name: str
    run_id: str
    workflow_definition: dict[str, Any]
    state: dict[str, Any]
    step_results: dict[str, dict[str, Any]]
    status: str
    completed_steps: list[str] = field(default_factory=list)
    paused_step_id: str | None = None
    created_at: str = ""
    updated_at: str = ""
    total_cost_usd: float = 0.0
    total_tokens: int = 0
    source: str | None = None
    attempts: dict[str, int] = field(default_factory=dict)
    inside: dict[str, dict[str, Any]] = field(default_factory=dict)
    spent_inside: dict[str, dict[str, Any]] = field(default_factory=dict)
    paused_since: dict[str, str] = field(default_factory=dict)
    part_of: str | None = None
    begun: str | None = None
    schema_version: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """Return the checkpoint as plain data: what its file holds."""
        return {
            "schema_version": self.schema_version,
            "workflow_name": self.workflow_name,
            "run_id": self.run_id,
            "status": self.status,
            "paused_step_id": self.paused_step_id,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "total_cost_usd": self.total_cost_usd,
            "total_tokens": self.total_tokens,
            "source": self.source,
            "workflow_definition": self.workflow_definition,
            "state": self.state,
            "step_results": self.step_results,
            "completed_steps": self.completed_steps,
            "attempts": self.attempts,
            "inside": self.inside,
            "spent_inside": self.spent_inside,
            "paused_since": self.paused_since,
            **({} if self.part_of is None else {"part_of": self.part_of}),
            **({} if self.begun is None else {"begun": self.begun}),
        }

    def in_brief(self) -> dict[str, Any]:
        """Return what a list shows of the run, as plain data: some keys of the checkpoint, and how many of its steps are done."""
        steps = self.workflow_definition.get("steps")
        return {
            "run_id": self.run_id,
            "workflow_name": self.workflow_name,
            "status": self.status,
            "source": self.source,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "paused_step_id": self.paused_step_id,
            "total_cost_usd": self.total_cost_usd,
            "total_tokens": self.total_tokens,
            "steps_done": len(set(self.completed_steps)),
            "steps": len(steps) if isinstance(steps, list) else 0,
        }

    @classmethod
    def from_dict(cls, data: Any) -> CheckpointData:
        """Return the checkpoint that plain data describe. Raises ``CheckpointSchemaError``, which says what is wrong."""
        if not isinstance(data, Mapping):
            raise CheckpointSchemaError("it is no checkpoint: a mapping was expected")
        version = data.get("schema_version", SCHEMA_VERSION)
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise CheckpointSchemaError(f"its `schema_version` is {version!r}, which is none")
        if version > SCHEMA_VERSION:
            raise CheckpointSchemaError(
                f"it was written by a newer agentloom (schema {version}, this one reads {SCHEMA_VERSION}); upgrade first"
            )
        for name in _TEXTS:
            if not isinstance(data.get(name), str):
                raise CheckpointSchemaError(f"it is no checkpoint: `{name}` is missing or no text")
        for name in _MAPPINGS:
            if not isinstance(data.get(name), Mapping):
                raise CheckpointSchemaError(f"it is no checkpoint: `{name}` is missing or no mapping")
        results = data["step_results"]
        if not all(
            isinstance(result, Mapping) and isinstance(result.get("status"), str) for result in results.values()
        ):
            raise CheckpointSchemaError("it is no checkpoint: a step's result has no `status`")
        paused = data.get("paused_step_id")
        cost = data.get("total_cost_usd", 0.0)
        source, part_of, begun = (_text(data.get(name)) for name in ("source", "part_of", "begun"))
        attempts, inside, below, since = (
            _mapping(data.get(name)) for name in ("attempts", "inside", "spent_inside", "paused_since")
        )
        completed = data.get("completed_steps")
        return cls(
            workflow_name=data["workflow_name"],
            run_id=data["run_id"],
            workflow_definition=dict(data["workflow_definition"]),
            state=dict(data["state"]),
            step_results={str(name): dict(result) for name, result in results.items()},
            status=data["status"],
            completed_steps=[str(name) for name in completed] if isinstance(completed, list) else [],
            paused_step_id=paused if isinstance(paused, str) else None,
            created_at=data["created_at"],
            updated_at=data["updated_at"],
            total_cost_usd=_money(cost),
            total_tokens=_count(data.get("total_tokens")),
            source=source,
            attempts={str(path): n for path, n in attempts.items() if isinstance(n, int)},
            inside={str(path): dict(result) for path, result in inside.items() if isinstance(result, Mapping)},
            spent_inside={
                str(path): {"cost_usd": _money(spent.get("cost_usd", 0.0)), "tokens": _count(spent.get("tokens"))}
                for path, spent in below.items()
                if isinstance(spent, Mapping)
            },
            paused_since={str(path): time for path, time in since.items() if _is_time(time)},
            part_of=part_of,
            begun=begun,
            schema_version=version,
        )


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int:
    """Return a number of tokens; what is none counts nothing, since no limit hangs on it."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _money(value: Any) -> float:
    """Return a sum of money. Raises ``CheckpointSchemaError`` for what is none: a budget would never end."""
    if isinstance(value, int | float) and 0 <= value < 1e300:
        return float(value)
    raise CheckpointSchemaError("it is no checkpoint: what was spent (`total_cost_usd`) is no sum of money")


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


class BaseCheckpointer(ABC):
    """A store of checkpoints. Subclass it to keep them elsewhere than in files."""

    @abstractmethod
    async def save(self, data: CheckpointData) -> None:
        """Keep a checkpoint, in the place of an older one of the same run."""

    @abstractmethod
    async def load(self, run_id: str) -> CheckpointData:
        """Return the checkpoint of a run. Raises ``KeyError`` for an unknown run."""

    @abstractmethod
    async def list_runs(self) -> list[CheckpointData]:
        """Return all checkpoints, the latest first."""

    @abstractmethod
    async def delete(self, run_id: str) -> None:
        """Let a checkpoint go. Raises ``KeyError`` for an unknown run."""


def now() -> str:
    """Return the time in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat()
