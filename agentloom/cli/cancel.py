"""``agentloom cancel``: stop a run that a database holds."""

from __future__ import annotations

import click

from agentloom.cli.options import ON, some_place


@click.command()
@click.argument("run_id", metavar="RUN")
@ON
def command(run_id: str, on: str | None) -> None:
    """Stop a run that is under way, or waits, in a database: RUN is its id, the beginning of it, or `latest`.

    What it has done is kept, and `agentloom resume` goes on with it.

    Exit codes: 0 cancelled; 1 an unknown run, or one that has ended; 2 wrong usage.
    """
    where = some_place(on)
    from agentloom.cli.durable import cancel_on

    print(f"cancelled {cancel_on(where, run_id)}")
