"""Files that come with the package: the schemas and the rule pages.

In a wheel they lie inside the package (see ``force-include`` in ``pyproject.toml``), in a checkout beside it.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def shipped(*parts: str) -> Path:
    """Return where a shipped file or folder lies, such as ``shipped("docs", "rules")``."""
    inside = PACKAGE.joinpath(*parts)
    return inside if inside.exists() else PACKAGE.parent.joinpath(*parts)
