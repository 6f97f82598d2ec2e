"""Exceptions: what the outside world can do wrong. Faults in a user's file are diagnostics, not exceptions.

::

    AgentLoomError                       exit code 1
    ├── UsageError                       exit code 2: contradictory or unusable options
    ├── WorkflowError                    a workflow can't be loaded or run
    │   └── InvalidWorkflow              carries the document whose errors refuse it
    ├── StepError                        one step failed; ``transient`` says whether another attempt makes sense
    │   ├── TemplateError                a template that can't be rendered
    │   ├── ExpressionError              a router expression that is forbidden, malformed or fails
    │   ├── StateWriteError              an output path that the state refuses
    │   ├── ToolNotFoundError
    │   └── AttachmentResolutionError
    ├── ProviderError                    a model API refused or failed; may carry a status and a Retry-After
    │   ├── RateLimitError
    │   ├── CircuitOpenError
    │   └── RecordingMismatchError
    ├── BudgetExceededError
    ├── SecurityError
    │   └── SandboxViolationError
    ├── ValidationError                  a value doesn't fit its schema
    ├── PauseRequestedError              an approval gate waits
    └── CheckpointSchemaError
"""

from __future__ import annotations

from typing import Any


class AgentLoomError(Exception):
    """Base of every exception that agentloom raises on purpose."""

    exit_code = 1


class UsageError(AgentLoomError):
    """The call itself is wrong: options that contradict each other, a file that can't be read."""

    exit_code = 2


class WorkflowError(AgentLoomError):
    """A workflow can't be loaded or run."""


class InvalidWorkflow(WorkflowError):
    """The file has errors. ``document`` is the analysed document, whose diagnostics say which."""

    def __init__(self, message: str, document: Any = None) -> None:
        super().__init__(message)
        self.document = document


class StepError(AgentLoomError):
    """One attempt of a step failed.

    ``transient`` is true when another attempt may succeed; ``step_id`` is filled in by the engine.
    """

    transient = False

    def __init__(self, message: str, *, step_id: str | None = None, transient: bool | None = None) -> None:
        super().__init__(message)
        self.step_id = step_id
        if transient is not None:
            self.transient = transient


class TemplateError(StepError):
    """A template can't be rendered; ``start`` and ``end`` are offsets in the template's value."""

    def __init__(self, message: str, *, start: int = 0, end: int = 0) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


class ExpressionError(StepError):
    """A router expression is malformed, forbidden or failed; ``start`` and ``end`` are offsets in its value."""

    def __init__(self, message: str, *, start: int = 0, end: int = 0) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


class StateWriteError(StepError):
    """An output path can't be written: through a scalar, past a list's end, into `steps`."""


class ToolNotFoundError(StepError):
    """A step names a tool that isn't registered."""


class AttachmentResolutionError(StepError):
    """An attachment is refused, can't be read, or no provider takes it."""


class ProviderError(AgentLoomError):
    """A provider failed. ``status_code`` is the HTTP status if there was one, ``retry_after`` seconds to wait."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status_code: int | None = None,
        retry_after: float | None = None,
        permanent: bool = False,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status_code = status_code
        self.retry_after = retry_after
        self.permanent = permanent


class RateLimitError(ProviderError):
    """The provider, or our own limit for it, refuses for now; ``retry_after`` says how long."""


class CircuitOpenError(ProviderError):
    """The provider's circuit breaker is open."""


class RecordingMismatchError(ProviderError):
    """A strict replay asked for something the recording doesn't hold; ``step`` is the step's path, ``why`` what doesn't fit."""

    def __init__(self, message: str, *, provider: str = "", step: str = "", why: str = "") -> None:
        super().__init__(message, provider=provider, permanent=True)
        self.step = step
        self.why = why


class BudgetExceededError(AgentLoomError):
    """The run's spend is over, or has reached, its limit (both in US dollars)."""

    def __init__(self, spent: float, limit: float) -> None:
        super().__init__(f"Budget exceeded: spent ${spent:.4f} of ${limit:.4f} limit")
        self.spent = spent
        self.limit = limit


class SecurityError(AgentLoomError):
    """Something was refused for safety."""


class SandboxViolationError(SecurityError):
    """The sandbox refuses a command, a path or a host."""


class ValidationError(AgentLoomError):
    """A value doesn't fit the schema it was asked to fit."""


class PauseRequestedError(AgentLoomError):
    """An approval gate asks the run to pause."""

    def __init__(self, step_id: str) -> None:
        super().__init__(f"paused at `{step_id}`")
        self.step_id = step_id


class CheckpointSchemaError(AgentLoomError):
    """A checkpoint was written by a newer version, or isn't a checkpoint."""
