"""The tools that a run knows, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from agentloom.errors import ToolNotFoundError, UsageError
from agentloom.similar import closest
from agentloom.tools.base import BaseTool, as_tool
from agentloom.tools.info import ToolInfo

log = logging.getLogger(__name__)


class ToolRegistry:
    """Tools by name, in the order in which they were registered."""

    def __init__(self) -> None:
        self._tools: dict[str, BaseTool] = {}

    def register(self, tool: BaseTool | Callable[..., Any], *, replace: bool = False) -> None:
        """Add a tool, or a plain function as one. One of the same name is replaced, with a warning unless ``replace`` is true."""
        if not isinstance(tool, BaseTool):
            tool = as_tool(tool)
        if not isinstance(tool.name, str) or not tool.name:
            raise UsageError(f"a tool needs a name: {type(tool).__name__} has none")
        if tool.name in self._tools and not replace:
            log.warning("Tool '%s' is registered already and is replaced", tool.name)
        self._tools[tool.name] = tool

    def get(self, name: str) -> BaseTool:
        """Return a tool. Raises ``ToolNotFoundError``."""
        found = self._tools.get(name)
        if found is None:
            near = closest(name, self._tools)
            raise ToolNotFoundError(f"tool `{name}` is not registered" + (f"; did you mean `{near}`?" if near else ""))
        return found

    def info(self, name: str) -> ToolInfo:
        """Return what is known of a tool. Raises ``ToolNotFoundError``."""
        return self.get(name).info

    def list(self) -> tuple[ToolInfo, ...]:
        """Return what is known of every tool."""
        return tuple(tool.info for tool in self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Run a tool and return its result.

        Raises ``ToolNotFoundError``, ``ValidationError`` for arguments that don't fit, and whatever the tool raises.
        """
        return await self.get(name).call(arguments or {})

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def register_module(registry: ToolRegistry, module: str) -> None:
    """Import a module and register every tool that it defines at its top. Raises ``UsageError`` when it can't be imported.

    The module's code runs: only for files that the user runs, never for files that an editor merely shows.
    """
    try:
        found = import_module(module)
    except Exception as error:
        log.debug("Module '%s' could not be imported", module, exc_info=True)
        raise UsageError(f"tools module `{module}` can't be imported: {type(error).__name__}: {error}") from error
    tools = [value for value in vars(found).values() if isinstance(value, BaseTool)]
    if not tools:
        raise UsageError(f"tools module `{module}` defines no tool; make one with `@tool(name, description)`")
    for tool in tools:
        registry.register(tool)
