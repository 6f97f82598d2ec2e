"""A real VS Code with the extension in it: installed as `scripts/vscode/install.sh` does, and the `.vsix` made if it is older than its sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.editors.conftest import missing

EXTENSION = ROOT / "editors" / "vscode"
INSTALL = Path(os.environ.get("VSCODE_INSTALL", ROOT / ".cache" / "vscode"))
SCREENS = ROOT / ".cache" / "screens" / "vscode"
SOURCES = ("src/**/*", "media/*", "walkthrough/*", "images/*", "*.json", "*.mjs", "*.md", ".vscodeignore")


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The packaged extension."""
    package = EXTENSION / "agentloom.vsix"
    newest = max(path.stat().st_mtime for pattern in SOURCES for path in EXTENSION.glob(pattern))
    if not package.exists() or package.stat().st_mtime < newest:
        if not (EXTENSION / "node_modules" / ".package-lock.json").exists() or shutil.which("node") is None:
            missing("The package of the VS Code extension (`make extension` makes it)")
        done = subprocess.run(
            ["npm", "run", "--silent", "package"], cwd=EXTENSION, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return package


@pytest.fixture(scope="session")
def vscode() -> Path:
    """The folder in which a VS Code is installed."""
    if not (INSTALL / ".done").exists():
        missing("VS Code (`make vscode` installs it)")
    return INSTALL


@pytest.fixture
def play(vsix: Path, vscode: Path, search_path: str) -> Callable[..., None]:
    """Play a scenario in a VS Code of its own; its pictures stay in `.cache/screens/vscode`."""

    def play_it(name: str, path: str = search_path, **environment: str) -> None:
        done = subprocess.run(
            ["node", Path(__file__).parent / f"{name}.cjs"],
            env={
                **{key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PATH")},
                "PATH": path,
                "VSCODE_INSTALL": str(vscode),
                "VSCODE_EXTENSION": str(vsix),
                "SCREENS": str(SCREENS / name),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\nPictures: {SCREENS / name}"

    return play_it
