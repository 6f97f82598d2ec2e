"""A run while it goes on: what each of its workflows has come to, and why it may have to end early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from agentloom.core.discretion import RunSecrets
from agentloom.core.events import EventStream
from agentloom.core.interpreter import Progress
from agentloom.core.keeping.keeper import Keeper
from agentloom.core.limits import Limits
from agentloom.core.preparation import Prepared
from agentloom.core.redaction import Redaction
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Halt
from agentloom.core.state import State


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Run:
    """One workflow of a run while it goes on; states and progress are those of all of them, by the prefix of their steps' paths."""

    prepared: Prepared
    stream: EventStream
    limits: Limits
    keeper: Keeper
    redaction: Redaction
    states: dict[str, State] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    definition: Mapping[str, JSON] = field(default_factory=dict)
    secrets: RunSecrets = field(default_factory=RunSecrets)

    def cut_short(self) -> bool:
        """Whether a limit of a workflow above has ended this one: the parent's money, or the parent's time."""
        ledger = self.limits.ledger.exceeded
        if ledger is not None and ledger is not self.limits.ledger:
            return True
        return self.limits.inherited and anyio.current_time() >= self.limits.deadline

    def results(self, prefix: str) -> dict[str, StepResult]:
        """Return the results so far, in the order of the file."""
        found = self.progress[prefix].results if prefix in self.progress else {}
        return {name: found[name] for name in self.prepared.plan.needs if name in found}

    def paused_at(self) -> str | None:
        """Return the path of the gate at which the run waits: the first of the file, in the innermost child."""
        path = next((name for name, result in self.results("").items() if result.status == "paused"), None)
        while path is not None and f"{path}." in self.progress:
            below = self.progress[f"{path}."].results
            inner = next((name for name, result in below.items() if result.status == "paused"), None)
            if inner is None:
                break
            path = f"{path}.{inner}"
        return path


class Done(NamedTuple):
    """How a workflow ended: its results, its state, and why it ended early if it did."""

    results: dict[str, StepResult]
    state: Mapping[str, JSON]
    halt: Halt | None
