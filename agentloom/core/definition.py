"""A workflow as plain data, whole: as it runs, with the workflows below it in place, so that it needs no other file to run again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentloom.analysis.document import WorkflowDocument
from agentloom.core.agents import inline_agents, whole_name
from agentloom.core.plain import plain
from agentloom.core.redaction import Redaction
from agentloom.model.catalogue import Block, Shape, catalogue
from agentloom.model.sources import source_kind

if TYPE_CHECKING:
    from agentloom.model.workflow import Workflow


Change = Callable[[str, str], str]

_REFERENCE = re.compile(r"(?:[A-Za-z]+ )?\{[A-Za-z_][^{}]*\}|state(?:\.[A-Za-z_]\w*|\[\d+\])+")
"""A text that is nothing but a placeholder, maybe after a word such as `Bearer`, or a path of the state."""


def definition_of(workflow: WorkflowDocument | Workflow) -> dict[str, Any]:
    """Return a workflow's definition. Child files stand in place, and their relative paths have become absolute."""
    if isinstance(workflow, WorkflowDocument):
        return _inlined(workflow)
    data: dict[str, Any] = plain(workflow.model_dump(mode="json", exclude_unset=True, by_alias=True), "workflow")
    return data


def definition_below(definition: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the definition of the workflow behind the subworkflow step at a path (`sub.inner`)."""
    found: Mapping[str, Any] = definition
    for name in path.split("."):
        found = next((step for step in found.get("steps") or () if step.get("id") == name), {})
        found = found.get("workflow_inline") or {}
    return found


def _inlined(document: WorkflowDocument) -> dict[str, Any]:
    data: dict[str, Any] = plain(document.data, "workflow")
    if document.agents:
        data["agents"] = plain(inline_agents(document), "agents")
    for step in data.get("steps") or ():
        if step.get("type") == "agent":
            step["agent"] = whole_name(step["agent"], document)
        child = document.children.get(step.get("id"))
        if child is None or child.document is None:
            continue
        below = _inlined(child.document)
        if child.path is not None:
            _rebase(below, child.path.parent)
        step.pop("workflow_path", None)
        step["workflow_inline"] = below
    return data


def _rebase(data: dict[str, Any], folder: Path) -> None:
    """Make the relative paths in a definition absolute; they start at ``folder``."""
    change_paths(data, lambda _, path: str(folder / path) if begins_a_path(path) else path)


def change_paths(definition: dict[str, Any], change: Change) -> None:
    """Change the paths of files that stand in a definition, in place: ``change`` gets what a path names (`attachment`, `recording`, `any` …) and
    the text, and returns the new text. Names of agents are no paths.
    """
    _change_block(definition, catalogue().blocks[catalogue().workflow], change)


def _change_block(data: dict[str, Any], block: Block, change: Change) -> None:
    for name, value in data.items():
        described = block.fields.get(name)
        if described is not None:
            data[name] = _changed(value, described.shape, change)


def _changed(value: Any, shape: Shape, change: Change) -> Any:
    known = catalogue()
    if isinstance(value, str):
        mark = shape.mark("file")
        return change(mark.of or "any", value) if mark is not None and shape.mark("ref") is None else value
    if isinstance(value, list):
        item = shape.item
        return value if item is None else [_changed(entry, item, change) for entry in value]
    if isinstance(value, dict):
        chosen = known.alternative(shape, "object", value) or shape
        block = known.step(str(value.get("type"))) if chosen.block == "step" else known.blocks.get(chosen.block or "")
        if block is not None:
            _change_block(value, block, change)
    return value


def begins_a_path(value: str) -> bool:
    """Tell whether a text is a path, or a template of one as far as its beginning tells (`./images/{state.name}.png`)."""
    beginning, brace, _ = value.partition("{")
    if brace and "/" not in beginning:
        return False  # what it renders to may be an address
    return bool(value) and source_kind(beginning or value) == "path"


def without_secrets(definition: Mapping[str, Any], redaction: Redaction) -> dict[str, Any]:
    """Return a definition without secrets: in `state:`, and under matching keys that the user chose (arguments, headers, inputs).

    Keys of the format itself, such as `name`, are never taken for secrets: nothing could be resumed without them.
    """
    if not redaction:
        return dict(definition)
    block = catalogue().blocks[catalogue().workflow]
    found: dict[str, Any] = {}
    for name, value in definition.items():
        described = block.fields.get(name)
        found[name] = value if described is None else _clean(value, described.shape, redaction)
    return found


def redacted_in_steps(definition: Mapping[str, Any], done: Sequence[str]) -> list[str]:
    """Return the places of the secrets that are written out in a workflow's steps, those ``done`` left out: nothing brings them back.

    What a child's `state:` has is left out where it is handed that key from above.
    """
    found: list[str] = []
    for step in definition.get("steps") or ():
        if step.get("id") in done:
            continue
        handed = () if step.get("isolated_state") else tuple(definition.get("state") or ())
        given = tuple(f"workflow_inline.state.{key}" for key in (*handed, *(step.get("input") or ())))
        names = Redaction().secret_keys(step)
        found += [f"{step.get('id')}.{name}" for name in names if not name.startswith(given)]
    return found


def _clean(value: Any, shape: Shape, redaction: Redaction) -> Any:
    known = catalogue()
    if isinstance(value, Mapping):
        chosen = known.alternative(shape, "object", list(value)) or shape
        if chosen.block == "step":
            block = known.step(str(value.get("type")))
        else:
            block = known.blocks.get(chosen.block or "")
        if block is None and shape.mark("json_schema") is not None:
            return value  # what it calls `token` is no token, but how one is written
        if block is None and (values := chosen.values) is not None and _has_blocks(values):
            return {key: _clean(entry, values, redaction) for key, entry in value.items()}
        if block is None:
            clean = redaction.value(value)
            return _referring(value, clean) if shape.mark("template_deep") is not None else clean
        return {
            key: _clean(entry, block.fields[key].shape, redaction) if key in block.fields else entry
            for key, entry in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str) and shape.item is not None:
        return [_clean(entry, shape.item, redaction) for entry in value]
    return value


def _referring(value: Any, clean: Any) -> Any:
    """Return cleaned data with what only refers to the state as it was: the secret is there, and comes from there again on a resume."""
    if isinstance(value, str):
        return value if _REFERENCE.fullmatch(value) else clean
    if isinstance(value, Mapping) and isinstance(clean, Mapping):
        return {str(key): _referring(entry, clean.get(str(key))) for key, entry in value.items()}
    if isinstance(value, list) and isinstance(clean, list) and len(value) == len(clean):
        return [_referring(entry, other) for entry, other in zip(value, clean, strict=True)]
    return clean


def _has_blocks(shape: Shape) -> bool:
    """Tell whether what a shape describes is made of keys of the format."""
    return shape.block is not None or any(map(_has_blocks, shape.any_of))
