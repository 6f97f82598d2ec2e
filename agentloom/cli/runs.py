"""``agentloom runs``: the runs that were kept, and one of them in full."""

from __future__ import annotations

import os
import sys

import click

from agentloom.checkpointing.history import history_of
from agentloom.cli.cells import draw, visible
from agentloom.cli.console import ColorChoice, look_of, print_json
from agentloom.cli.options import COLOR, ON, checkpoint_dir_option, place
from agentloom.cli.stores import all_runs, checkpointer_of

HEADER = ("RUN ID", "WORKFLOW", "STATUS", "UPDATED")


@click.group(invoke_without_command=True, subcommand_metavar="[show RUN]")
@checkpoint_dir_option()
@ON
@click.option("--json", "as_json", is_flag=True, help="Print the checkpoints whole.")
@click.pass_context
def command(context: click.Context, checkpoint_dir: str | None, on: str | None, as_json: bool) -> None:
    """List the runs that were kept with --checkpoint, the latest first; `runs show RUN` shows one of them.

    `interrupted` is a run whose process was killed, `running` one that is under way; both are read off the run's journal.
    """
    if context.invoked_subcommand is not None:
        context.obj = checkpoint_dir, on, as_json  # `runs --json show RUN` means the same as `runs show RUN --json`
        return
    where = place(on)
    if where is None:
        found, problems = all_runs(checkpointer_of(checkpoint_dir))
    else:
        from agentloom.cli.durable import runs_on

        found, problems = runs_on(where)
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)
    look = look_of(sys.stdout, "never")
    if as_json:
        print_json([run.to_dict() for run in found])
        return
    if not found:
        print("No checkpoint runs found." if where is None else f"No runs found in {where.name}.")
        return
    rows = [HEADER, *((run.run_id, run.workflow_name, run.status, run.updated_at[:19]) for run in found)]
    shown = [[visible(cell, look.encoding) for cell in row] for row in rows]
    widths = [max(draw(row[at], look.encoding).width for row in shown) for at in range(len(HEADER))]
    for row in shown:
        cells = (
            cell + " " * (width - draw(cell, look.encoding).width) for cell, width in zip(row, widths, strict=True)
        )
        print("  ".join(cells).rstrip())


@command.command(short_help="Show one of them in full.")
@click.argument("run_id", metavar="RUN")
@checkpoint_dir_option()
@click.option(
    "--runs-dir", type=click.Path(file_okay=False), help="Where the records of the history are: agentloom_runs."
)
@ON
@click.option("--json", "as_json", is_flag=True, help="Print all that is known as JSON, and nothing else.")
@COLOR
@click.pass_context
def show(
    context: click.Context,
    run_id: str,
    checkpoint_dir: str | None,
    runs_dir: str | None,
    on: str | None,
    as_json: bool,
    color: ColorChoice,
) -> None:
    """Show one run: its steps, how long they took, what they cost, what was asked.

    RUN is its id, the beginning of it, or `latest`. A run that wasn't kept with --checkpoint is shown from its record in the
    history. Prompts are there if the workflow has `capture_prompts: true`, without secrets.

    Exit codes: 0 done; 1 an unknown run, or a checkpoint that can't be read.
    """
    above_dir, above_on, above_json = context.obj or (None, None, False)
    from agentloom.cli.showing import lines_of, shown_run

    history = history_of(runs_dir, os.environ)
    where = place(on or above_on)
    if where is None:
        run = shown_run(checkpointer_of(checkpoint_dir or above_dir), history, run_id)
    else:
        from agentloom.cli.durable import shown_on

        run = shown_on(where, run_id, history)
    look = look_of(sys.stdout, color)
    if as_json or above_json:
        print_json(run.to_dict())
        return
    for line in lines_of(run, look):
        print(line)
