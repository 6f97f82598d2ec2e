"""Which runs of a list are meant: by their status, their workflow, and when something last happened to them. The same for files and databases."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import NamedTuple

import click

from agentloom.checkpointing.base import STATUSES
from agentloom.cli.options import Command
from agentloom.errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST = timedelta(days=365_000)
"""What longer spans are taken for: a calendar has no day that lies further back, and no run is so old."""


class Choice(NamedTuple):
    """What is asked for. No ``statuses`` and no ``workflow`` mean all; ``before`` is a time with a zone."""

    statuses: frozenset[str] = frozenset()
    workflow: str | None = None
    before: datetime | None = None

    def fits(self, status: str, workflow: str, updated: str) -> bool:
        """Tell whether a run is meant. One that doesn't say when something happened to it is never old."""
        if self.statuses and status not in self.statuses:
            return False
        if self.workflow is not None and not fnmatchcase(workflow, self.workflow):
            return False
        return self.before is None or _is_before(updated, self.before)


def _is_before(text: str, moment: datetime) -> bool:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return False
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)) < moment


def age(context: click.Context, parameter: click.Parameter, value: str) -> timedelta:
    """Return a span of time: `90m`, `12h`, `30d`, `6w`."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([mhdw])", value.strip())
    if found is None:
        raise UsageError(f"`--{parameter.name} {value}` is no span of time; write `30d`, or one in `m`, `h` or `w`")
    return min(timedelta(**{_UNITS[found[2]]: float(found[1])}), _LONGEST)


def status_option(help: str) -> Callable[[Command], Command]:
    """Return the option that names statuses, any number of times."""
    return click.option("--status", "statuses", multiple=True, type=click.Choice(STATUSES), metavar="STATUS", help=help)


WORKFLOW = click.option(
    "--workflow", metavar="NAME", help="Only runs of this workflow; `*` stands for any part of the name."
)
