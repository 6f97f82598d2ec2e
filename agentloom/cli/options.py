"""Options that several commands share."""

from __future__ import annotations

import click

from agentloom.errors import UsageError


def some_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise UsageError(f"`--{parameter.name}` is empty; give a name, or leave it out")
    return value


def some_id(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        from agentloom.checkpointing.files import is_run_id
        from agentloom.cli.stores import LATEST

        if not is_run_id(value):
            raise UsageError(f"`--run-id {value}` can't be used; take letters, digits, `.`, `_` and `-`")
        if value == LATEST:
            raise UsageError(f"`--run-id {value}` can't be used: `{LATEST}` is the latest run, whatever its id")
    return value


LITE = click.option(
    "--lite", is_flag=True, expose_value=False, help="Without observability; so far nothing is exported anyway."
)
"""For every command that runs workflows."""

RUN_ID = click.option("--run-id", metavar="ID", callback=some_id, help="Name the run; twelve random digits without it.")
UNTIL = click.option("--until", metavar="STEP", callback=some_name, help="Run only this step and what it waits for.")
