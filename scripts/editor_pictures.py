"""Takes the pictures of `docs/images/editor` in a real VS Code, with our extension and the workflow of the front page.

``make screenshots`` sets up what is needed. Arguments: names of pictures; all when there are none.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.editors.checkout import VSCODE, with_vscode  # noqa: E402
from tests.editors.documents import snippets  # noqa: E402

IMAGES = ROOT / "docs" / "images" / "editor"
TOOLS = ROOT / "scripts" / "vscode"


def main(names: list[str]) -> int:
    """Install VS Code where it isn't yet, and take the pictures; return the exit code."""
    subprocess.run(["bash", str(TOOLS / "install.sh"), str(VSCODE)], check=True)
    (workflow,) = snippets("Sixty seconds", "yaml", ROOT / "README.md")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "workflow.yaml").write_text(workflow, encoding="utf-8")
        command = ["node", TOOLS / "take.cjs", IMAGES, folder / "workflow.yaml", *names]
        return subprocess.run(command, env=with_vscode(folder), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
