"""The seam: what the interpreter hands over, what comes back, and what a runner promises.

The interpreter decides, a runner performs. A batch is plain data: named operations, each with what it reads of the state. An outcome is a
value, never an exception. Any runner that keeps the promises below gives the same run: in this process, on a journal, on a durable engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from agentloom.core.events import RunEvent
from agentloom.core.results import JSON, StepResult
from agentloom.records import record

if TYPE_CHECKING:
    from agentloom.model.workflow import Step

OpKind = Literal["step", "child", "gate"]


@record()
class Op:
    """One operation. ``path`` (`sub.s1`) is unique in the run and its name in every journal; ``layer`` counts from 1.

    ``step`` is read like the typed model; ``inputs`` is the part of the state that the step reads, as it stood when the layer began; JSON, not to be changed.
    """

    kind: OpKind
    path: str
    step: Step
    inputs: Mapping[str, JSON]
    layer: int


Outcome: TypeAlias = StepResult


class Halt(Enum):
    """Why a run starts nothing more: its money or its time is over, what happens can't be written down any more, or it waits for a person."""

    BUDGET = "budget_exceeded"
    TIMEOUT = "timeout"
    UNKEPT = "unkept"
    PAUSED = "paused"


class Verdict(Enum):
    """What the interpreter says to an outcome."""

    GO = "go"
    DRAIN = "drain"
    """Start nothing more; what is running ends by itself."""
    STOP = "stop"
    """Cancel what is running and start nothing more."""


Settle: TypeAlias = Callable[[Op, Outcome], Verdict]


class AttemptLog(Protocol):
    """Remembers attempts over the life of a run, kills included. Numbers count from 1."""

    def next_attempt(self, path: str) -> int:
        """Return the number of an operation's next attempt: the same again for one that was cut off."""
        ...

    def started(self, path: str, number: int) -> None:
        """Note that an attempt begins."""
        ...

    def spent_in(self, path: str, number: int, cost_usd: float, tokens: int) -> None:
        """Note what a call cost, inside an attempt that goes on."""
        ...

    def failed(self, path: str, number: int, cost_usd: float, tokens: int) -> None:
        """Note that an attempt failed, what it cost in all, and that another may follow."""
        ...


class Runner(Protocol):
    """Performs batches.

    1. A batch comes in the order of the file; a runner may run it in any order, and at the same time.
    2. Outcomes that are recorded already are all settled before anything starts, and their operations don't run again.
    3. ``settle`` is called once per outcome, in the order in which they arrive; recorded ones come first, whatever the verdict on one of them.
    4. After ``Verdict.STOP`` nothing starts, and what runs is cancelled without an outcome. After ``Verdict.DRAIN`` nothing starts.
    5. An operation that may not start any more, since money or time is over, has no outcome.
    6. ``perform`` returns when nothing of the batch is running any more.
    """

    run_id: str

    async def perform(self, ops: Sequence[Op], settle: Settle) -> None:
        """Perform a batch."""
        ...

    def recorded(self, path: str) -> Outcome | None:
        """Return the outcome of a step that exists already: of an earlier life of the run."""
        ...

    def note(self, path: str, outcome: Outcome) -> None:
        """Keep a decision that no operation made: a router's."""
        ...

    async def emit(self, event: RunEvent) -> None:
        """Hand an event to whoever watches the run."""
        ...
