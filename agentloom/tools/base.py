"""What a tool is: a name, a description, arguments with a schema, and a function that does it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from agentloom.errors import UsageError
from agentloom.tools.info import ToolInfo
from agentloom.tools.schema import Signature, signature_of


class BaseTool:
    """A tool. Subclasses set ``name`` and ``description`` and define ``execute``, as a function or as a coroutine.

    The schema of the arguments comes from the type hints of ``execute``; ``Annotated[int, "how many"]`` describes an argument.
    """

    name: str = ""
    description: str = ""
    returns: Mapping[str, Any] = {}
    """The JSON Schema of the result, if it is known: editors then complete what lies in it."""
    execute: Callable[..., Any]
    """Does what the tool does, and returns its result."""

    @property
    def function(self) -> Callable[..., Any]:
        """The function that is called with the arguments."""
        found = getattr(self, "execute", None)
        if found is None:
            raise UsageError(f"tool `{self.name}` has no `execute`; define what it does")
        return self.execute

    @cached_property
    def signature(self) -> Signature:
        """The arguments, read from the type hints once."""
        return signature_of(self.function, self.name)

    @property
    def info(self) -> ToolInfo:
        """The tool as data."""
        return ToolInfo(self.name, self.description, self.signature.parameters, self.returns)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Check the arguments and run the tool; a function that is no coroutine runs in a thread.

        Raises ``ValidationError`` for arguments that don't fit and for a result that is too large, and whatever the tool itself raises.
        """
        from agentloom.tools.calling import call, check_size  # with asyncio, which only runs need

        result = await call(self.function, self.signature.check(arguments))
        check_size(result)
        return result


class FunctionTool(BaseTool):
    """A function as a tool; it can still be called like the function."""

    def __init__(self, function: Callable[..., Any], name: str, description: str) -> None:
        self.name = name
        self.description = description
        self._function = function

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return self._function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function itself, unchecked."""
        return self._function(*arguments, **named)


def tool(name: str | None = None, description: str | None = None) -> Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function: ``@tool("add", "Add two numbers.")``.

    Without a name the function's is taken, without a description the first paragraph of its docstring.
    """
    if callable(name):
        raise UsageError("write `@tool()` with parentheses")

    def make(function: Callable[..., Any]) -> FunctionTool:
        return as_tool(function, name, description)

    return make


def as_tool(function: Callable[..., Any], name: str | None = None, description: str | None = None) -> FunctionTool:
    """Return a function as a tool, see ``tool``."""
    words = description if description is not None else (inspect.getdoc(function) or "").partition("\n\n")[0]
    return FunctionTool(function, name or str(getattr(function, "__name__", "")), " ".join(words.split()))
