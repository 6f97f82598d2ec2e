"""Words about steps for pictures: what a router asks before each branch, what a step does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DEFAULT = "default"


def branch_labels(step: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a router, as plain data, asks before it chooses each of its targets; several questions are joined by `or`."""
    found: dict[str, list[str]] = {}
    conditions = step.get("conditions")
    for condition in conditions if isinstance(conditions, Sequence) and not isinstance(conditions, str) else ():
        if isinstance(condition, Mapping) and isinstance(target := condition.get("target"), str):
            found.setdefault(target, []).append(str(condition.get("expression", "")).strip())
    if isinstance(default := step.get("default"), str):
        found.setdefault(default, []).append(DEFAULT)
    return {target: " or ".join(expression for expression in asked if expression) for target, asked in found.items()}


def detail_of(step: Mapping[str, Any]) -> str:
    """Return what a step, as plain data, does in a word: the tool, child workflow, agent or model that it names, else its type."""
    type_ = step.get("type")
    shown = type_ if isinstance(type_, str) else ""
    for name in ("tool_name", "workflow_path", "agent", "model"):
        if isinstance(text := step.get(name), str):
            return f"{shown} · {text}"
    return shown
