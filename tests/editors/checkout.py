"""What an editor is started with outside the tests, too: `agentloom` as it stands in this checkout, VS Code, and our extension."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VSCODE = ROOT / ".cache" / "vscode"
"""Where VS Code is installed."""
PACKAGE = ROOT / "editors" / "vscode" / "agentloom.vsix"
"""The packaged extension."""


def put_program(folder: Path) -> None:
    """Write `agentloom`, which runs from this checkout, into a folder for PATH."""
    script = folder / "agentloom"
    path = f"{ROOT}{os.pathsep}{ROOT / 'lsp'}"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m agentloom "$@"\n')
    script.chmod(0o755)


def with_vscode(folder: Path) -> dict[str, str]:
    """Return the environment for scripts that start VS Code, with the program in a new folder `bin`."""
    program = folder / "bin"
    program.mkdir()
    put_program(program)
    return {
        **os.environ,
        "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        "VSCODE_INSTALL": str(VSCODE),
        "VSCODE_EXTENSION": str(PACKAGE),
    }
