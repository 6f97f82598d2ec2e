"""Names for what a refactoring makes: steps, state keys, files."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

from agentloom.analysis.document import Step, WorkflowDocument

_SUFFIXES = (".loom.yaml", ".loom.yml", ".agentloom.yaml", ".agentloom.yml")


def free_name(wanted: str, *taken: Container[str]) -> str:
    """Return a name that nothing has, made of one that was wanted; fit for a place in an expression, too."""
    base = re.sub(r"\W", "_", wanted)
    base = base if base[:1].isidentifier() else f"step_{base}"
    name, number = base, 2
    while any(name in names for names in taken):
        name, number = f"{base}_{number}", number + 1
    return name


def state_keys(document: WorkflowDocument) -> frozenset[str]:
    """Return every key at the top of the state that a file names anywhere."""
    state = document.head.data.get("state")
    found = {str(key) for key in state} if isinstance(state, dict) else set()
    for facts in (document.head, *(step.facts for step in document.steps)):
        found.update(str(o.parts[0]) for o in facts.occurrences if o.kind == "state" and o.parts)
    return frozenset(found)


def child_file(document: WorkflowDocument, home: Path, name: str) -> Path:
    """Return the path of a new file beside a workflow, with an ending like its own."""
    ending = next((ending for ending in _SUFFIXES if home.name.lower().endswith(ending)), _SUFFIXES[0])
    return home.with_name(name + ending)


def targets_of(step: Step) -> tuple[str, ...]:
    """Return the steps that a step names besides its dependencies: the targets of a router."""
    return tuple(
        found.name
        for found in step.facts.occurrences
        if found.kind == "step" and found.role == "refer" and found.key.split(".", 1)[0] != "depends_on"
    )
