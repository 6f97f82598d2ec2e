"""Print the `dev` dependency group of pyproject.toml, one requirement a line.

The group is the one list of development tools. pip learned `--group` only in 25.1, and a fresh virtual environment may hold
an older one, so `make` hands it this list instead.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(group: str = "dev") -> list[str]:
    """Return the requirements of a dependency group, groups that it includes unfolded."""
    groups = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    found: list[str] = []
    for entry in groups[group]:
        found.extend(requirements(entry["include-group"]) if isinstance(entry, dict) else [entry])
    return found


if __name__ == "__main__":
    print("\n".join(requirements()))
