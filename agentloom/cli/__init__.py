"""The command line: one file a command, loaded when it is called."""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the program that the process's arguments name, and end the process with its exit code."""
    from agentloom.cli.app import app

    app.main(prog_name="agentloom")
