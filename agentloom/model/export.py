"""Writes what is generated from the model: the catalogue and the two JSON Schemas.

``python -m agentloom.model.export`` writes them, ``--check`` only tells whether they are up to date (exit code 1 if not).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentloom.model.catalogue import CATALOGUE_FILE, parse
from agentloom.model.json_schema import Schema, document_schema
from agentloom.model.walk import catalogue_data

SCHEMA_FOLDER = Path(__file__).resolve().parents[2] / "schema"


def build_catalogue() -> dict[str, Any]:
    """Return the catalogue as plain data, in the form that ``catalogue.parse`` reads."""
    return catalogue_data()


def workflow_schema() -> Schema:
    """Return the JSON Schema of workflow files."""
    return document_schema(parse(build_catalogue()), "workflow", "urn:agentloom:schema:workflow")


def agent_schema() -> Schema:
    """Return the JSON Schema of agent files."""
    return document_schema(parse(build_catalogue()), "agent", "urn:agentloom:schema:agent")


def generated() -> dict[Path, str]:
    """Return every generated file of this package with the text it should have; the same on every machine."""
    return {
        CATALOGUE_FILE: _text(build_catalogue()),
        SCHEMA_FOLDER / "workflow.schema.json": _text(workflow_schema()),
        SCHEMA_FOLDER / "agent.schema.json": _text(agent_schema()),
    }


def stale() -> list[Path]:
    """Return the generated files that differ from what the model says, or are missing."""
    return [path for path, text in generated().items() if not path.is_file() or path.read_bytes() != text.encode()]


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with ``--check`` name those that are stale; returns the exit code."""
    out_of_date = stale()
    for path in out_of_date:
        if "--check" in arguments:
            sys.stderr.write(f"{path} is out of date; run `python -m agentloom.model.export`\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(generated()[path].encode())
            sys.stderr.write(f"wrote {path}\n")
    return 1 if out_of_date and "--check" in arguments else 0


def _text(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
