"""What is known of a tool without running it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class ToolInfo(NamedTuple):
    """A tool's name, its description, and the JSON Schema of its arguments (an object)."""

    name: str
    description: str
    parameters: Mapping[str, Any]
