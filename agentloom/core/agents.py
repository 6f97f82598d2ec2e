"""The agents that the steps of a workflow run, found once before the run: with the agents that they may call, and theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from agentloom.analysis.agents import find_agent, looks_like_path
from agentloom.analysis.document import WorkflowDocument
from agentloom.errors import WorkflowError
from agentloom.model.view import view_agent
from agentloom.records import record

if TYPE_CHECKING:
    from agentloom.model.agent import AgentDefinition
    from agentloom.model.workflow import Workflow


@record()
class Agent:
    """An agent ready to run: its name, its definition, and the agents that it may call, by the names that it has for them."""

    name: str
    definition: AgentDefinition
    called: dict[str, Agent] = field(default_factory=dict)


class _Described(NamedTuple):
    """Where an agent is described: a name for it that nothing else has, what it is called, and where its own calls are looked up."""

    id: str
    name: str
    definition: AgentDefinition
    find: Callable[[str], _Described | None]


def agents_of(workflow: Workflow, document: WorkflowDocument | None) -> dict[str, Agent]:
    """Return the agents that a workflow's steps run, by the names that the steps have for them.

    Raises ``WorkflowError`` for one that isn't defined or whose file can't be read here, and for agents that call each other in a ring.
    """
    found: dict[str, Agent] = {}
    made: dict[str, Agent] = {}
    for step in workflow.steps:
        if step.type == "agent" and step.agent not in found:
            described = _described(step.agent, workflow, document, document)
            if described is None:
                raise WorkflowError(_undefined(step.agent, f"step `{step.id}`", document))
            found[step.agent] = _make(described, made, (), document)
    return found


def _make(
    described: _Described, made: dict[str, Agent], trail: tuple[str, ...], document: WorkflowDocument | None
) -> Agent:
    if described.id in trail:
        ring = (*trail[trail.index(described.id) :], described.id)
        raise WorkflowError(f"agents call each other in a ring: `{' -> '.join(ring)}`")
    if described.id not in made:
        agent = Agent(described.name, described.definition)
        for name in _called(described.definition):
            other = described.find(name)
            if other is None:
                raise WorkflowError(_undefined(name, f"agent `{described.name}`", document))
            agent.called[name] = _make(other, made, (*trail, described.id), document)
        made[described.id] = agent
    return made[described.id]


def _described(
    name: str, workflow: Workflow, document: WorkflowDocument | None, holder: WorkflowDocument | None
) -> _Described | None:
    """Return what ``name`` means where it stands: in ``holder``, or in a workflow without a file."""
    if document is None or holder is None:
        definition = workflow.agents.get(name)
        if definition is None or isinstance(definition, str):
            return None
        return _Described(
            name, definition.name or name, definition, lambda other: _described(other, workflow, None, None)
        )
    found = find_agent(document, name, holder)
    if found is None:
        return None
    definition = view_agent(found.data)
    called = re.sub(r"(\.agent)?\.ya?ml$", "", name.replace("\\", "/").rpartition("/")[2], flags=re.IGNORECASE)
    return _Described(
        found.id,
        definition.name or called,
        definition,
        lambda other: _described(other, workflow, document, found.holder),
    )


def _called(definition: AgentDefinition) -> Iterator[str]:
    for tool in definition.tools:
        name: Any = getattr(tool, "agent", None)
        if isinstance(name, str):
            yield name


def _undefined(name: str, where: str, document: WorkflowDocument | None) -> str:
    if looks_like_path(name):
        why = "can't be read" if document is not None else "is relative to a file; load the workflow from one"
        return f"{where}: agent file `{name}` {why}"
    return f"{where}: agent `{name}` is not defined"


def inline_agents(document: WorkflowDocument) -> Mapping[str, Any]:
    """Return the `agents` of a workflow as they go into its definition: those of files in place, under names that stay unique."""
    agents = document.head.data.get("agents")
    found: dict[str, Any] = dict(agents) if isinstance(agents, dict) else {}
    todo: list[tuple[str, WorkflowDocument]] = [(path, document) for path in document.agents]
    while todo:
        path, holder = todo.pop()
        child = holder.agents[path]
        if child.document is None or str(child.path) in found:
            continue
        found[str(child.path)] = with_whole_names(child.document.head.data, child.document)
        todo.extend((other, child.document) for other in child.document.agents)
    return {name: with_whole_names(entry, document) for name, entry in found.items()}


def whole_name(name: str, holder: WorkflowDocument) -> str:
    """Return the name under which an agent of ``inline_agents`` stands: for a file, its absolute path."""
    child = holder.agents.get(name)
    return name if child is None or child.path is None else str(child.path)


def with_whole_names(entry: Any, holder: WorkflowDocument) -> Any:
    """Return an agent as plain data whose calls of agent files name them as ``inline_agents`` does."""
    if isinstance(entry, str):
        child = holder.agents.get(entry)
        if child is None or child.document is None:
            return entry
        return with_whole_names(child.document.head.data, child.document)
    tools = entry.get("tools") if isinstance(entry, dict) else None
    if not isinstance(tools, list):
        return entry
    named = [
        {**tool, "agent": whole_name(tool["agent"], holder)}
        if isinstance(tool, dict) and isinstance(tool.get("agent"), str)
        else tool
        for tool in tools
    ]
    return {**entry, "tools": named}
