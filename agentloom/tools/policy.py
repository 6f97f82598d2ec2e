"""The seam for the sandbox: what a built-in tool asks before it touches anything.

Without a policy nothing is checked. A policy answers with what may be used, or raises ``SandboxViolationError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Policy(Protocol):
    """What tools may do."""

    def program(self, command: str, cwd: Path) -> Sequence[str]:
        """Return the program and its arguments that ``command`` stands for, to be run in ``cwd`` without a shell."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Return the environment that a command gets instead of this process's own."""
        ...

    def readable(self, path: Path) -> Path:
        """Return the real path of a file that may be read."""
        ...

    def writable(self, path: Path, size: int) -> Path:
        """Return the real path of a file that may be written with ``size`` bytes."""
        ...

    async def reachable(self, url: str) -> None:
        """Return when the address may be requested."""
        ...
