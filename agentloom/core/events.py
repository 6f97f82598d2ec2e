"""What happens in a run, as it happens: one stream of events for the terminal, for JSON lines and for editors."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import ClassVar, TypeAlias

import anyio

from agentloom.core.results import JSON, RunStatus, StepStatus
from agentloom.language.paths import MISSING
from agentloom.records import record

OUTPUT_LIMIT = 4096
"""How much of a step's output an event's JSON carries, in characters of JSON text; longer ones are cut to a text."""

log = logging.getLogger(__name__)


@record(kw_only=True, repr=True)
class Event:
    """What all events have. ``run_id`` and ``time`` are stamped when the event is emitted; nobody else sets them."""

    name: ClassVar[str] = ""

    run_id: str = ""
    time: datetime | None = None

    def to_json(self) -> dict[str, JSON]:
        """Return the event as the object that stands on one line of ``run --events``."""
        return {
            "version": 1,
            "event": self.name,
            "run_id": self.run_id,
            "time": None if self.time is None else self.time.isoformat(),
            **self._body(),
        }

    def _body(self) -> dict[str, JSON]:
        return {}


@record(kw_only=True, repr=True)
class RunStarted(Event):
    """A run begins: the workflow's name, and how many steps in how many layers lie ahead (subworkflows count as one step)."""

    name: ClassVar[str] = "run_started"

    workflow: str
    steps: int
    layers: int

    def _body(self) -> dict[str, JSON]:
        return {"workflow": self.workflow, "steps": self.steps, "layers": self.layers}


@record(kw_only=True, repr=True)
class StepStarted(Event):
    """A step begins. ``step`` is its path in the run: `sub.s1` is step `s1` of the subworkflow step `sub`. Layers count from 1."""

    name: ClassVar[str] = "step_started"

    step: str
    type: str
    layer: int

    def _body(self) -> dict[str, JSON]:
        return {"step": self.step, "type": self.type, "layer": self.layer}


@record(kw_only=True, repr=True)
class StepDelta(Event):
    """A piece of a streamed reply. Pieces are numbered from 0 in each attempt; a higher ``attempt`` begins the text anew, and so does a ``seq``
    that doesn't go up: the attempt comes again on another worker."""

    name: ClassVar[str] = "step_delta"

    step: str
    text: str
    attempt: int
    seq: int

    def _body(self) -> dict[str, JSON]:
        return {"step": self.step, "text": self.text, "attempt": self.attempt, "seq": self.seq}


@record(kw_only=True, repr=True)
class StepRetrying(Event):
    """An attempt failed and another one follows after ``wait_s`` seconds. ``attempt`` is the one that failed, from 1."""

    name: ClassVar[str] = "step_retrying"

    step: str
    attempt: int
    attempts: int
    wait_s: float
    error: str

    def _body(self) -> dict[str, JSON]:
        return {
            "step": self.step,
            "attempt": self.attempt,
            "attempts": self.attempts,
            "wait_s": self.wait_s,
            "error": self.error,
        }


@record(kw_only=True, repr=True)
class StepFinished(Event):
    """A step ended. The last one of a step counts: two steps of a layer whose outputs exclude each other give a second one.

    ``value`` is as in ``StepResult``; it is not part of the JSON.
    """

    name: ClassVar[str] = "step_finished"

    step: str
    status: StepStatus
    output: JSON = None
    error: str | None = None
    duration_ms: float = 0.0
    cost_usd: float = 0.0
    tokens: int = 0
    model: str | None = None
    provider: str | None = None
    warnings: tuple[str, ...] = ()
    webhook: Mapping[str, JSON] | None = None
    value: JSON = MISSING

    def _body(self) -> dict[str, JSON]:
        found: dict[str, JSON] = {
            "step": self.step,
            "status": self.status,
            "output": cut(self.output),
            "error": self.error,
            "duration_ms": self.duration_ms,
            "cost_usd": self.cost_usd,
            "tokens": self.tokens,
            "model": self.model,
            "provider": self.provider,
            "warnings": list(self.warnings),
        }
        if self.webhook is not None:
            found["webhook"] = dict(self.webhook)
        return found


@record(kw_only=True, repr=True)
class StepSkipped(Event):
    """A step doesn't run. ``error`` names the failure it is skipped for; null when a router chose another branch."""

    name: ClassVar[str] = "step_skipped"

    step: str
    error: str | None = None

    def _body(self) -> dict[str, JSON]:
        return {"step": self.step, "error": self.error}


@record(kw_only=True, repr=True)
class RunFinished(Event):
    """The run ended. ``checkpoint`` is the file that was written of it, if one was."""

    name: ClassVar[str] = "run_finished"

    status: RunStatus
    total_cost_usd: float
    total_tokens: int
    duration_ms: float
    error: str | None = None
    checkpoint: str | None = None

    def _body(self) -> dict[str, JSON]:
        return {
            "status": self.status,
            "total_cost_usd": self.total_cost_usd,
            "total_tokens": self.total_tokens,
            "duration_ms": self.duration_ms,
            "error": self.error,
            "checkpoint": self.checkpoint,
        }


RunEvent: TypeAlias = RunStarted | StepStarted | StepDelta | StepRetrying | StepFinished | StepSkipped | RunFinished
OnEvent: TypeAlias = Callable[[RunEvent], Awaitable[None]]

EVENTS: Mapping[str, type[Event]] = {
    event.name: event
    for event in (RunStarted, StepStarted, StepDelta, StepRetrying, StepFinished, StepSkipped, RunFinished)
}


def cut(value: JSON, limit: int = OUTPUT_LIMIT) -> JSON:
    """Return ``value`` if it is short, else the beginning of its text with `…` behind it."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= limit else value[:limit] + "…"
    written = ""
    for piece in json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).iterencode(value):
        written += piece
        if len(written) > limit:
            return written[:limit] + "…"
    return value


def utc_now() -> datetime:
    """Return the time that events are stamped with."""
    return datetime.now(UTC)


class EventStream:
    """Hands the events of one run to its subscriber, one after the other.

    A subscriber that raises is told no more, and the run goes on: what watches a run must not be able to fail it.
    """

    def __init__(self, run_id: str, on_event: OnEvent | None, now: Callable[[], datetime] = utc_now) -> None:
        self.run_id = run_id
        self._on_event = on_event
        self._now = now
        self._turn = anyio.Lock(fast_acquire=True)

    @property
    def watched(self) -> bool:
        """Whether anybody listens; without a listener, events needn't be made."""
        return self._on_event is not None

    async def emit(self, event: RunEvent) -> None:
        """Stamp an event and hand it on; waits until the subscriber has taken it."""
        if self._on_event is None:
            return
        try:
            self._turn.acquire_nowait()
        except anyio.WouldBlock:
            await self._turn.acquire()
        try:
            if self._on_event is None:
                return
            # Stamped in place: an event belongs to the stream from here on, and a copy would cost more than all the rest.
            object.__setattr__(event, "run_id", self.run_id)
            object.__setattr__(event, "time", self._now())
            await self._on_event(event)
        except Exception:
            self._on_event = None
            log.exception("A subscriber of run %s failed; it gets no more events", self.run_id)
        finally:
            self._turn.release()
