"""What is said about files, the workflows and agents in them, and the state keys that a child workflow takes and gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentloom.analysis.document import Step, WorkflowDocument
from agentloom.analysis.symbols import Occurrence
from agentloom.ide.prose.form import Block, Code, Prose, listed, say
from agentloom.ide.prose.names import agent_blocks
from agentloom.ide.prose.steps import of_child
from agentloom.ide.result_shapes import read_keys, written_keys
from agentloom.ide.results import Project
from agentloom.model.sources import names_file


def of_file(document: WorkflowDocument, step: Step | None, place: Occurrence, project: Project | None = None) -> Prose:
    """Return where a path leads, whether something is there, and what a child workflow takes and gives, or an agent is."""
    name = place.name
    if not names_file(name):
        return ()
    path = resolved(document, name)
    if path is None:
        return (say(Code(name)), say("Paths are relative to this file; save it first."))
    said: list[Block] = [say(Code(str(path)))]
    child = document.children.get(step.id) if step is not None and step.id is not None else None
    if child is not None and child.path is not None and step is not None and step.facts.text("workflow_path") == name:
        if child.document is not None:
            said.extend(of_child(child))
            said.extend(_traffic(child.document))
        elif child.missing is not None:
            said.append(say(child.missing[0].upper() + child.missing[1:] + "."))
        return tuple(said)
    said.extend(_there(document, path, project))
    return tuple(said)


def _there(document: WorkflowDocument, path: Path, project: Project | None) -> list[Block]:
    """Return what an agent's file says about it, or that there is none."""
    if not _exists(document, path):
        return [say("There is no such file.")]
    if project is None or not path.name.lower().endswith((".yaml", ".yml")):
        return []
    found = project.document(path)
    return agent_blocks(found.head.data) if found is not None and found.kind == "agent" else []


def of_agent(document: WorkflowDocument, name: str, data: Any, project: Project | None = None) -> Prose:
    """Return what an agent of the file's `agents` is; a path is told with the place where it leads."""
    said: list[Block] = [say("Agent ", Code(name))]
    if isinstance(data, str):
        path = resolved(document, data)
        said.append(say("Defined in ", Code(str(path) if path is not None else data), "."))
        said.extend(_there(document, path, project) if path is not None else ())
    elif isinstance(data, Mapping):
        said.extend(agent_blocks(data))
    return tuple(said)


def of_child_key(document: WorkflowDocument, step: Step | None, name: str, returned: bool = False) -> Prose:
    """Return what a child workflow does with a state key that it is handed, or hands back."""
    child = document.children.get(step.id) if step is not None and step.id is not None else None
    if child is None or child.document is None:
        return ()
    inner = child.document
    users = [own.id for own in inner.steps if own.id and _touches(own, name, "write" if returned else "read")]
    said: list[Block] = [say("State key ", Code(name), " of the child workflow")]
    verb = "Written" if returned else "Read"
    if users:
        said.append(say(f"{verb} there by ", *listed(users), "."))
    state = inner.head.data.get("state")
    if isinstance(state, dict) and name in state:
        said.append(say("The child's own `state` sets it."))
    elif not users:
        said.append(say("No step there writes it." if returned else "Nothing there reads it."))
    return tuple(said)


def resolved(document: WorkflowDocument, name: str) -> Path | None:
    """Return the file that a path in a document names; None while the document is no file itself."""
    home = document.path
    if home is None:
        return None
    try:
        return Path(os.path.normpath(Path(os.path.abspath(home)).parent / name))
    except ValueError:
        return None


def _exists(document: WorkflowDocument, path: Path) -> bool:
    try:
        return document.context.exists(path)
    except (OSError, ValueError):
        return False


def _traffic(child: WorkflowDocument) -> list[Block]:
    said: list[Block] = []
    takes, gives = read_keys(child), written_keys(child)
    if takes:
        said.append(say("Takes ", *listed(takes), "."))
    if gives:
        said.append(say("Ends with ", *listed(gives), "."))
    return said


def _touches(step: Step, name: str, role: str) -> bool:
    return any(o.kind == "state" and o.role == role and o.parts[:1] == (name,) for o in step.facts.occurrences)
