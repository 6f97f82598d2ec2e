"""Exceptions of an attempt to the failed result they mean: one table, walked by a test."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agentloom.core.results import Classification, StepResult
from agentloom.errors import (
    AgentLoomError,
    BudgetExceededError,
    ProviderError,
    RecordingMismatchError,
    SecurityError,
    StepError,
    ValidationError,
    WorkflowError,
)
from agentloom.providers.surroundings import current_secrets

log = logging.getLogger(__name__)

# The first line that fits decides; what fits none of them was not foreseen. Another attempt can't cure any of these.
PERMANENT: tuple[type[AgentLoomError], ...] = (
    RecordingMismatchError,
    BudgetExceededError,
    SecurityError,
    ValidationError,
    WorkflowError,
)


def classify(error: Exception, retryable: Sequence[int]) -> Classification:
    """Tell whether another attempt may succeed.

    ``retryable`` are the provider statuses worth one: a listed status is transient, any other permanent, none at all transient.
    """
    if isinstance(error, PERMANENT):
        return "permanent"
    if isinstance(error, StepError):
        return "transient" if error.transient else "permanent"
    if isinstance(error, ProviderError):
        if error.permanent:
            return "permanent"
        return "transient" if error.status_code is None or error.status_code in retryable else "permanent"
    return "permanent"


def failed(step_id: str, error: Exception, retryable: Sequence[int]) -> StepResult:
    """Return the result of an attempt that raised ``error``.

    Secrets that it quotes are replaced, since results are kept and told. An error that nobody foresaw is named with its class; where it came from stands in the log, not in the result.
    """
    if isinstance(error, AgentLoomError):
        text = str(error) or type(error).__name__
    else:
        log.error("Step '%s' raised an unexpected error", step_id, exc_info=error)
        text = f"unexpected {type(error).__name__}: {error}" if str(error) else f"unexpected {type(error).__name__}"
    return StepResult(
        step_id, "failed", error=current_secrets().text(text), error_classification=classify(error, retryable)
    )
