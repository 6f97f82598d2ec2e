"""What a step and a run end with: values, in the keys that checkpoints and ``run --json`` use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import isfinite
from typing import Any, Literal, TypeAlias, get_args

from agentloom.errors import UsageError
from agentloom.language.paths import MISSING
from agentloom.providers.base import Usage
from agentloom.records import record

JSON: TypeAlias = Any
"""Plain data: mappings with text keys, lists, texts, finite numbers, true, false and null."""

StepStatus = Literal["success", "failed", "skipped", "timeout", "paused"]
RunStatus = Literal["success", "failed", "timeout", "budget_exceeded", "paused"]
Classification = Literal["transient", "permanent"]

NO_USAGE = Usage()


@record(repr=True)
class StepResult:
    """How one step ended. Durations are in milliseconds, costs in US dollars.

    ``value`` is what the step writes to the state where that isn't its ``output``: the parsed reply of which `output` is the text, the
    vectors that it tells of; else it is MISSING. ``conversation`` is what it writes to the path of its `conversation`, whole; MISSING if it has none.

    ``error_classification`` tells of a failed step whether another attempt could have helped. ``warnings`` are what the step
    complained about on the way, such as template variables that are missing. ``webhook`` tells what came of the one that an approval gate
    sent; `to_dict` has it where there was one. ``attempts``, and what the last of them cost by itself (without child workflows) in money and tokens, are not
    part of ``to_dict``.
    """

    step_id: str
    status: StepStatus
    output: JSON = None
    error: str | None = None
    duration_ms: float = 0.0
    token_usage: Usage = NO_USAGE
    cost_usd: float = 0.0
    model: str | None = None
    provider: str | None = None
    attachment_count: int = 0
    time_to_first_token_ms: float | None = None
    prompt_metadata: Mapping[str, JSON] | None = None
    error_classification: Classification | None = None
    warnings: tuple[str, ...] = ()
    webhook: Mapping[str, JSON] | None = None
    attempts: int = 1
    last_cost_usd: float = 0.0
    last_tokens: int = 0
    value: JSON = MISSING
    conversation: JSON = MISSING

    def ended(
        self,
        duration_ms: float,
        warnings: tuple[str, ...],
        attempts: int,
        last_cost_usd: float,
        last_tokens: int,
        cost_usd: float,
        token_usage: Usage,
    ) -> StepResult:
        """Return the result with what its attempts add up to. It is filled in: until here it was nobody else's, and a copy costs more."""
        put = object.__setattr__
        put(self, "duration_ms", duration_ms)
        put(self, "warnings", warnings)
        put(self, "attempts", attempts)
        put(self, "last_cost_usd", last_cost_usd)
        put(self, "last_tokens", last_tokens)
        put(self, "cost_usd", cost_usd)
        put(self, "token_usage", token_usage)
        return self

    @property
    def written(self) -> JSON:
        """What goes to the state, where the step's `output` says."""
        return self.output if self.value is MISSING else self.value

    @property
    def failed(self) -> bool:
        """Whether it counts as failed for the steps after it and for the run: it failed, or ran out of time."""
        return self.status in ("failed", "timeout")

    def to_dict(self, whole: bool = False) -> dict[str, JSON]:
        """Return the result as JSON, in the keys of a checkpoint; ``whole`` with all that the state needs if it isn't at hand."""
        usage = self.token_usage
        found: dict[str, JSON] = {
            "step_id": self.step_id,
            "status": self.status,
            "output": self.output,
            "error": self.error,
            "duration_ms": self.duration_ms,
            "token_usage": {
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "total_tokens": usage.total_tokens,
                "reasoning_tokens": usage.reasoning_tokens,
            },
            "cost_usd": self.cost_usd,
            "model": self.model,
            "provider": self.provider,
            "attachment_count": self.attachment_count,
            "time_to_first_token_ms": self.time_to_first_token_ms,
            "prompt_metadata": None if self.prompt_metadata is None else dict(self.prompt_metadata),
            "error_classification": self.error_classification,
        }
        if self.webhook is not None:
            found["webhook"] = dict(self.webhook)
        if self.value is not MISSING:
            found["value"] = self.value
        if whole and self.conversation is not MISSING:
            found["conversation"] = self.conversation
        return found


def result_of(data: Mapping[str, JSON]) -> StepResult:
    """Return the result that its JSON describes; what is missing there has its default. Raises ``ValueError`` for no such JSON."""
    try:
        return _result_of(data)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
        raise ValueError(f"the result of step `{data.get('step_id')}` can't be read") from None


def _result_of(data: Mapping[str, JSON]) -> StepResult:
    if data["status"] not in get_args(StepStatus):
        raise ValueError
    usage = data.get("token_usage") or {}
    first = data.get("time_to_first_token_ms")
    return StepResult(
        str(data["step_id"]),
        data["status"],
        output=data.get("output"),
        error=_a(str, data.get("error")),
        duration_ms=_finite(data.get("duration_ms")),
        token_usage=Usage(
            int(usage.get("prompt_tokens") or 0),
            int(usage.get("completion_tokens") or 0),
            int(usage.get("total_tokens") or 0),
            int(usage.get("reasoning_tokens") or 0),
        ),
        cost_usd=_finite(data.get("cost_usd")),
        model=_a(str, data.get("model")),
        provider=_a(str, data.get("provider")),
        attachment_count=int(data.get("attachment_count") or 0),
        time_to_first_token_ms=None if first is None else _finite(first),
        prompt_metadata=_a(Mapping, data.get("prompt_metadata")),
        error_classification=_a(str, data.get("error_classification")),
        webhook=_a(Mapping, data.get("webhook")),
        value=data.get("value", MISSING),
        conversation=data.get("conversation", MISSING),
    )


def _finite(value: JSON) -> float:
    """Return a number, none for nothing. Raises ``ValueError`` for one that JSON doesn't have."""
    number = float(value or 0.0)
    if not isfinite(number):
        raise ValueError
    return number


def _a(kind: type, value: JSON) -> Any:
    """Return a value of that kind, or None. Raises ``TypeError`` for any other."""
    if value is not None and not isinstance(value, kind):
        raise TypeError
    return value


@record()
class WorkflowResult:
    """How a run ended. ``step_results`` holds the steps that have a result, in the order of the file."""

    workflow_name: str
    status: RunStatus
    step_results: Mapping[str, StepResult]
    final_state: Mapping[str, JSON]
    total_duration_ms: float
    total_tokens: int
    total_cost_usd: float
    error: str | None
    run_id: str
    annotations: list[dict[str, JSON]] = field(default_factory=list)

    def __repr__(self) -> str:
        # Short: asyncio writes the result of a task whenever it looks at the task's own text.
        return f"<WorkflowResult of {self.workflow_name}, run {self.run_id}: {self.status}, {len(self.step_results)} steps>"

    def to_dict(self) -> dict[str, JSON]:
        """Return the result as JSON: what ``run --json`` prints."""
        return {
            "workflow_name": self.workflow_name,
            "status": self.status,
            "step_results": {name: result.to_dict() for name, result in self.step_results.items()},
            "final_state": dict(self.final_state),
            "total_duration_ms": self.total_duration_ms,
            "total_tokens": self.total_tokens,
            "total_cost_usd": self.total_cost_usd,
            "error": self.error,
            "run_id": self.run_id,
            "annotations": list(self.annotations),
        }

    def annotate(
        self, target: str, quality_score: float | None = None, source: str | None = None, **meta: JSON
    ) -> dict[str, JSON]:
        """Add a judgement of the run, or of one of its steps, and return it: ``target`` is a step's id or the workflow's name.

        ``source`` says who judges; ``meta`` is anything besides, as plain data. Raises ``UsageError`` for a score that is no number.
        """
        if quality_score is not None and not isfinite(quality_score):
            raise UsageError(f"`quality_score` must be a finite number, not {quality_score}")
        found: dict[str, JSON] = {"target": target, "quality_score": quality_score, "source": source, **meta}
        self.annotations.append(found)
        return found


def total_usage(results: Mapping[str, StepResult]) -> Usage:
    """Return the tokens of all results together."""
    prompt = completion = total = reasoning = 0
    for result in results.values():
        usage = result.token_usage
        prompt += usage.prompt_tokens
        completion += usage.completion_tokens
        total += usage.total_tokens
        reasoning += usage.reasoning_tokens
    return Usage(prompt, completion, total, reasoning)
