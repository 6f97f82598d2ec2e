"""What the schema tests share: node and its packages, and one yaml-language-server for all of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.schema.yls import Editor

NODE_FOLDER = Path(__file__).parent / "node"
MODULES = NODE_FOLDER / "node_modules"


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(
            f"the schema tests drive a real yaml-language-server; install Node.js 18 or newer ({name} is missing)"
        )
    return found


def _installed() -> bool:
    """Tell whether the packages are there in the locked versions; npm leaves its own copy of the lock when it is done."""
    done = MODULES / ".package-lock.json"
    if not done.is_file():
        return False
    locked = json.loads((NODE_FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    there = json.loads(done.read_text(encoding="utf-8"))["packages"]
    needed = {name: about for name, about in locked.items() if name and sys.platform in about.get("os", [sys.platform])}
    return all(there.get(name, {}).get("version") == about.get("version") for name, about in needed.items())


@pytest.fixture(scope="session")
def node() -> str:
    """The node program, with the locked packages installed beside the scripts of these tests."""
    program = _tool("node")
    if not _installed():
        # Installed aside and moved in place at once: another worker may be doing the same.
        with tempfile.TemporaryDirectory(dir=NODE_FOLDER, prefix=".install-") as folder:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(NODE_FOLDER / name, folder)
            command = [_tool("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.fail(f"npm could not install the packages of {NODE_FOLDER}:\n{done.stdout}{done.stderr}")
            if not _installed():
                if MODULES.exists():
                    MODULES.rename(Path(folder) / "old")
                (Path(folder) / "node_modules").rename(MODULES)
    return program


@pytest.fixture(scope="session")
def multitool(node: str) -> Path:
    """Microsoft's program that checks SARIF logs."""
    program = MODULES / "@microsoft" / f"sarif-multitool-{sys.platform}" / "Sarif.Multitool"
    if os.name == "nt":
        return program.with_suffix(".exe")
    program.chmod(0o755)
    return program


@pytest.fixture(scope="session")
def editor(node: str, root: Path) -> Iterator[Editor]:
    """A running yaml-language-server that knows both schemas."""
    schemas = {
        (root / "schema" / f"{kind}.schema.json").as_uri(): pattern
        for kind, pattern in (("workflow", "*.loom.yaml"), ("agent", "*.agent.yaml"))
    }
    with Editor(node, MODULES / "yaml-language-server" / "bin" / "yaml-language-server", schemas) as running:
        yield running
