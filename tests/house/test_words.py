"""Small promises about the text of the project: no stray output, no paths of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

HOMES = rb"/(?:home|Users|root)/(?!me\b|you\b)[A-Za-z0-9_.-]+"
# Addresses made up for a test or a text are no places on a machine.
MADE_UP = re.compile(rb"file:/*\S*$")


def tracked(root: Path) -> list[Path]:
    """Return the files of the checkout that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    return [path for name in listed.stdout.decode().split("\0") if name and (path := root / name).is_file()]


def test_only_the_command_line_prints(root: Path) -> None:
    """A stray print on standard output breaks the language server's protocol, and `--json`."""
    found = []
    for package in (root / "agentloom", root / "lsp"):
        for path in package.rglob("*.py"):
            if path.is_relative_to(root / "agentloom" / "cli"):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                    found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert found == []


def test_no_file_names_a_place_on_one_machine(root: Path) -> None:
    """A path such as somebody's home folder in a file means that it works on that machine only."""
    machine = re.compile(rb"|".join([re.escape(str(root).encode()), re.escape(sys.prefix.encode()), HOMES]))
    found = []
    for path in tracked(root):
        data = path.read_bytes()
        for hit in machine.finditer(data):
            line = data[data.rfind(b"\n", 0, hit.start()) + 1 : hit.start()]
            if path != Path(__file__) and not MADE_UP.search(line):
                found.append(f"{path.relative_to(root)}: {hit.group().decode()}")
    assert found == []
