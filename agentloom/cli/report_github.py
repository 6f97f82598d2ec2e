"""Diagnostics as commands to GitHub Actions, which shows them beside the lines of a pull request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

COMMANDS = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}


def annotation(diagnostic: Mapping[str, Any]) -> str:
    """Return the command for one diagnostic (as in ``report_json``): 1-based places, the path from the root of the repository."""
    values: dict[str, object] = {
        "file": from_repository(diagnostic["path"]),
        "line": diagnostic["line"],
        "endLine": diagnostic["end_line"],
    }
    if diagnostic["line"] == diagnostic["end_line"]:  # else GitHub refuses columns
        values["col"] = diagnostic["column"]
        values["endColumn"] = max(
            diagnostic["column"], diagnostic["end_column"] - 1
        )  # the last column, not the one behind
    values["title"] = f"{diagnostic['code']} {diagnostic['name']}"
    properties = ",".join(f"{name}={_escaped(str(value), ',:')}" for name, value in values.items())
    return f"::{COMMANDS[diagnostic['severity']]} {properties}::{_escaped(diagnostic['message'])}"


def from_repository(path: str) -> str:
    """Return a path relative to the root of the git repository that it lies in, with forward slashes; as it is when there is none."""
    if path.startswith("<"):
        return path
    whole = os.path.abspath(path)
    root = _root_of(os.path.dirname(whole))
    if root is None:
        return path.replace(os.sep, "/")
    return os.path.relpath(whole, root).replace(os.sep, "/")


@lru_cache(maxsize=1024)
def _root_of(folder: str) -> str | None:
    for place in (Path(folder), *Path(folder).parents):
        if (place / ".git").exists():  # a folder; a file in worktrees and submodules
            return str(place)
    return None


def _escaped(text: str, also: str = "") -> str:
    for char in f"%\r\n{also}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text
