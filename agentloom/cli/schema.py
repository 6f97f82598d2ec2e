"""``agentloom schema``: the JSON Schema of a file kind, byte for byte as it is published."""

from __future__ import annotations

import sys

import click

from agentloom.cli.shipped import shipped
from agentloom.errors import AgentLoomError


@click.command()
@click.argument("kind", type=click.Choice(["workflow", "agent"]), default="workflow")
def command(kind: str) -> None:
    """Print the JSON Schema (draft-07) of workflow files, or of agent files.

    Editors without the language server can use it: `agentloom schema > workflow.schema.json`.
    """
    path = shipped("schema", f"{kind}.schema.json")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AgentLoomError(f"the schema file is missing from this installation: {path}") from error
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
