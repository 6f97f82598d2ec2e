"""``agentloom runs``: the runs that were kept, and one of them in full."""

from __future__ import annotations

import os
import sys
from itertools import islice

import click

from agentloom.checkpointing.history import history_of
from agentloom.cli.choice import WORKFLOW, Choice, status_option
from agentloom.cli.console import ColorChoice, look_of, print_json, print_json_list
from agentloom.cli.options import COLOR, ON, checkpoint_dir_option, place
from agentloom.cli.prune import prune
from agentloom.cli.stores import all_runs, checkpointer_of, find_run
from agentloom.cli.tables import grid

HEADER = ("RUN ID", "WORKFLOW", "STATUS", "UPDATED")


@click.group(invoke_without_command=True, subcommand_metavar="[show RUN | prune]")
@checkpoint_dir_option()
@ON
@status_option("Only runs of this status; may be repeated.")
@WORKFLOW
@click.option("--limit", type=click.IntRange(min=1), help="How many to list; all without it.")
@click.option("--json", "as_json", is_flag=True, help="Print the checkpoints whole.")
@click.option("--brief", is_flag=True, help="Print JSON, but only what a list shows: no state, no results.")
@click.pass_context
def command(
    context: click.Context,
    checkpoint_dir: str | None,
    on: str | None,
    statuses: tuple[str, ...],
    workflow: str | None,
    limit: int | None,
    as_json: bool,
    brief: bool,
) -> None:
    """List the runs that were kept with --checkpoint, the latest first; `runs show RUN` shows one of them, `runs prune` deletes old ones.

    `interrupted` is a run whose process was killed, `running` one that is under way; both are read off the run's journal. With --on, the
    runs of a database.
    """
    if context.invoked_subcommand is not None:
        context.obj = checkpoint_dir, on, as_json  # `runs --json show RUN` means the same as `runs show RUN --json`
        return
    where = place(on)
    choice = Choice(frozenset(statuses), workflow)
    rows: list[tuple[str, ...]] = [HEADER]
    notes: list[str] = []
    if where is None:
        kept, notes = all_runs(checkpointer_of(checkpoint_dir))
        runs = islice((run for run in kept if choice.fits(run.status, run.workflow_name, run.updated_at)), limit)
        if as_json or brief:
            print_json_list(run.in_brief() if brief else run.to_dict() for run in runs)
        else:
            rows += ((run.run_id, run.workflow_name, run.status, run.updated_at[:19]) for run in runs)
    else:
        from agentloom.cli.listings import rows_on, whole_on

        found = islice(rows_on(where, choice, notes), limit)
        if as_json or brief:
            print_json_list(
                (row.in_brief() for row in found) if brief else islice(whole_on(where, choice, notes), limit)
            )
        else:
            rows += ((row.run_id, row.workflow, row.status, row.updated[:19]) for row in found)
    for note in dict.fromkeys(notes):
        print(f"warning: {note}", file=sys.stderr)
    if as_json or brief:
        return
    if len(rows) == 1:
        print("No checkpoint runs found." if where is None else f"No runs found in {where.name}.")
        return
    for line in grid(rows, look_of(sys.stdout, "never").encoding):
        print(line)


command.add_command(prune)


@command.command(short_help="Show one of them in full.")
@click.argument("run_id", metavar="RUN")
@checkpoint_dir_option()
@click.option(
    "--runs-dir", type=click.Path(file_okay=False), help="Where the records of the history are: agentloom_runs."
)
@ON
@click.option("--json", "as_json", is_flag=True, help="Print all that is known as JSON, and nothing else.")
@click.option("--checkpoint", "raw", is_flag=True, help="Print what a resume goes on from, as JSON.")
@COLOR
@click.pass_context
def show(
    context: click.Context,
    run_id: str,
    checkpoint_dir: str | None,
    runs_dir: str | None,
    on: str | None,
    as_json: bool,
    raw: bool,
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
    if raw:
        if where is None:
            print_json(find_run(checkpointer_of(checkpoint_dir or above_dir), run_id).to_dict())
            return
        from agentloom.cli.listings import checkpoint_on

        print_json(checkpoint_on(where, run_id).to_dict())
        return
    if where is None:
        run = shown_run(checkpointer_of(checkpoint_dir or above_dir), history, run_id)
    else:
        from agentloom.cli.listings import shown_on

        run = shown_on(where, run_id, history)
    look = look_of(sys.stdout, color)
    if as_json or above_json:
        print_json(run.to_dict())
        return
    for line in lines_of(run, look):
        print(line)
