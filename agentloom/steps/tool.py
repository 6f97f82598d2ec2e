"""A tool step: resolve the arguments, call the registry, make plain data of what comes back."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.plain import NotPlain, plain
from agentloom.core.results import StepResult
from agentloom.core.runner import Op
from agentloom.errors import RecordingMismatchError, SecurityError, StepError, ToolNotFoundError, ValidationError
from agentloom.language.arguments import find_references_deep, render_deep, unescaped
from agentloom.language.paths import Part
from agentloom.tools.keys import keyed

if TYPE_CHECKING:
    from agentloom.model.steps import ToolStep

log = logging.getLogger(__name__)


def references(value: Any) -> Iterator[tuple[Part, ...]]:
    """Yield the paths that the texts in a value read, at every depth."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            for placeholder in find_references_deep(item):
                yield placeholder.parts
        elif isinstance(item, Mapping):
            if not unescaped(item)[1]:
                todo.extend(item.values())
        elif isinstance(item, list | tuple):
            todo.extend(item)


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Perform one attempt.

    Raises ``TemplateError`` for arguments that can't be resolved, ``ToolNotFoundError``, ``SandboxViolationError``, a ``StepError`` for
    arguments that don't fit the tool, and a transient one for everything else that it raises.
    """
    step = cast("ToolStep", op.step)
    # A copy: a tool may do with its arguments what it likes, and the state must not change under the steps beside it.
    args = plain(render_deep(step.tool_args, op.inputs, warn=attempt.warn), "tool_args")
    try:
        with keyed(attempt.key):
            result = await services.tools.call(step.tool_name, args)
    except (ToolNotFoundError, SecurityError, RecordingMismatchError):
        raise
    except ValidationError as error:
        # Arguments that don't fit the tool's schema don't fit it next time either.
        raise StepError(f"Tool '{step.tool_name}' failed: {error}") from error
    except Exception as error:
        log.debug("Tool '%s' raised", step.tool_name, exc_info=error)
        text = str(error) or type(error).__name__
        raise StepError(f"Tool '{step.tool_name}' failed: {text}", transient=True) from error
    try:
        output = plain(result, "result")
    except NotPlain as error:
        raise StepError(f"Tool '{step.tool_name}' failed: {error}; return plain data") from error
    return StepResult(step.id, "success", output=output)


EXECUTOR = Executor(type="tool", reads=lambda step: references(step.tool_args), run=run)
