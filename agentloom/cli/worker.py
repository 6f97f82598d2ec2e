"""``agentloom worker``: perform the runs that a database holds."""

from __future__ import annotations

import click

from agentloom.cli.options import BLOBS, ON, SHARED, some_place


@click.command()
@ON
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many runs it performs at once.",
)
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long what is under way may take when it is stopped; the rest goes on with another worker.",
)
@SHARED
@BLOBS
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME",
    help="Give this variable to runs whose secret state refers to it as env:NAME; no other one is given.",
)
@click.option(
    "--prepare",
    is_flag=True,
    help="Only make the tables in the database, or bring them up to date, and end: for a role that may.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input does.")
def command(
    on: str | None,
    concurrency: int,
    drain: float,
    shared: str | None,
    blobs: str | None,
    variables: tuple[str, ...],
    prepare: bool,
    with_parent: bool,
) -> None:
    """Perform the runs that a database holds, until Ctrl-C or SIGTERM.

    Keys of providers are those of its own environment. What a worker leaves that dies is gone on with by the others. A SQLite file
    has one worker.

    Exit codes: 0 stopped, or prepared; 1 the database can't be used, or another process works on the file; 2 wrong usage.
    """
    where = some_place(on)
    from agentloom.cli.durable import prepare_on, ways_of, work_on

    if prepare:
        prepare_on(where)
        return
    work_on(where, concurrency, drain, with_parent, ways_of(shared, blobs), variables)
