"""``agentloom graph``: a workflow as a picture, in five formats."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from agentloom.cli.loading import load
from agentloom.cli.options import STDIN_FILENAME
from agentloom.cli.tables import count
from agentloom.diagnostics import Severity
from agentloom.drawing.picture import Picture
from agentloom.errors import WorkflowError

FORMATS = ("mermaid", "ascii", "dot", "svg", "json")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=False, allow_dash=True))
@click.option(
    "-f", "--format", "format_", type=click.Choice(FORMATS), help="By the ending of --output; mermaid without one."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to a file instead of standard output.")
@STDIN_FILENAME
def command(file: str, format_: str | None, output: str | None, stdin_filename: str | None) -> None:
    """Draw a workflow: its steps in their layers, and what routers ask. FILE may be `-` for standard input.

    A workflow with mistakes is drawn as far as it goes; a dependency that closes a cycle is a dashed arrow. `agentloom visualize` is the same.

    Exit codes: 0 drawn; 1 there are no steps to draw; 2 wrong usage, or a file that can't be read or written.
    """
    from agentloom.ide.overview import critical_path
    from agentloom.ide.picture import picture

    shown, document = load(file, stdin_filename, "workflow")
    if not document.by_id:
        raise WorkflowError(f"{shown} has no steps to draw; `agentloom validate` tells what is wrong with it")
    text = _drawn(format_ or _by_ending(output), picture(document, critical_path(document)))
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    else:
        Path(output).write_text(text, encoding="utf-8", newline="")
    errors = sum(found.severity is Severity.ERROR for found in document.diagnostics)
    if errors:
        print(f"{shown}: {count(errors, 'error')}; `agentloom validate` shows what is wrong", file=sys.stderr)


def _by_ending(output: str | None) -> str:
    ending = Path(output).suffix.lower() if output is not None else ""
    return {".svg": "svg", ".json": "json", ".txt": "ascii", ".dot": "dot", ".gv": "dot"}.get(ending, "mermaid")


def _drawn(format_: str, drawn: Picture) -> str:
    from agentloom.drawing import data, dot, mermaid, plain, svg

    if format_ == "svg":
        return svg.svg(drawn)
    if format_ == "ascii":
        return plain.plain(drawn)
    if format_ == "dot":
        return dot.dot(drawn)
    if format_ == "json":
        return json.dumps(data.as_data(drawn), indent=2, ensure_ascii=False) + "\n"
    return mermaid.mermaid(drawn)
