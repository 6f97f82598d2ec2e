"""What a run needs of the machine that performs it: providers that can be asked, and tools with the arguments that are meant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agentloom.core.agents import Agent
from agentloom.core.preparation import Prepared
from agentloom.core.results import JSON

if TYPE_CHECKING:
    from agentloom.model.workflow import Step

ASKING = ("llm_call", "agent", "embed")
"""The types of steps that ask a provider."""

MOCK = "mock"


class Described(Protocol):
    """The part of what is known of a tool that must be the same everywhere."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments."""
        ...


class Needs(NamedTuple):
    """What a run needs. ``tools`` has the fingerprint of each tool's arguments, empty where they aren't known.

    ``shared`` is where in the folder that is the same on all machines the run starts, None for a run without: there settings, which name
    providers and tools, are looked for, else where the worker was started.
    """

    providers: tuple[str, ...] = ()
    tools: Mapping[str, str] = {}
    shared: str | None = None

    def __bool__(self) -> bool:
        return bool(self.providers or self.tools or self.shared is not None)

    @property
    def key(self) -> str:
        """A text that is the same for the same needs."""
        return _digest(self.to_dict())

    def to_dict(self) -> dict[str, JSON]:
        """Return the needs as JSON."""
        return {"providers": list(self.providers), "tools": dict(self.tools), "shared": self.shared}


def needs_from(value: object) -> Needs:
    """Return the needs that JSON describes. Raises ``ValueError`` for what is none."""
    match value:
        case {"providers": list(providers), "tools": dict(tools), "shared": str() | None as shared}:
            texts = [*providers, *tools, *tools.values()]
            if all(isinstance(text, str) for text in texts):
                return Needs(tuple(providers), tools, shared)
    raise ValueError("no needs of a run")


def needs_of(prepared: Prepared, known: Mapping[str, Described], complete: bool) -> Needs:
    """Return what a workflow and those below it need. A run with the mock asks nobody else.

    ``known`` are the tools here; if they are ``complete``, nobody has others, and a step that calls one fails.
    """
    workflows = {id(each): each for each in _all(prepared)}.values()
    providers: set[str] = set()
    tools: set[str] = set()
    for workflow in workflows:
        steps = [step for layer in workflow.plan.layers for step in layer]
        if prepared.provider != MOCK and any(step.type in ASKING for step in steps):
            providers.add(workflow.provider)
        for step in steps:
            tools.update(_tools_of(step, workflow.agents))
    return Needs(
        tuple(sorted(providers)),
        {
            name: fingerprint(known[name]) if name in known else ""
            for name in sorted(tools)
            if name in known or not complete
        },
    )


def fingerprint(tool: Described) -> str:
    """Return a text that is the same for tools that take the same arguments."""
    return _digest(tool.parameters)


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _all(prepared: Prepared) -> Iterator[Prepared]:
    yield prepared
    for child in prepared.children.values():
        yield from _all(child)


def _tools_of(step: Step, agents: Mapping[str, Agent]) -> Iterator[str]:
    """Yield the names of the tools that a step may call."""
    if step.type == "tool":
        yield step.tool_name
    elif step.type == "llm_call":
        yield from (tool.name for tool in step.tools)
    elif step.type == "agent" and step.agent in agents:
        yield from _called_by(agents[step.agent])


def _called_by(agent: Agent) -> Iterator[str]:
    for tool in agent.definition.tools:
        name: Any = tool if isinstance(tool, str) else getattr(tool, "name", None)
        if isinstance(name, str):
            yield name
    for other in agent.called.values():
        yield from _called_by(other)
