"""Takes the pictures of `docs/images/editor` in a real VS Code, with our extension and the workflow of the front page.

``make screenshots`` sets up what is needed. Arguments: names of pictures; all when there are none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.editors.documents import snippets  # noqa: E402

CACHE = ROOT / ".cache" / "vscode"
IMAGES = ROOT / "docs" / "images" / "editor"
TOOLS = ROOT / "scripts" / "vscode"
PACKAGE = ROOT / "editors" / "vscode" / "agentloom.vsix"


def main(names: list[str]) -> int:
    """Install VS Code where it isn't yet, and take the pictures; return the exit code."""
    subprocess.run(["bash", str(TOOLS / "install.sh"), str(CACHE)], check=True)
    (workflow,) = snippets("Sixty seconds", "yaml", ROOT / "README.md")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "workflow.yaml").write_text(workflow, encoding="utf-8")
        program = folder / "bin" / "agentloom"
        program.parent.mkdir()
        path = f"{ROOT}{os.pathsep}{ROOT / 'lsp'}"
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m agentloom "$@"\n')
        program.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "VSCODE_INSTALL": str(CACHE),
            "VSCODE_EXTENSION": str(PACKAGE),
        }
        command = ["node", TOOLS / "take.cjs", IMAGES, folder / "workflow.yaml", *names]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
