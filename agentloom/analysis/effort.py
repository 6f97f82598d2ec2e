"""The worst case in numbers: attempts, waits and times of each step, of the workflows below it, and along the way that takes longest.

Bounds are those of the documents. What can't be known has none: a step without a limit of its own, how many providers an attempt tries,
waits for a rate limit, a person's decision at a gate.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from agentloom.analysis.agents import find_agent
from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.backoff import BACKOFF_BASE, BACKOFF_MAX, JITTER, MAX_RETRIES, Backoff

LARGEST = 1e300
"""Larger numbers are no times that anybody means, and would overflow."""

DEEPEST = 20
"""How many workflows below each other are followed."""

Origin = Literal["retry", "config", "default", "type"]
Limit = Literal["timeout", "max_latency_ms", "tool", "child", "instant"]

# Their failures are permanent: nothing of their own is retried.
NEVER_RETRIED = ("router", "approval_gate")
# They call providers, which may ask for longer waits.
_ASKING = ("llm_call", "agent", "embed")
_TIMED_TOOLS = {"http_request": 30.0, "shell_command": 30.0}


class Effort(NamedTuple):
    """The worst case of one step.

    ``origin`` tells where the number of retries comes from: the step's `retry`, `config.max_retries`, the default, or the step's type.
    ``waits`` are the seconds between the attempts, jitter included; ``waits_asked`` those when a provider asks for the longest each time. ``limit`` is
    how long one attempt may take (None: no limit is known) and ``limited_by`` by what. ``inside`` are the most attempts that a step of the
    workflow below makes in all, and ``path`` leads to that step: ``("sub", "fetch")``; without a workflow below they are the step's own.
    ``waits_below`` are the seconds that the steps of the workflow below wait between their attempts, in all attempts of this one.
    """

    step: Step
    attempts: int
    origin: Origin
    waits: float
    waits_asked: float
    limit: float | None
    limited_by: Limit | None
    inside: int
    path: tuple[str, ...]
    waits_below: float = 0.0

    @property
    def waiting(self) -> float:
        """The most seconds of waits in all, those between the attempts of the steps below included."""
        return self.waits + self.waits_below

    @property
    def running(self) -> float | None:
        """The most seconds that all attempts run; None where there is no limit."""
        return None if self.limit is None else self.attempts * self.limit

    @property
    def total(self) -> float | None:
        """The most seconds from the first attempt's start to the last one's end; None where there is no limit."""
        return None if self.limit is None else self.attempts * self.limit + self.waits


class Leg(NamedTuple):
    """One layer on the way that takes longest: its slowest step, and how long the layer takes."""

    step: str
    seconds: float


class Worst(NamedTuple):
    """The worst case of a workflow. ``legs`` are the layers that take time; ``total`` is their sum, None when ``unlimited`` names steps.

    ``waits`` are those between attempts along the layers, those of workflows below included.
    """

    efforts: dict[str, Effort]
    legs: tuple[Leg, ...]
    waits: float
    total: float | None
    unlimited: tuple[str, ...]


def effort(document: WorkflowDocument) -> Worst:
    """Return the worst case of a document, worked out when it is first asked for."""
    kept: Worst | None = document.__dict__.get("_effort")
    if kept is None:
        kept = document.__dict__["_effort"] = _worst(document, 0)
    return kept


def effort_of(document: WorkflowDocument, step: Step) -> Effort:
    """Return the worst case of one step, without working out that of all others."""
    return _effort(document, step, default_retries(document), 0)


def number(value: Any) -> float | None:
    """Return a value as a number if it is a finite one (others are told as AL105 or AL106)."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not -LARGEST <= value <= LARGEST:
        return None
    return float(value)


def mapping(value: Any) -> dict[str, Any]:
    """Return a value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def default_retries(document: WorkflowDocument) -> tuple[int, Origin]:
    """Return how often a step is retried that doesn't say so, and where that comes from."""
    given = whole(mapping(document.head.data.get("config")).get("max_retries"))
    return (MAX_RETRIES, "default") if given is None else (given, "config")


def whole(value: Any) -> int | None:
    """Return a value if it is a number of retries."""
    return value if type(value) is int and 0 <= value <= LARGEST else None


def backoff_of(data: Any) -> Backoff:
    """Return how a step waits, from its plain values."""
    retry = mapping(mapping(data).get("retry"))
    base, most = number(retry.get("backoff_base")), number(retry.get("backoff_max"))
    return Backoff(
        BACKOFF_BASE if base is None else base,
        BACKOFF_MAX if most is None else most,
        retry.get("jitter", JITTER) is not False,
    )


def retries_of(step: Step, default: tuple[int, Origin]) -> tuple[int, Origin]:
    """Return how often a step is retried at most, and where that comes from.

    Routers and gates have no failure of their own that is retried; only a `timeout` makes one.
    """
    if step.type in NEVER_RETRIED and not (number(step.facts.data.get("timeout")) or 0) > 0:
        return 0, "type"
    own = whole(mapping(step.facts.data.get("retry")).get("max_retries"))
    return default if own is None else (own, "retry")


def _worst(document: WorkflowDocument, depth: int) -> Worst:
    default = default_retries(document)
    efforts = {name: _effort(document, step, default, depth) for name, step in document.by_id.items()}
    legs: list[Leg] = []
    unlimited = [name for name, found in efforts.items() if found.limit is None]
    most = _concurrency(document)
    total = waits = 0.0
    for names in document.graph.layers:
        times = [(efforts[name].total or 0.0, name) for name in names]
        longest, slowest = max(times, key=lambda one: one[0])
        if len(times) > most:  # what waits for a free place: no schedule takes longer than this
            longest += (sum(time for time, _ in times) - longest) / most
        waits += max(efforts[name].waiting for name in names)
        total += longest
        if longest > 0:
            legs.append(Leg(slowest, longest))
    limit = number(mapping(document.head.data.get("config")).get("timeout"))
    bounded: float | None = None if unlimited else total
    if limit is not None and limit > 0:
        bounded = limit if bounded is None else min(bounded, limit)
        waits = min(waits, limit)
    return Worst(efforts, tuple(legs), waits, bounded, tuple(unlimited))


def _concurrency(document: WorkflowDocument) -> int:
    most = mapping(document.head.data.get("config")).get("max_concurrent_steps")
    return most if type(most) is int and most > 0 else 10


def _effort(document: WorkflowDocument, step: Step, default: tuple[int, Origin], depth: int) -> Effort:
    retries, origin = retries_of(step, default)
    backoff = backoff_of(step.facts.data)
    attempts = retries + 1
    waits = backoff.longest_total(retries)
    asked = backoff.longest_total(retries, True) if step.type in _ASKING else waits
    inside: int = attempts
    path: tuple[str, ...] = (step.id or "",)
    below = _below(document, step, depth)
    if below is not None and below.efforts:
        most = max(below.efforts.values(), key=lambda found: found.inside)
        inside, path = attempts * most.inside, (*path, *most.path)
    limit, by = _limit(document, step, below)
    waits_below = 0.0 if below is None else attempts * min(below.waits, below.waits if limit is None else limit)
    return Effort(step, attempts, origin, waits, asked, limit, by, inside, path, waits_below)


def _below(document: WorkflowDocument, step: Step, depth: int) -> Worst | None:
    child = document.children.get(step.id or "") if step.type == "subworkflow" else None
    if child is None or child.document is None or child.loop or depth >= DEEPEST:
        return None
    if depth == 0 and child.path is not None:
        return effort(child.document)
    return _worst(child.document, depth + 1)


def _limit(document: WorkflowDocument, step: Step, below: Worst | None) -> tuple[float | None, Limit | None]:
    """Return how long one attempt may take, and what says so; the shortest limit counts."""
    data = step.facts.data
    found: list[tuple[float, Limit]] = []
    timeout = number(data.get("timeout"))
    if timeout is not None and timeout > 0:
        found.append((timeout, "timeout"))
    if step.type in NEVER_RETRIED:
        found.append((0.0, "instant"))  # a gate that waits has ended the run until somebody resumes it
    elif step.type == "tool":
        tool = step.facts.text("tool_name")
        if tool in ("file_read", "file_write"):
            found.append((0.0, "instant"))
        elif tool in _TIMED_TOOLS:
            given = number(mapping(data.get("tool_args")).get("timeout", _TIMED_TOOLS[tool]))
            if given is not None and given > 0:
                found.append((given, "tool"))
    elif step.type == "agent":
        agent = find_agent(document, str(data.get("agent")), document)
        latency = number(mapping({} if agent is None else agent.data.get("constraints")).get("max_latency_ms"))
        if latency is not None and latency > 0:
            found.append((latency / 1000, "max_latency_ms"))
    elif below is not None and below.total is not None:
        found.append((below.total, "child"))
    return min(found) if found else (None, None)
