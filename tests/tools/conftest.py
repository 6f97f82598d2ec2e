"""What the tests of tools share."""

from __future__ import annotations

import pytest

from agentloom.tools.builtin import register_builtins
from agentloom.tools.registry import ToolRegistry


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio, as the engine does."""
    return "asyncio"


@pytest.fixture
def builtins() -> ToolRegistry:
    """A registry with the four built-in tools, without a sandbox."""
    registry = ToolRegistry()
    register_builtins(registry)
    return registry
