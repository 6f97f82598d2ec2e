"""A newcomer's path: from the `.vsix` and no agentloom anywhere to the first green run in VS Code, timed, action by action.

``make bench-newcomer``. agentloom comes from a wheel of this checkout, everything that it needs from the Python package index, into a new environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.machine import described  # noqa: E402


def main() -> int:
    """Walk the path, and print how long each action took."""
    with tempfile.TemporaryDirectory() as scratch:
        wheels = Path(scratch) / "wheels"
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
        subprocess.run(build, check=True)
        parts = os.environ["PATH"].split(os.pathsep)
        environment = {
            **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
            "PATH": os.pathsep.join(part for part in parts if not (Path(part) / "agentloom").exists()),
            "PIP_FIND_LINKS": str(wheels),
            "VSCODE_INSTALL": str(ROOT / ".cache" / "vscode"),
            "VSCODE_EXTENSION": str(ROOT / "editors" / "vscode" / "agentloom.vsix"),
        }
        print(described(), flush=True)
        return subprocess.run(["node", ROOT / "benchmarks" / "newcomer.cjs"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
