"""The built-in tools."""

from __future__ import annotations

from pathlib import Path

from agentloom.tools.files import FileRead, FileWrite
from agentloom.tools.http_request import HttpRequest
from agentloom.tools.policy import Policy, Rules, policy_of
from agentloom.tools.registry import ToolRegistry
from agentloom.tools.shell_command import ShellCommand

BUILTINS = (HttpRequest, ShellCommand, FileRead, FileWrite)


def register_builtins(
    registry: ToolRegistry, sandbox: Policy | Rules | None = None, *, folder: Path | None = None
) -> None:
    """Register the built-in tools. Relative paths start at ``folder``, or at the working directory.

    ``sandbox`` holds for every workflow that uses them, besides what its own `config.sandbox` says.
    """
    policy = sandbox if isinstance(sandbox, Policy) else policy_of(sandbox, folder)
    for kind in BUILTINS:
        registry.register(kind(policy, folder))
