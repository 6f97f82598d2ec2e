"""The table of exceptions: each with its word, permanent or transient (RT-2)."""

from __future__ import annotations

import pytest

from agentloom import errors
from agentloom.core.failures import classify, failed

CASES: list[tuple[Exception, str]] = [
    (errors.StepError("x"), "permanent"),
    (errors.StepError("x", transient=True), "transient"),
    (errors.TemplateError("x"), "permanent"),
    (errors.ExpressionError("x"), "permanent"),
    (errors.StateWriteError("x"), "permanent"),
    (errors.ToolNotFoundError("x"), "permanent"),
    (errors.AttachmentResolutionError("x"), "permanent"),
    (errors.ProviderError("x"), "transient"),
    (errors.ProviderError("x", status_code=429), "transient"),
    (errors.ProviderError("x", status_code=529), "permanent"),
    (errors.ProviderError("x", permanent=True), "permanent"),
    (errors.RateLimitError("x"), "transient"),
    (errors.CircuitOpenError("x"), "transient"),
    (errors.RecordingMismatchError("x"), "permanent"),
    (errors.BudgetExceededError(2, 1), "permanent"),
    (errors.SecurityError("x"), "permanent"),
    (errors.SandboxViolationError("x"), "permanent"),
    (errors.ValidationError("x"), "permanent"),
    (errors.WorkflowError("x"), "permanent"),
    (errors.InvalidWorkflow("x"), "permanent"),
    (errors.UsageError("x"), "permanent"),
    (errors.CheckpointSchemaError("x"), "permanent"),
    (errors.PauseRequestedError("x"), "permanent"),
    (errors.AgentLoomError("x"), "permanent"),
    (ValueError("x"), "permanent"),
]


@pytest.mark.parametrize(("error", "word"), CASES, ids=lambda value: type(value).__name__)
def test_each_error_has_its_word(error: Exception, word: str) -> None:
    """With the statuses that are retried by default."""
    assert classify(error, (429, 500, 502, 503, 504)) == word


def test_no_error_is_left_out() -> None:
    """Every exception of the project stands in the table."""
    known = {
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AgentLoomError)
    }
    assert known <= {type(error) for error, _ in CASES}


def test_the_steps_own_statuses_count() -> None:
    """GW-1: `retryable_status_codes` decides."""
    assert classify(errors.ProviderError("x", status_code=529), (529,)) == "transient"
    assert classify(errors.ProviderError("x", status_code=429), (529,)) == "permanent"


def test_what_nobody_foresaw_is_named_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The class and its words for the user, the traceback for the log."""
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError as error:
        result = failed("s", error, ())
    assert result.error == "unexpected ZeroDivisionError: by zero"
    assert failed("s", AssertionError(), ()).error == "unexpected AssertionError"
    assert caplog.records[0].exc_info is not None
