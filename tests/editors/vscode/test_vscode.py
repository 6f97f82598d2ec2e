"""The extension in a real VS Code: what a page in Chromium shows while scenarios are played, act by act."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.conftest import ROOT


def test_writing(play: Callable[..., None]) -> None:
    """A workflow is written: mistake, quick fix, completion in a template, rename, the page of a code; other YAML is left alone."""
    play("writing")


def test_finding_the_server(play: Callable[..., None], search_path: str, tmp_path: Path) -> None:
    """No agentloom, a wrong path, an old one, an interpreter without: each is told in plain words; with the right one the file is checked."""
    ours, *others = search_path.split(os.pathsep)
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    module = tmp_path / "module-python"
    path = os.pathsep.join([str(ROOT), str(ROOT / "lsp")])
    module.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" "$@"\n')
    for script in (bare, module):
        script.chmod(0o755)
    without = os.pathsep.join(part for part in others if not (Path(part) / "agentloom").exists())
    play("finding", without, AGENTLOOM=str(Path(ours) / "agentloom"), BARE_PYTHON=str(bare), MODULE_PYTHON=str(module))


def test_the_graph(play: Callable[..., None]) -> None:
    """The graph goes where it is clicked and follows the cursor, marks mistakes, opens subworkflows, obeys keys, is saved, and shows 150 steps."""
    play("drawing")


def test_running(play: Callable[..., None]) -> None:
    """A run is started by its lens, watched in the status bar and the graph, cancelled, resumed, approved; its result is read and compared."""
    play("running")
