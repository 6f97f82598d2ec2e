"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentloom.errors import UsageError

if TYPE_CHECKING:
    from agentloom.durable.dbos.place import Place


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

ON = click.option(
    "--on",
    "on",
    metavar="URL",
    envvar="AGENTLOOM_ON",
    help="Where durable runs live: sqlite:///FILE, postgresql://…, or $AGENTLOOM_ON.",
)
"""For every command that has to do with durable runs; `place` reads it."""


def place(on: str | None) -> Place | None:
    """Return the database that is meant; None for runs in this process. Raises what ``place_of`` raises."""
    if on is None or not on.strip():
        return None
    from agentloom.durable.dbos.place import place_of

    return place_of(on)


def some_place(on: str | None) -> Place:
    """Return the database that is meant. Raises ``UsageError`` when there is none."""
    found = place(on)
    if found is None:
        raise UsageError("say with `--on URL` or AGENTLOOM_ON which database is meant")
    return found
