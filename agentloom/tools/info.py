"""What is known of a tool without running it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class ToolInfo(NamedTuple):
    """A tool's name, its description, and the JSON Schema of its arguments (an object).

    ``returns`` is the JSON Schema of its result; empty when nothing is known of it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any] = {}
