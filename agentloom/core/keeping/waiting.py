"""Runs that wait at a gate, as people are shown them, and what deciding about them may come to, wherever runs are kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol

from agentloom.checkpointing.base import CheckpointData
from agentloom.core.definition import definition_below
from agentloom.core.events import cut
from agentloom.errors import AgentLoomError

MOST_OUTPUTS = 10
OUTPUT_CHARACTERS = 2000
"""How much is kept of what the steps gave: the last of them, and the beginnings of long ones."""

SECRET = "AGENTLOOM_CALLBACK_TOKEN"

Decision = Literal["approved", "rejected"]


class NotTaken(AgentLoomError):
    """A decision was not taken; the run doesn't wait for it."""


class Unable(AgentLoomError):
    """A decision could not be carried out, and the run waits as before."""


class Stopping(AgentLoomError):
    """Nothing more is taken, or nothing more for now."""


class Paused(NamedTuple):
    """A run that waits. ``step_id`` is the gate's path, ``since`` and ``due`` when it began to wait and when its time is over, ``then`` what
    becomes of it.

    ``deadline`` is the earliest ``due`` of all its gates. ``finished`` are the outputs of its last finished steps, without secrets, for people.
    """

    run_id: str
    workflow_name: str
    step_id: str
    updated_at: str
    since: datetime | None
    due: datetime | None
    then: str
    deadline: datetime | None
    finished: tuple[tuple[str, str], ...]


THEN: Mapping[Any, str] = {"approve": "is approved", "reject": "is rejected"}


class Decisions(Protocol):
    """Lists what waits and carries decisions out: one of many wins, whoever takes it and wherever."""

    async def waiting(self) -> list[Paused]:
        """Return the runs that wait for a decision, the one that waits longest first."""
        ...

    async def decide(
        self, run_id: str, decision: Decision, step_id: str | None = None, updated_at: str | None = None
    ) -> Paused:
        """Take a decision and let the run go on; returns what it waited for when the decision can't be lost any more.

        ``step_id`` and ``updated_at`` say what was decided about: another gate is another decision. Raises ``KeyError`` for an unknown run,
        ``NotTaken``, ``Unable``, ``Stopping``, ``CheckpointSchemaError``.
        """
        ...

    async def keep(self) -> None:
        """Do what has to be done as long as decisions are taken."""
        ...

    async def stop(self, grace: float) -> None:
        """Take nothing more, and give what is under way here ``grace`` seconds."""
        ...

    def hurry(self) -> None:
        """Wait for what is under way no longer."""
        ...


def same_gate(run: Paused, step_id: str | None, updated_at: str | None) -> None:
    """Raise ``NotTaken`` unless a run waits for what was decided about; None is whatever it waits for."""
    if step_id not in (None, run.step_id) or updated_at not in (None, run.updated_at):
        raise NotTaken(f"run `{run.run_id}` waits at `{run.step_id}` now; look at it again")


def environment_of_runs(callback_url: str | None) -> dict[str, str]:
    """Return the environment of the runs: this one's, without the server's own secret, which no command of a workflow may see."""
    found = {name: value for name, value in os.environ.items() if name != SECRET}
    if callback_url is not None:
        found.setdefault("AGENTLOOM_CALLBACK_URL", callback_url)
    return found


def paused_of(data: CheckpointData) -> Paused:
    """Return what is known of a run that waits."""
    dues: dict[str, datetime] = {}
    for path, since in data.paused_since.items():
        seconds = _gate(data.workflow_definition, path).get("timeout_seconds")
        began = _time(since)
        if began is not None and isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0:
            dues[path] = began + timedelta(seconds=min(seconds, 10**9))
    gate = data.paused_step_id or ""
    return Paused(
        data.run_id,
        data.workflow_name,
        gate,
        data.updated_at,
        _time(data.paused_since.get(gate, "")),
        dues.get(gate),
        THEN.get(_gate(data.workflow_definition, gate).get("on_timeout"), "fails"),
        min(dues.values(), default=None),
        tuple(_finished(data))[-MOST_OUTPUTS:],
    )


def _finished(data: CheckpointData) -> Iterator[tuple[str, str]]:
    for results in (data.step_results, data.inside):
        for name, result in results.items():
            if result.get("status") == "success":
                yield name, _short(result.get("output"))


def _short(value: Any) -> str:
    shown = cut(value, OUTPUT_CHARACTERS)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, indent=2)


def _gate(definition: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    above, _, name = path.rpartition(".")
    within = definition_below(definition, above) if above else definition
    return next((step for step in within.get("steps") or () if step.get("id") == name), {})


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
