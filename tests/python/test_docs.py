"""The programs in docs/python.md: each runs as it stands, in a process of its own, and prints what stands below it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import agentloom.api
from tests.conftest import ROOT, Golden
from tests.house.documents import blocks, steady

PAGE = ROOT / "docs" / "python.md"


@pytest.mark.golden
def test_every_program_prints_what_is_shown(tmp_path: Path, golden: Golden) -> None:
    """Paths start in a checkout; a program without output below it would escape."""
    text = PAGE.read_text(encoding="utf-8")
    parts: list[str] = []
    at = 0
    found = [*blocks(PAGE)]
    for number, (program, output) in enumerate(pairwise(found)):
        if program.words != ("python",):
            continue
        assert output.words == ("text",), program
        folder = tmp_path / str(number)
        shutil.copytree(ROOT / "examples", folder / "examples")
        script = folder / "program.py"
        script.write_text(program.text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "error", "program.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'lsp'}"},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (program, done.stderr)
        printed = (
            "\n".join(line.rstrip() for line in done.stdout.rstrip().replace(str(folder), "/app").splitlines()) + "\n"
        )
        parts += [text[at : output.start], output.text if steady(output.text) == steady(printed) else printed]
        at = output.start + len(output.text)
    golden(PAGE, "".join([*parts, text[at:]]))


def test_the_page_names_the_whole_interface() -> None:
    """A name that is public and not described helps nobody."""
    text = PAGE.read_text(encoding="utf-8")
    helpers = {
        "Message",
        "Provider",
        "ToolCall",
        "Usage",
        "EmbeddingRequest",
        "EmbeddingResponse",
        "GraphEdge",
        "BaseTool",
    }
    unnamed = {name for name in agentloom.api.__all__ if name not in text}
    assert unnamed <= helpers | {"PauseRequestedError", "WorkflowBuilder", "WorkflowDocument", "WorkflowResult"}


def test_the_interface_is_there_and_sorted() -> None:
    """`from agentloom.api import *` works, and nothing is listed twice."""
    names = agentloom.api.__all__
    assert [name for name in names if not hasattr(agentloom.api, name)] == []
    assert len(names) == len(set(names))
