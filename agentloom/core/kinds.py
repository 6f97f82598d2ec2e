"""What an executor of a step type is: how it is performed, what it reads, and what it gets to work with."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from agentloom.backoff import MAX_RETRIES
from agentloom.core.agents import Agent
from agentloom.core.events import EventStream, StepDelta, utc_now
from agentloom.core.limits import Ledger, add_usage
from agentloom.core.results import JSON, NO_USAGE, StepResult
from agentloom.core.runner import Halt, Op, OpKind
from agentloom.language.paths import Part
from agentloom.providers.base import Usage
from agentloom.providers.gateway import ProviderGateway
from agentloom.records import record
from agentloom.tools.info import ToolInfo
from agentloom.tools.policy import Policy

log = logging.getLogger(__name__)

EVERYTHING = None
"""What ``Executor.reads`` returns for a step that reads the whole state."""

Reads: TypeAlias = Iterable[tuple[Part, ...]] | None


class Tools(Protocol):
    """The part of the tool registry that steps use."""

    def info(self, name: str) -> ToolInfo:
        """Return what is known of a tool: description, argument schema. Raises ``ToolNotFoundError``."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool. Raises ``ToolNotFoundError``, ``SandboxViolationError``, or whatever the tool raises."""
        ...


class RunChild(Protocol):
    """Runs the workflow of a subworkflow step, as steps below the step's path; returns how it ended and its state."""

    async def __call__(self, op: Op, state: Mapping[str, JSON], attempt: Attempt) -> ChildResult:
        """Run it from ``state``, to which the child's own `state:` adds the keys that are missing; its ledger is ``attempt.below``."""
        ...


@record()
class ChildResult:
    """How a child workflow ended: the results of its steps, its final state, and in one line what went wrong.

    ``halt`` says that its money or its time was over.
    """

    workflow: str
    step_results: Mapping[str, StepResult]
    final_state: Mapping[str, JSON]
    error: str | None
    halt: Halt | None = None


class SandboxRules(Protocol):
    """The part of `config.sandbox` that webhooks heed."""

    @property
    def enabled(self) -> bool:
        """Whether it is on."""
        ...

    @property
    def allow_network(self) -> bool:
        """Whether anything may be reached."""
        ...

    @property
    def allowed_domains(self) -> Sequence[str]:
        """The only hosts that may be reached; none for all."""
        ...

    @property
    def allow_internal_webhook_targets(self) -> bool:
        """Whether webhooks may go to internal addresses; holds also while the sandbox is off."""
        ...


@record()
class Services:
    """What every step of one workflow may use. ``provider``, ``model`` and ``stream`` are what its steps take by default.

    ``decisions`` are those made about gates, by path; ``paused_since`` tells since when each gate waits (ISO 8601), by the same ``clock``. ``redact`` returns a
    state without secrets, for what leaves the house. ``callback_url`` is where decisions are taken over HTTP, if that is known.
    ``is_secret`` tells, by its id, whether a step's output is, as a whole or maybe somewhere in it. ``folder`` is that of the workflow's file, which relative paths start at;
    None for a workflow without a file. ``policy`` is what the workflow's sandbox allows, None if it is off; built-in tools obey it by themselves.
    ``project`` is where the project's Python modules lie, for classes that a step names. ``max_retries`` holds for steps without a number of their own.
    ``agents`` are those that its steps run, by the names that they have for them. ``capture_prompts`` has results keep whole prompts, without secrets.
    """

    workflow: str
    provider: str
    model: str
    stream: bool
    gateway: ProviderGateway
    tools: Tools
    run_child: RunChild
    decisions: Mapping[str, str] = field(default_factory=dict)
    paused_since: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] = utc_now
    sandbox: SandboxRules | None = None
    policy: Policy | None = None
    redact: Callable[[Mapping[str, JSON]], Mapping[str, JSON]] = lambda state: state
    callback_url: str | None = None
    is_secret: Callable[[str], bool] = lambda step_id: False
    folder: Path | None = None
    max_retries: int = MAX_RETRIES
    capture_prompts: bool = False
    agents: Mapping[str, Agent] = field(default_factory=dict)
    project: str | None = None


class Attempt:
    """One attempt of one operation: takes the pieces of a streamed reply, the warnings, and what is spent.

    ``is_secret`` says that nobody is told of the reply while it is written: its output is a secret, and no hash stands for a piece.
    ``spent`` is told of every call, so that it counts also if the process is killed before the attempt has ended. ``below`` is what the
    workflow of a subworkflow step spends.
    """

    __slots__ = (
        "_counted", "_is_secret", "_number", "_path", "_seq", "_spent", "_stream", "below", "cost", "usage", "warnings",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        number: int,
        stream: EventStream,
        counted: int = 1,
        is_secret: bool = False,
        spent: Callable[[str, int, float, int], None] = lambda path, number, cost_usd, tokens: None,
    ) -> None:
        self.below: Ledger | None = None
        self._spent = spent
        self._counted = counted
        self._is_secret = is_secret
        self.warnings: list[str] = []
        self.cost = 0.0
        self.usage = NO_USAGE
        self._path = path
        self._number = number
        self._stream = stream
        self._seq = 0

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._stream.run_id

    @property
    def key(self) -> str:
        """The idempotency key: the same again after a kill in the middle, another for each attempt that follows a failed one."""
        text = f"{self._stream.run_id}/{self._path}/{self._counted}"
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    async def delta(self, text: str) -> None:
        """Tell whoever watches of a piece of the reply."""
        if self._is_secret:
            return
        seq = self._seq
        self._seq += 1
        await self._stream.emit(StepDelta(step=self._path, text=text, attempt=self._number, seq=seq))

    def spend(self, cost: float, usage: Usage) -> None:
        """Count a call that was made: its cost in US dollars, its tokens."""
        self.cost += cost
        self.usage = add_usage(self.usage, usage)
        self._spent(self._path, self._counted, cost, usage.total_tokens)

    @property
    def whole_cost(self) -> float:
        """What it cost in US dollars, with the steps below."""
        return self.cost + (0.0 if self.below is None else self.below.spent)

    @property
    def whole_usage(self) -> Usage:
        """The tokens, with those of the steps below."""
        return self.usage if self.below is None else add_usage(self.usage, self.below.usage)

    def warn(self, message: str) -> None:
        """Log a warning and keep it for the step's result."""
        self.warnings.append(message)
        log.warning("%s", message, extra={"step": self._path})


Run: TypeAlias = Callable[[Op, Services, Attempt], Awaitable[StepResult]]
Decide: TypeAlias = Callable[[Any, Mapping[str, JSON]], StepResult]


@record()
class Executor:
    """One step type.

    ``reads`` returns the paths of the state that a step reads, or ``EVERYTHING``. A type that is pure has ``decide``: the interpreter
    calls it with the state, and it never raises. The others have ``run``, which performs one attempt, and raises when that fails.
    ``summarizes`` says that its output is a text about the value that it writes to the state, and that `steps.<id>.output` is that text;
    of the other types it is the value.
    """

    type: str
    reads: Callable[[Any], Reads]
    run: Run | None = None
    decide: Decide | None = None
    kind: OpKind = "step"
    summarizes: bool = False

    def noted(self, result: StepResult) -> JSON:
        """Return what of a step's result stands at `steps.<id>.output`."""
        return result.output if self.summarizes else result.written
