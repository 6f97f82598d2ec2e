"""One model call: render the prompts, ask the gateway, keep what came back."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Op
from agentloom.errors import StepError
from agentloom.language.paths import MISSING, Part
from agentloom.language.rendering import render
from agentloom.language.template import parse_template
from agentloom.providers.base import Message, Reasoning, Request, Response
from agentloom.steps.asking import Caller
from agentloom.steps.attachments import resolve, sources_read
from agentloom.steps.offers import choice_of, offered, retries_of
from agentloom.steps.structured import settle, wanted_of
from agentloom.steps.tool_loop import take_turn

if TYPE_CHECKING:
    from agentloom.model.steps import LLMCallStep


def reads(step: LLMCallStep) -> Iterator[tuple[Part, ...]]:
    """Yield the paths that the prompts and the attachments read."""
    for text in (step.prompt, step.system_prompt):
        if text is not None:
            for placeholder in parse_template(text).placeholders:
                yield placeholder.parts
    yield from sources_read(step.attachments)


def unsupported(step: LLMCallStep) -> Iterator[str]:
    """Yield the fields that ask for what isn't built yet."""
    if step.conversation is not None:
        yield "conversation"
    if step.speaker is not None:
        yield "speaker"


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Perform one attempt.

    Raises ``TemplateError`` for a broken template, ``ProviderError`` when no provider answers, and ``StepError``, permanent, for a reply that never
    has the form that it must have.
    """
    step = cast("LLMCallStep", op.step)
    if step.prompt is None:
        raise StepError("an `llm_call` without `conversation` needs a `prompt`")
    messages: list[Message] = []
    if step.system_prompt:
        messages.append(Message("system", render(step.system_prompt, op.inputs, warn=attempt.warn)))
    prompt = render(step.prompt, op.inputs, warn=attempt.warn)
    attachments = await resolve(step.attachments, op, services, attempt)
    messages.append(Message("user", prompt, attachments=attachments))
    stream = services.stream if step.stream is None else step.stream
    schema = step.response_schema
    wanted = None if schema is None else wanted_of(schema, step.id, services.project)
    request = Request(
        model=step.model or services.model,
        messages=messages,
        temperature=step.temperature,
        max_tokens=step.max_tokens,
        stream=stream,
        step_id=op.path,
        reply_format=None if wanted is None else wanted.format,
        reasoning=Reasoning(step.thinking.budget_tokens, step.thinking.level) if step.thinking.enabled else None,
        prefer=services.provider,
    )
    caller = Caller(services, attempt, request, attempt.key, attempt.delta if stream else None)
    offers = {offer.spec.name: offer for offer in offered(step.tools, services, attempt)}
    choice = choice_of(step, offers)
    most_calls = 1 + step.max_tool_iterations if offers and choice.mode != "none" else 1
    turn = await take_turn(caller, messages, offers, choice, most_calls, conclude=True)
    response, value = turn.response, MISSING
    if wanted is not None:
        retries = 0 if stream else retries_of(step, services)
        response, value = await settle(response, messages, wanted, retries, caller.ask)
    metadata = _metadata(services.workflow, step, prompt, response)
    if turn.capped:
        forced = choice.mode in ("required", "tool")
        silent = forced and not response.content.strip()
        metadata["finish_reason"] = "max_tool_iterations_no_answer" if silent else "max_tool_iterations"
    if step.thinking.enabled and step.thinking.capture_reasoning and caller.reasoning:
        metadata["reasoning"] = "\n\n".join(caller.reasoning)
    return StepResult(
        step.id,
        "success",
        output=response.content,
        value=value,
        model=response.model,
        provider=response.provider,
        attachment_count=len(attachments),
        time_to_first_token_ms=caller.time_to_first_token_ms,
        prompt_metadata=metadata,
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
