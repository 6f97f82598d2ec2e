"""One turn of an agent: its system prompt, its tools and its limits, in the loop that model calls use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio

from agentloom.core.agents import Agent
from agentloom.core.kinds import EVERYTHING, Attempt, Executor, Services
from agentloom.core.results import JSON, StepResult
from agentloom.core.runner import Op
from agentloom.errors import StepError
from agentloom.language.expression import evaluate
from agentloom.language.paths import MISSING, get
from agentloom.language.rendering import render
from agentloom.providers.base import Message, Request, Response, ToolChoice, ToolSpec
from agentloom.steps.asking import Caller, TooDear
from agentloom.steps.conversation import Conversation, read_conversation
from agentloom.steps.llm_call import path_of, prompt_metadata
from agentloom.steps.memory import Opened, open_turn, summarizer
from agentloom.steps.offers import offer_of, retries_of, spec_of
from agentloom.steps.patterns import check_patterns, first_match
from agentloom.steps.structured import settle, wanted_of
from agentloom.steps.tool_loop import Offer, Raised, take_turn

if TYPE_CHECKING:
    from agentloom.model.agent import AgentDefinition
    from agentloom.model.steps import AgentStep

GO_ON = "Go on."
"""What an agent is told when it has called nothing, and its `exit_condition` doesn't hold yet."""

_NO_TOOL_CALL = "no_tool_call"
_INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "input": {"type": "string", "description": "What the agent is asked, with all that it needs to know."}
    },
    "required": ["input"],
    "additionalProperties": False,
}


class _Answer(NamedTuple):
    """How a turn ended: the last reply, the value in it where it has a form, and whether it was cut off by `max_iterations`."""

    response: Response
    value: JSON
    capped: bool


async def run(op: Op, services: Services, attempt: Attempt) -> StepResult:
    """Perform one attempt.

    Raises ``StepError``: permanent for a broken constraint, the cap on calls, a missing tool, an unusable conversation; transient when
    `max_latency_ms` is over. Raises ``TemplateError`` and ``ProviderError`` as a model call does.
    """
    step = cast("AgentStep", op.step)
    agent = services.agents[step.agent]
    prompt = None if step.input is None else render(step.input, op.inputs, warn=attempt.warn)
    if prompt is None and step.conversation is None:
        raise StepError("an `agent` step without `conversation` needs an `input`")
    _check_all(agent, services)
    turn = _Turn(agent, op, services, attempt, attempt.key)
    with _within(agent):
        opened = await _opened(turn, step, prompt)
        answer = await turn.take(opened.messages)
    asked = opened.messages[-1].content if prompt is None else prompt
    metadata = prompt_metadata(services, op, step.input, asked, agent.definition.system_prompt)
    metadata["finish_reason"] = "max_iterations" if answer.capped else answer.response.finish_reason
    metadata["agent"] = agent.name
    if step.conversation is not None:
        metadata["conversation"] = opened.told
    return StepResult(
        step.id,
        "success",
        output=answer.response.content,
        value=answer.value,
        conversation=MISSING if step.conversation is None else opened.answered(answer.response.content, None),
        model=answer.response.model,
        provider=answer.response.provider,
        time_to_first_token_ms=turn.caller.time_to_first_token_ms,
        prompt_metadata=metadata,
    )


async def _opened(turn: _Turn, step: AgentStep, prompt: str | None) -> Opened:
    """Return the beginning of a step's turn: what the agent remembers goes before what it is asked."""
    conversation = Conversation()
    if step.conversation is not None:
        conversation = read_conversation(get(turn.op.inputs, path_of(step.conversation)), step.conversation)
        memory = turn.agent.definition.memory
        if memory is not None:
            budget = conversation.token_budget if memory.token_budget is None else memory.token_budget
            conversation = conversation._replace(token_budget=budget, trim_policy=memory.trim_policy)
    return await open_turn(
        conversation,
        turn.system,
        prompt,
        own_system=True,
        speaker=None,
        attachments=(),
        summarize=summarizer(turn.caller, turn.op.path),
    )


class _Turn:
    """One turn of one agent, called by a step, or by another agent, whose ``parent`` caller pays as well."""

    def __init__(
        self, agent: Agent, op: Op, services: Services, attempt: Attempt, key: str, parent: Caller | None = None
    ) -> None:
        self.agent, self.op, self.services, self.attempt = agent, op, services, attempt
        definition = agent.definition
        self.system = render(definition.system_prompt, op.inputs, warn=attempt.warn)
        schema = definition.output_schema
        self.wanted = None if schema is None else wanted_of(schema, agent.name, services.project)
        self.stream = services.stream and parent is None
        request = partial(
            Request,
            model=definition.model or services.model,
            stream=self.stream,
            step_id=op.path if parent is None else f"{op.path}::{_plain_name(agent.name)}",
            reply_format=None if self.wanted is None else self.wanted.format,
            prefer=services.provider,
        )
        limit = definition.constraints.max_cost_usd
        on_delta = attempt.delta if self.stream else None
        self.caller = Caller(services, attempt, request, key, on_delta, limit, parent)

    async def take(self, messages: list[Message]) -> _Answer:
        """Ask until the turn is over, and look at what came of it."""
        definition = self.agent.definition
        policy = definition.loop_policy
        condition = None if policy.exit_condition == _NO_TOOL_CALL else policy.exit_condition

        def over(reply: str) -> bool:
            return bool(evaluate(condition or "", self.op.inputs, {"reply": reply}))

        turn = await take_turn(
            self.caller,
            messages,
            self._offers(),
            ToolChoice(),
            policy.max_iterations,
            conclude=False,
            over=over if condition is not None else None,
            go_on=GO_ON if condition is not None else None,
        )
        response, value = turn.response, MISSING
        if turn.capped:
            text = f"agent `{self.agent.name}` made {policy.max_iterations} model calls without coming to an end"
            if policy.on_max_iterations == "error":
                raise StepError(f"{text}; raise `loop_policy.max_iterations`, or look at what it is asked")
            self.attempt.warn(f"{text}; its last reply counts")
        if self.wanted is not None:
            retries = 0 if self.stream else retries_of(self.op.step, self.services)
            response, value = await settle(response, [*messages, *turn.messages], self.wanted, retries, self.caller.ask)
        broken = await first_match(definition.constraints.forbidden_patterns, response.content)
        if broken is not None:
            raise StepError(f"the reply of agent `{self.agent.name}` matches the forbidden pattern `{broken[:60]}`")
        return _Answer(response, value, turn.capped)

    def _offers(self) -> dict[str, Offer]:
        """Return what the agent may call. Raises ``StepError`` for two things of one name."""
        offers: dict[str, Offer] = {}
        for offer in (*_tools(self.agent.definition, self.services), *map(self._as_tool, self.agent.called.values())):
            if offer.spec.name in offers:
                raise StepError(f"agent `{self.agent.name}` has two tools called `{offer.spec.name}`; rename one")
            offers[offer.spec.name] = offer
        return offers

    def _as_tool(self, agent: Agent) -> Offer:
        """Return another agent as something that this one may call; what it spends counts for both."""

        async def call(arguments: Mapping[str, Any], key: str) -> Any:
            text = arguments.get("input")
            if not isinstance(text, str):
                raise StepError("argument `input` must be a text")
            try:
                below = _Turn(agent, self.op, self.services, self.attempt, key, self.caller)
            except StepError as error:  # a template or a class that can't be used won't be better next time
                raise Raised(error) from error
            try:
                with _within(agent):
                    answer = await below.take([Message("system", below.system), Message("user", text)])
            except TooDear as error:
                if error.caller is below.caller:
                    raise  # its own limit: the model that called it may do without
                raise Raised(error) from error
            return answer.response.content if answer.value is MISSING else answer.value

        return Offer(ToolSpec(_plain_name(agent.name), agent.definition.description, _INPUT), call)


@contextmanager
def _within(agent: Agent) -> Iterator[None]:
    """Bound a turn by the agent's `max_latency_ms`: running out is a transient failure."""
    limit = agent.definition.constraints.max_latency_ms
    with anyio.move_on_after(limit / 1000 if limit else None) as scope:
        yield
    if scope.cancelled_caught:
        raise StepError(f"agent `{agent.name}` took longer than its `max_latency_ms` of {limit:g}", transient=True)


def _check_all(agent: Agent, services: Services) -> None:
    """Look at an agent, and at those that it calls, before anything is asked.

    Raises ``ToolNotFoundError``, permanent, for a tool that nobody registered, and ``StepError`` for a pattern that can't be used.
    """
    todo, seen = [agent], {id(agent)}
    while todo:
        at = todo.pop()
        for _ in _tools(at.definition, services):
            pass
        check_patterns(at.definition.constraints.forbidden_patterns)
        for other in at.called.values():
            if id(other) not in seen:
                seen.add(id(other))
                todo.append(other)


def _tools(definition: AgentDefinition, services: Services) -> Iterator[Offer]:
    for tool in definition.tools:
        if isinstance(tool, str):
            yield offer_of(services, spec_of(services, tool, None, None))
        elif (name := getattr(tool, "name", None)) is not None:
            described = cast("Any", tool)
            yield offer_of(services, spec_of(services, name, described.description, described.parameters))


def _plain_name(name: str) -> str:
    """Return an agent's name as providers take names of tools."""
    return re.sub("[^A-Za-z0-9_-]", "_", name)[:64]


EXECUTOR = Executor(type="agent", reads=lambda step: EVERYTHING, run=run)
