"""The extension in a real VS Code: what a page in Chromium shows while scenarios are played, act by act."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(
    400
)  # a VS Code is large, and the machine may be busy; nothing here waits longer than it must


def test_writing(play: Callable[..., None]) -> None:
    """A workflow is written: mistake, quick fix, completion in a template, rename, the page of a code; other YAML is left alone."""
    play("writing")


@pytest.fixture
def interpreters(tmp_path: Path) -> dict[str, str]:
    """Two interpreters of Python, by the names that scenarios know: one without agentloom, one with."""
    bare, module = tmp_path / "bare-python", tmp_path / "module-python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    path = os.pathsep.join([str(ROOT), str(ROOT / "lsp")])
    module.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" "$@"\n')
    for script in (bare, module):
        script.chmod(0o755)
    return {"BARE_PYTHON": str(bare), "MODULE_PYTHON": str(module)}


@pytest.fixture
def without(search_path: str) -> str:
    """A PATH that has no agentloom."""
    parts = search_path.split(os.pathsep)
    return os.pathsep.join(part for part in parts if not (Path(part) / "agentloom").exists())


def test_finding_the_server(
    play: Callable[..., None], search_path: str, without: str, interpreters: dict[str, str]
) -> None:
    """No agentloom, a wrong path, an old one, an interpreter without: each is told in plain words; with the right one the file is checked."""
    program = Path(search_path.split(os.pathsep)[0]) / "agentloom"
    play("finding", without, AGENTLOOM=str(program), **interpreters)


def test_beside_extensions_for_python_and_yaml(
    play: Callable[..., None], without: str, interpreters: dict[str, str], tmp_path: Path
) -> None:
    """The interpreter chosen in the Python extension is used, also another one later; the YAML extension gets the schema only when wanted."""
    folder = Path(__file__).parent / "neighbours"
    packages = []
    for publisher, name, code in (("ms-python", "python", "python.cjs"), ("redhat", "vscode-yaml", "yaml.cjs")):
        package = tmp_path / f"{name}.vsix"
        subprocess.run(["node", folder / "package.cjs", publisher, name, folder / code, package], check=True)
        packages.append(str(package))
    play("neighbours", without, NEIGHBOURS=os.pathsep.join(packages), **interpreters)


def test_the_graph(play: Callable[..., None]) -> None:
    """The graph goes where it is clicked and follows the cursor, marks mistakes, opens subworkflows, obeys keys, is saved, shows 150 steps, in any theme."""
    play("drawing")


def test_running(play: Callable[..., None]) -> None:
    """A run is started by its lens, watched in the status bar and the graph, cancelled, resumed, approved; its result is read and compared.

    Two runs go on at once, of which one is rejected at its gate. A missing key is named and the mock offered; a step that failed says why until it is edited.
    """
    play("running")


def test_a_folder_from_a_stranger(play: Callable[..., None]) -> None:
    """Where the workspace isn't trusted, workflows are checked; no program, module or workflow of it is started."""
    play("trusting")
