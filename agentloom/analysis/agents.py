"""Agents as they call each other: each found where its name leads, in the workflow or in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentloom.analysis.document import Facts, WorkflowDocument
from agentloom.analysis.symbols import Occurrence


class Found(NamedTuple):
    """Where an agent is described. ``id`` names it: its key, or the path of its file; ``holder`` is the document that describes it."""

    id: str
    data: Mapping[str, Any]
    holder: WorkflowDocument


def looks_like_path(name: str) -> bool:
    """Tell whether the name of an agent is the path of a file."""
    return "/" in name or name.lower().endswith((".yaml", ".yml"))


def agent_files(document_kind: str, head: Facts, steps: Iterator[Facts]) -> Iterator[str]:
    """Yield the paths of the agent files that a document names, as written."""
    agents = head.data.get("agents") if document_kind == "workflow" else None
    known = agents if isinstance(agents, dict) else {}
    for facts in (head, *steps):
        for place in facts.files:
            if place.name and _names_a_file(place, known, facts is head):
                yield place.name


def _names_a_file(place: Occurrence, known: Mapping[str, Any], in_head: bool) -> bool:
    words = place.key.split(".")
    if in_head and words[0] == "agents" and len(words) == 2:
        return "://" not in place.name
    return words[-1] == "agent" and place.name not in known and looks_like_path(place.name)


def find_agent(workflow: WorkflowDocument, name: str, holder: WorkflowDocument) -> Found | None:
    """Return the agent that ``name`` means where it stands in ``holder``; None if there is none, or its file can't be used.

    Names are keys of the workflow's `agents`, in agent files, too; paths are relative to the file in which they stand.
    """
    agents = workflow.head.data.get("agents")
    value = agents.get(name) if isinstance(agents, dict) else None
    if isinstance(value, dict):
        return Found(name, value, workflow)
    if isinstance(value, str):
        return _in_file(value, workflow)
    return _in_file(name, holder)


def _in_file(path: str, holder: WorkflowDocument) -> Found | None:
    child = holder.agents.get(path)
    if child is None or child.document is None or not isinstance(child.document.head.data, dict):
        return None
    return Found(str(child.path), child.document.head.data, child.document)


def called_by(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the agents that an agent may call."""
    tools = data.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("agent") if isinstance(tool, dict) else None
        if isinstance(name, str):
            yield name
