"""One model call: render the prompts, ask the gateway, keep what came back."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Op
from agentloom.errors import StepError
from agentloom.language.paths import Part
from agentloom.language.rendering import render
from agentloom.language.template import parse_template
from agentloom.providers.base import Message, Request, Response

if TYPE_CHECKING:
    from agentloom.model.steps import LLMCallStep


def reads(step: LLMCallStep) -> Iterator[tuple[Part, ...]]:
    """Yield the paths that the prompts read."""
    for text in (step.prompt, step.system_prompt):
        if text is not None:
            for placeholder in parse_template(text).placeholders:
                yield placeholder.parts


def unsupported(step: LLMCallStep) -> Iterator[str]:
    """Yield the fields that ask for what isn't built yet."""
    if step.conversation is not None:
        yield "conversation"
    if step.speaker is not None:
        yield "speaker"
    if step.attachments:
        yield "attachments"
    if step.thinking.enabled:
        yield "thinking"
    if step.tools:
        yield "tools"
    if step.response_schema is not None:
        yield "response_schema"


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Perform one attempt. Raises ``TemplateError`` for a broken template, ``ProviderError`` when no provider answers."""
    step = cast("LLMCallStep", op.step)
    if step.prompt is None:
        raise StepError("an `llm_call` without `conversation` needs a `prompt`")
    messages: list[Message] = []
    if step.system_prompt:
        messages.append(Message("system", render(step.system_prompt, op.inputs, warn=attempt.warn)))
    prompt = render(step.prompt, op.inputs, warn=attempt.warn)
    messages.append(Message("user", prompt))
    stream = services.stream if step.stream is None else step.stream
    request = Request(
        model=step.model or services.model,
        messages=messages,
        temperature=step.temperature,
        max_tokens=step.max_tokens,
        stream=stream,
        step_id=op.path,
        prefer=services.provider,
        idempotency_key=attempt.key,
    )
    response = await services.gateway.complete(request, attempt.delta if stream else None)
    attempt.spend(response.cost_usd, response.usage)
    return StepResult(
        step.id,
        "success",
        output=response.content,
        model=response.model,
        provider=response.provider,
        time_to_first_token_ms=response.time_to_first_token_ms,
        prompt_metadata=_metadata(services.workflow, step, prompt, response),
    )


def _metadata(workflow: str, step: LLMCallStep, prompt: str, response: Response) -> dict[str, JSON]:
    """Return what is kept of a prompt instead of the prompt itself."""
    return {
        "hash": sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "length_chars": len(prompt),
        "template_id": f"{workflow}:{step.id}",
        "template_vars": list(parse_template(step.prompt or "").names),
        "finish_reason": response.finish_reason,
    }


EXECUTOR = Executor(type="llm_call", reads=reads, run=run, unsupported=unsupported)
