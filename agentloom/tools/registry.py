"""The tools that a run knows, by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from agentloom.errors import ToolNotFoundError, UsageError
from agentloom.similar import closest
from agentloom.tools.base import BaseTool, as_tool
from agentloom.tools.info import ToolInfo

log = logging.getLogger(__name__)

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"


class ToolRegistry:
    """Tools by name, in the order in which they were registered."""

    def __init__(self) -> None:
        self._tools: dict[str, BaseTool] = {}

    def register(self, tool: BaseTool | Callable[..., Any], *, replace: bool = False) -> None:
        """Add a tool, or a plain function as one. One of the same name is replaced, with a warning unless ``replace`` is true."""
        if not isinstance(tool, BaseTool):
            tool = as_tool(tool)
        check_name(tool)
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
    """Import a module and register every tool that it defines at its top. Raises ``UsageError`` when it can't be used.

    The module's code runs: only for files that the user runs, never for files that an editor merely shows.
    """
    for tool in tools_in(module):
        registry.register(tool)


def tools_in(module: str) -> tuple[BaseTool, ...]:
    """Import a module and return the tools at its top, each once, all of them fit for use. Raises ``UsageError``."""
    try:
        found = import_module(module)
    except Exception as error:
        log.debug("Module '%s' could not be imported", module, exc_info=True)
        raise UsageError(f"tools module `{module}` can't be imported: {type(error).__name__}: {error}") from error
    except SystemExit as error:
        raise UsageError(f"tools module `{module}` can't be imported: it ends the program") from error
    values = tuple(vars(found).values())
    tools = {id(value): value for value in values if isinstance(value, BaseTool)}
    made = {type(tool) for tool in tools.values()}
    for kind in values:
        is_tool = isinstance(kind, type) and issubclass(kind, BaseTool) and kind.__module__ == module and kind.name
        if is_tool and kind not in made:
            tools[id(kind)] = _made(kind, module)
    if not tools:
        raise UsageError(f"tools module `{module}` defines no tool; make one with `@tool(name, description)`")
    for tool in tools.values():
        check_name(tool)
        _ = tool.info  # raises for types that can't be described
    return tuple(tools.values())


def _made(kind: type[BaseTool], module: str) -> BaseTool:
    try:
        return kind()
    except Exception as error:
        raise UsageError(
            f"tools module `{module}`: `{kind.__name__}` can't be made without arguments ({type(error).__name__}: {error}); "
            "make the tool at the module's top"
        ) from error


def check_name(tool: BaseTool) -> None:
    """Raise ``UsageError`` for a name that models and files can't use."""
    name: object = tool.name
    if not isinstance(name, str) or not name:
        raise UsageError(f"a tool needs a name: {type(tool).__name__} has none")
    if not re.fullmatch(_NAME, name):
        raise UsageError(
            f"a tool can't be named {ascii(name) if len(name) <= 80 else ascii(name[:79]) + '…'}; "
            "use up to 64 letters of English, digits, `_`, `-` and `.`"
        )
