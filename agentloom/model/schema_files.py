"""The published schema files: where they are, in a checkout and in an installed wheel. Without pydantic."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

SchemaKind = Literal["workflow", "agent"]

_PACKAGE = Path(__file__).resolve().parent.parent


def schema_path(kind: SchemaKind) -> Path:
    """Return the file of a schema. Raises ``FileNotFoundError`` if neither a checkout nor a wheel has it."""
    name = f"{kind}.schema.json"
    for folder in (_PACKAGE / "schema", _PACKAGE.parent / "schema"):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{name} is missing from this installation")


def schema_text(kind: SchemaKind) -> str:
    """Return a schema as the text that is published."""
    return schema_path(kind).read_text(encoding="utf-8")
