"""``agentloom worker``: perform the runs that a database holds."""

from __future__ import annotations

import click

from agentloom.cli.options import ON, some_place


@click.command()
@ON
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many runs it performs at once; the worker that was started last sets it for all.",
)
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long what is under way may take when it is stopped; the rest goes on with another worker.",
)
def command(on: str | None, concurrency: int, drain: float) -> None:
    """Perform the runs that a database holds, until Ctrl-C or SIGTERM.

    Keys of providers are those of its own environment. What a worker leaves that dies is gone on with by the others. A SQLite file
    has one worker.

    Exit codes: 0 stopped; 1 the database can't be used, or another process works on the file; 2 wrong usage.
    """
    where = some_place(on)
    from agentloom.cli.durable import work_on

    work_on(where, concurrency, drain)
