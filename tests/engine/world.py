"""A world for the engine: workflows in YAML or plain data, a provider and tools that the test scripts, and every event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent, StepDelta, StepFinished, StepSkipped, StepStarted
from agentloom.core.results import WorkflowResult
from agentloom.errors import ProviderError, ToolNotFoundError
from agentloom.model.workflow import Workflow, build_workflow
from agentloom.providers.base import BaseProvider, OnDelta, Request, Response, Usage
from agentloom.providers.gateway import ProviderGateway
from agentloom.tools.info import ToolInfo
from tests.engine.virtual import run_virtual

Tool = Callable[..., Any]


class Script(BaseProvider):
    """A provider that keeps every request and answers as the test says: by step, a text, an error, or a coroutine function."""

    name = "mock"

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})
        self.requests: list[Request] = []
        self.running = 0
        self.most = 0

    def serves(self, model: str) -> bool:
        """Serve everything."""
        return True

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Answer with the prompt itself unless the script says something else."""
        self.requests.append(request)
        answer = self.answers.get(request.step_id, request.messages[-1].content)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if callable(answer):
                answer = await answer(request, on_delta)
            elif request.stream and on_delta is not None:
                for word in str(answer).split():
                    await on_delta(word)
        finally:
            self.running -= 1
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Response):
            return answer
        return Response(answer, request.model, self.name, Usage(3, 4, 7), 0.5, "stop")

    async def close(self) -> None:
        """Hold nothing."""

    def prompts(self) -> dict[str, str]:
        """Return what each step asked, the last time it did."""
        return {request.step_id: request.messages[-1].content for request in self.requests}


class Shelf:
    """Tools by name, as the test wrote them: plain or coroutine functions that take the arguments by name."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.tools = tools
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def info(self, name: str) -> ToolInfo:
        """Describe a tool by its docstring; it takes anything."""
        if name not in self.tools:
            raise ToolNotFoundError(f"tool `{name}` is not registered")
        return ToolInfo(name, self.tools[name].__doc__ or "", {"type": "object", "title": name})

    async def call(self, name: str, args: Mapping[str, Any]) -> Any:
        """Call a tool."""
        if name not in self.tools:
            raise ToolNotFoundError(f"tool `{name}` is not registered")
        self.calls.append((name, dict(args)))
        result = self.tools[name](**args)
        return await result if isinstance(result, Awaitable) else result


@dataclass
class World:
    """One run and everything that was seen of it."""

    result: WorkflowResult
    events: list[RunEvent]
    provider: Script
    tools: Shelf = field(default_factory=lambda: Shelf({}))

    @property
    def statuses(self) -> dict[str, str]:
        """How each step ended."""
        return {name: result.status for name, result in self.result.step_results.items()}

    @property
    def errors(self) -> dict[str, str]:
        """What went wrong, by step."""
        return {name: result.error for name, result in self.result.step_results.items() if result.error is not None}

    @property
    def started(self) -> list[str]:
        """The paths of the steps that started, in order."""
        return [event.step for event in self.events if isinstance(event, StepStarted)]

    @property
    def finished(self) -> list[str]:
        """The paths of the steps that finished, in order."""
        return [event.step for event in self.events if isinstance(event, StepFinished)]

    @property
    def skipped(self) -> list[str]:
        """The paths of the steps that were skipped, in order."""
        return [event.step for event in self.events if isinstance(event, StepSkipped)]

    def text_of(self, step: str) -> list[str]:
        """Return the streamed pieces of a step's reply."""
        return [event.text for event in self.events if isinstance(event, StepDelta) and event.step == step]

    def output(self, step: str) -> Any:
        """Return what a step gave."""
        return self.result.step_results[step].output


def flow(*steps: Mapping[str, Any], config: Mapping[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    """Return a workflow in plain data, on the mock provider."""
    return {"name": "t", "config": {"provider": "mock", "model": "m", **(config or {})}, **top, "steps": list(steps)}


def ask(id: str, *after: str, **more: Any) -> dict[str, Any]:
    """Return an `llm_call` step that asks its own id."""
    return {"id": id, "type": "llm_call", "prompt": id, "depends_on": list(after), **more}


def use(id: str, tool: str, *after: str, **more: Any) -> dict[str, Any]:
    """Return a `tool` step."""
    return {"id": id, "type": "tool", "tool_name": tool, "depends_on": list(after), **more}


def route(id: str, *after: str, default: str | None = None, **ways: str) -> dict[str, Any]:
    """Return a `router` step: ``ways`` maps targets to conditions."""
    conditions = [{"expression": expression, "target": target} for target, expression in ways.items()]
    step: dict[str, Any] = {"id": id, "type": "router", "depends_on": list(after), "conditions": conditions}
    return step if default is None else {**step, "default": default}


def sub(id: str, *after: str, steps: list[dict[str, Any]], child: dict[str, Any] | None = None, **more: Any) -> Any:
    """Return a `subworkflow` step with a workflow in place, named `kid`."""
    inline = {"name": "kid", **(child or {}), "steps": steps}
    return {"id": id, "type": "subworkflow", "depends_on": list(after), "workflow_inline": inline, **more}


FAIL = ProviderError("Provider 'mock': API error 400: no", provider="mock", status_code=400)


async def play(
    data: Mapping[str, Any] | Workflow,
    answers: Mapping[str, Any] | None = None,
    tools: Mapping[str, Tool] | None = None,
    state: Mapping[str, Any] | None = None,
    protected: bool = False,
    **options: Any,
) -> World:
    """Run a workflow and return the world it ran in; ``protected`` turns the gateway's breakers and rate limits on."""
    provider = Script(answers)
    gateway = ProviderGateway()
    limits = {} if protected else {"max_rpm": None, "max_tpm": None, "circuit_fail_threshold": 10**9}
    gateway.register(provider, **limits)
    events: list[RunEvent] = []

    async def keep(event: RunEvent) -> None:
        events.append(event)

    shelf = Shelf(tools or {})
    workflow = data if isinstance(data, Workflow) else build_workflow(data)
    engine = WorkflowEngine(workflow, provider_gateway=gateway, tool_registry=shelf, on_event=keep, **options)
    return World(await engine.run(state), events, provider, shelf)


def run(*args: Any, **options: Any) -> World:
    """Run ``play`` to its end, on a clock that jumps."""

    async def main() -> World:
        return await play(*args, **options)

    return run_virtual(main)
