"""What a model is offered to call: registered tools as a step describes them, and whether it has to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentloom.core.kinds import Attempt, Services
from agentloom.errors import StepError, ToolNotFoundError
from agentloom.providers.base import ToolChoice, ToolSpec
from agentloom.steps.tool_loop import Offer

if TYPE_CHECKING:
    from agentloom.model.llm import ToolDefinition
    from agentloom.model.steps import LLMCallStep, StepBase

NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}


def offered(tools: Iterable[ToolDefinition], services: Services, attempt: Attempt) -> Iterator[Offer]:
    """Yield what a step offers. A tool that nobody registered is a warning: a call of it is answered so, as text."""
    for tool in tools:
        try:
            spec = spec_of(services, tool.name, tool.description, tool.parameters)
        except ToolNotFoundError as error:
            attempt.warn(f"{error}; a call of it can't succeed")
            spec = ToolSpec(tool.name, tool.description or "", tool.parameters or NO_ARGUMENTS)
        yield offer_of(services, spec)


def spec_of(services: Services, name: str, description: str | None, parameters: Mapping[str, Any] | None) -> ToolSpec:
    """Return a tool as a model sees it; what isn't given is as it was registered. Raises ``ToolNotFoundError``."""
    info = services.tools.info(name)
    return ToolSpec(
        name,
        info.description if description is None else description,
        info.parameters if parameters is None else parameters,
    )


def offer_of(services: Services, spec: ToolSpec) -> Offer:
    """Return a registered tool as an offer."""

    async def call(arguments: Mapping[str, Any], key: str) -> Any:
        return await services.tools.call(spec.name, arguments)

    return Offer(spec, call)


def choice_of(step: LLMCallStep, offers: Mapping[str, Offer]) -> ToolChoice:
    """Return what a step says about calling tools. Raises ``StepError`` for a tool that it doesn't offer."""
    choice = step.tool_choice
    if isinstance(choice, str):
        return ToolChoice(choice)
    if choice.name not in offers:
        raise StepError(f"`tool_choice` names `{choice.name}`, which isn't one of the step's `tools`")
    return ToolChoice("tool", choice.name)


def retries_of(step: StepBase, services: Services) -> int:
    """Return how often a step's reply is asked for again: as often as the step is retried."""
    own = step.retry.max_retries
    return services.max_retries if own is None else own
