"""Project settings: ``agentloom.toml`` or ``[tool.agentloom]`` in ``pyproject.toml``; the nearest to the file wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentloom.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project sets. ``path`` is the file the settings came from; ``problems`` what was wrong in it, in plain words."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    workflows: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    known_state: tuple[str, ...] = ()
    path: Path | None = None
    problems: tuple[str, ...] = ()
