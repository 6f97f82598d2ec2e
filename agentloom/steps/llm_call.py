"""One model call: render the prompts, ask the gateway until the model has answered, keep what came back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from agentloom.core.kinds import Attempt, Executor, Services
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Op
from agentloom.errors import StepError
from agentloom.language.paths import MISSING, Part, StatePath, get, parse_path
from agentloom.language.rendering import render
from agentloom.language.template import parse_template
from agentloom.providers.base import Message, Reasoning, Request
from agentloom.steps.asking import Caller
from agentloom.steps.attachments import resolve, sources_read
from agentloom.steps.conversation import read_conversation
from agentloom.steps.memory import Opened, open_turn, summarizer
from agentloom.steps.offers import choice_of, offered, retries_of
from agentloom.steps.structured import settle, wanted_of
from agentloom.steps.tool_loop import take_turn

if TYPE_CHECKING:
    from agentloom.model.steps import LLMCallStep


def reads(step: LLMCallStep) -> Iterator[tuple[Part, ...]]:
    """Yield the paths that the prompts, the attachments and the conversation lie at."""
    for text in (step.prompt, step.system_prompt):
        if text is not None:
            for placeholder in parse_template(text).placeholders:
                yield placeholder.parts
    yield from sources_read(step.attachments)
    if step.conversation is not None:
        yield path_of(step.conversation)


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Perform one attempt.

    Raises ``TemplateError`` for a broken template, ``ProviderError`` when no provider answers, and ``StepError``, permanent, for a conversation
    that is none or has no room, an attachment that can't go along, and a reply that never has the form that it must have.
    """
    step = cast("LLMCallStep", op.step)
    if step.prompt is None and step.conversation is None:
        raise StepError("an `llm_call` without `conversation` needs a `prompt`")
    system = render(step.system_prompt, op.inputs, warn=attempt.warn) if step.system_prompt else None
    prompt = None if step.prompt is None else render(step.prompt, op.inputs, warn=attempt.warn)
    wanted = None if step.response_schema is None else wanted_of(step.response_schema, step.id, services.project)
    attachments = await resolve(step.attachments, op, services, attempt)
    stream = services.stream if step.stream is None else step.stream
    request = partial(
        Request,
        model=step.model or services.model,
        temperature=step.temperature,
        max_tokens=step.max_tokens,
        stream=stream,
        step_id=op.path,
        reply_format=None if wanted is None else wanted.format,
        reasoning=Reasoning(step.thinking.budget_tokens, step.thinking.level) if step.thinking.enabled else None,
        prefer=services.provider,
    )
    caller = Caller(services, attempt, request, attempt.key, attempt.delta if stream else None)
    opened: Opened | None = None
    if step.conversation is not None:
        opened = await open_turn(
            read_conversation(get(op.inputs, path_of(step.conversation)), step.conversation),
            system,
            prompt,
            own_system=step.speaker is not None,
            speaker=step.speaker,
            attachments=attachments,
            summarize=summarizer(caller, op.path),
        )
        messages = opened.messages
    else:
        messages = [Message("system", system)] if system else []
        messages.append(Message("user", prompt or "", name=step.speaker, attachments=attachments))
    offers = {offer.spec.name: offer for offer in offered(step.tools, services, attempt)}
    choice = choice_of(step, offers)
    most_calls = 1 + step.max_tool_iterations if offers and choice.mode != "none" else 1
    turn = await take_turn(caller, messages, offers, choice, most_calls, conclude=True)
    response, value = turn.response, MISSING
    if wanted is not None:
        retries = 0 if stream else retries_of(step, services)
        response, value = await settle(response, messages, wanted, retries, caller.ask)
    metadata = prompt_metadata(
        services, op, step.prompt, messages[-1].content if prompt is None else prompt, step.system_prompt
    )
    metadata["finish_reason"] = response.finish_reason
    if turn.capped:
        forced = choice.mode in ("required", "tool")
        silent = forced and not response.content.strip()
        metadata["finish_reason"] = "max_tool_iterations_no_answer" if silent else "max_tool_iterations"
    if opened is not None:
        metadata["conversation"] = opened.told
    if step.thinking.enabled and step.thinking.capture_reasoning and caller.reasoning:
        metadata["reasoning"] = kept_reasoning(services, op, caller)
    return StepResult(
        step.id,
        "success",
        output=response.content,
        value=value,
        conversation=MISSING if opened is None else opened.answered(response.content, step.speaker),
        model=response.model,
        provider=response.provider,
        attachment_count=len(attachments),
        time_to_first_token_ms=caller.time_to_first_token_ms,
        prompt_metadata=metadata,
    )


def path_of(written: str) -> tuple[Part, ...]:
    """Return where a conversation is kept. The plan has looked at the path before."""
    found = parse_path(written)
    return found.parts if isinstance(found, StatePath) else ()


def kept_reasoning(services: Services, op: Op, caller: Caller) -> str | None:
    """Return the reasoning that a result keeps: nothing where the whole output is a secret."""
    return None if services.is_secret(op.step.id) else "\n\n".join(caller.reasoning)


def prompt_metadata(
    services: Services, op: Op, template: str | None, prompt: str, system: str | None
) -> dict[str, JSON]:
    """Return what is kept of a prompt instead of the prompt itself; with `capture_prompts` also the prompts, without secrets."""
    found: dict[str, JSON] = {
        "hash": sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "length_chars": len(prompt),
        "template_id": f"{services.workflow}:{op.step.id}",
        "template_vars": list(parse_template(template or "").names),
        "finish_reason": None,
    }
    if services.capture_prompts:
        state = services.redact(op.inputs)
        found |= {name: render(text, state) for name, text in (("system_prompt", system), ("prompt", template)) if text}
    return found


EXECUTOR = Executor(type="llm_call", reads=reads, run=run)
