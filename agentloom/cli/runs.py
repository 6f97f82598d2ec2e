"""``agentloom runs``: the runs that were kept."""

from __future__ import annotations

import json
import sys

import click

from agentloom.cli.cells import draw, visible
from agentloom.cli.console import is_unicode, look_of
from agentloom.cli.stores import all_runs, checkpointer_of

HEADER = ("RUN ID", "WORKFLOW", "STATUS", "UPDATED")


@click.command()
@click.option("--checkpoint-dir", type=click.Path(file_okay=False), help="Where checkpoints are kept.")
@click.option("--json", "as_json", is_flag=True, help="Print the checkpoints whole.")
def command(checkpoint_dir: str | None, as_json: bool) -> None:
    """List the runs that were kept with --checkpoint, the latest first.

    `interrupted` is a run whose process was killed, `running` one that is under way; both are read off the run's journal.
    """
    found, problems = all_runs(checkpointer_of(checkpoint_dir))
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)
    look = look_of(sys.stdout, "never")
    if as_json:
        print(json.dumps([run.to_dict() for run in found], indent=2, ensure_ascii=not is_unicode(look.encoding)))
        return
    if not found:
        print("No checkpoint runs found.")
        return
    rows = [HEADER, *((run.run_id, run.workflow_name, run.status, run.updated_at[:19]) for run in found)]
    shown = [[visible(cell, look.encoding) for cell in row] for row in rows]
    widths = [max(draw(row[at], look.encoding).width for row in shown) for at in range(len(HEADER))]
    for row in shown:
        cells = (
            cell + " " * (width - draw(cell, look.encoding).width) for cell, width in zip(row, widths, strict=True)
        )
        print("  ".join(cells).rstrip())
