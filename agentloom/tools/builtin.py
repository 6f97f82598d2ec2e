"""The built-in tools."""

from __future__ import annotations

from pathlib import Path

from agentloom.tools.files import FileRead, FileWrite
from agentloom.tools.http_request import HttpRequest
from agentloom.tools.policy import Policy
from agentloom.tools.registry import ToolRegistry
from agentloom.tools.shell_command import ShellCommand

BUILTINS = (HttpRequest, ShellCommand, FileRead, FileWrite)


def register_builtins(registry: ToolRegistry, policy: Policy | None = None, *, folder: Path | None = None) -> None:
    """Register the built-in tools. ``policy`` is the sandbox; relative paths start at ``folder``, or at the working directory."""
    for kind in BUILTINS:
        registry.register(kind(policy, folder))
