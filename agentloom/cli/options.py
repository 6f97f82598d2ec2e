"""Options that several commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentloom.cli.console import COLOR_CHOICES
from agentloom.errors import UsageError

if TYPE_CHECKING:
    from agentloom.analysis.settings import Settings
    from agentloom.durable.dbos.place import Place

Command = TypeVar("Command", bound=Callable[..., Any])


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


def pairs_of(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, Any], ...]:
    from agentloom.cli.state import parse_pair

    return tuple(parse_pair(value) for value in (*context.meta.get(_PAIRS, ()), *values))


_PAIRS = "agentloom.pairs"


def _read_pairs(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        import json

        with open(value, encoding="utf-8") as file:
            context.meta[_PAIRS] = json.load(file)


def money(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:
        raise UsageError(f"`--budget {value:g}` is no sum of money; give US dollars, such as 0.50")
    return value


COLOR = click.option("--color", type=click.Choice(COLOR_CHOICES), default="auto", help="When to use colours.")
STDIN_FILENAME = click.option(
    "--stdin-filename", metavar="PATH", help="What `-` is called, and whose folder and settings it takes."
)
WORKFLOW = click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=False, allow_dash=True))
"""The file of commands that run one workflow."""


def STATE(command: Command) -> Command:
    """The option for state keys; and that of the editor, whose values neither have a limit nor stand in the list of processes."""
    command = click.option(
        "--state-pairs", hidden=True, is_eager=True, expose_value=False, callback=_read_pairs, metavar="FILE",
        help="A JSON list of what --state takes.",
    )(command)  # fmt: skip
    return click.option(
        "-s", "--state", "pairs", multiple=True, callback=pairs_of, metavar="KEY=VALUE", help="Set a state key."
    )(command)


STATE_FILE = click.option(
    "--state-file",
    "state_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Set many (YAML, JSON).",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")
STREAM = click.option("--stream", is_flag=True, help="Show replies while they are written.")
EVENTS = click.option("--events", metavar="FILE", help="Write events as JSON lines; `-` is standard output.")
CHECKPOINT = click.option("--checkpoint", is_flag=True, help="Keep the run, so that it can be resumed.")
RECORD_TOOLS = click.option("--record-tools", is_flag=True, help="Record what tools give, too; goes with --record.")
NO_HISTORY = click.option("--no-history", is_flag=True, help="Leave no record of the run for `agentloom history`.")


def checkpoint_dir_option(help: str = "Where checkpoints are kept.") -> Callable[[Command], Command]:
    """Return the option that says where checkpoints are kept."""
    return click.option("--checkpoint-dir", type=click.Path(file_okay=False), help=help)


def provider_option(of: str = "file") -> Callable[[Command], Command]:
    """Return the option for another provider than that ``of`` the file or the run."""
    return click.option(
        "-p", "--provider", metavar="NAME", callback=some_name, help=f"Instead of the {of}'s config.provider."
    )


def model_option(help: str = "Instead of the file's config.model.") -> Callable[[Command], Command]:
    """Return the option for another model."""
    return click.option("-m", "--model", metavar="NAME", callback=some_name, help=help)


def budget_option(help: str) -> Callable[[Command], Command]:
    """Return the option for another budget, in US dollars."""
    return click.option("-b", "--budget", type=float, callback=money, metavar="USD", help=help)


def recording_option(help: str) -> Callable[[Command], Command]:
    """Return the option that names a recording to play."""
    where = "without it config.responses_file, or recordings/<name>.json beside the workflow."
    return click.option("-r", "--recording", metavar="FILE", help=f"{help}; {where}")


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


SHARED = click.option(
    "--shared",
    metavar="DIR",
    envvar="AGENTLOOM_SHARED",
    type=click.Path(exists=True, file_okay=False),
    help="The folder that is the same on all machines: relative paths of a run start there.",
)
"""For every command that has to do with files of runs on a server."""

BLOBS = click.option(
    "--blobs",
    metavar="DIR",
    envvar="AGENTLOOM_BLOBS",
    type=click.Path(exists=True, file_okay=False),
    help="A folder that all machines have, for files above 1 MB that go along with a run.",
)


def place(on: str | None) -> Place | None:
    """Return the database that is meant; None for runs in this process. Raises what ``place_of`` raises."""
    if on is None or not on.strip():
        return None
    from agentloom.durable.dbos.place import place_of

    return place_of(on)


def elsewhere(settings: Settings, where: Place | None, shared: str | None) -> Settings:
    """Return the settings to check a workflow by that is to run at a place: on other machines, if that is a server."""
    if where is None or where.file is not None:
        return settings._replace(remote=False)
    folder = settings.shared if shared is None else Path(os.path.abspath(shared))
    return settings._replace(remote=True, shared=folder)


def some_place(on: str | None) -> Place:
    """Return the database that is meant. Raises ``UsageError`` when there is none."""
    found = place(on)
    if found is None:
        raise UsageError("say with `--on URL` or AGENTLOOM_ON which database is meant")
    return found
