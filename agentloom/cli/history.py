"""``agentloom history``: the runs of a project, from the records that each of them leaves."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from agentloom.checkpointing.history import RunRecord, history_of
from agentloom.cli.cells import visible
from agentloom.cli.console import look_of, print_json
from agentloom.cli.options import ON, place
from agentloom.cli.tables import grid
from agentloom.errors import UsageError

if TYPE_CHECKING:
    from agentloom.durable.dbos.place import Place

HEADER = ("TIMESTAMP", "RUN ID", "WORKFLOW", "STATUS", "COST USD", "DUR MS")
MANY_PROBLEMS = 5


def _time(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        found = None
    if found is None:
        raise UsageError(
            f"`--{parameter.name} {value}` is no date; write one as 2026-11-30, or with a time as 2026-11-30T14:05:00+01:00"
        )
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _money(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:
        name = str(parameter.name).replace("_", "-")
        raise UsageError(f"`--{name} {value:g}` is no sum of money; give US dollars, such as 0.50")
    return value


@click.command()
@click.option(
    "--runs-dir",
    type=click.Path(exists=True, file_okay=False),
    help="Where the records are: agentloom_runs, or $AGENTLOOM_RUNS_DIR.",
)
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow; `*` stands for any part of the name.")
@click.option("--provider", metavar="NAME", help="Only runs that asked it: `openai`, or `openai/gpt-4o-mini`.")
@click.option("--since", metavar="DATE", callback=_time, help="Only runs from this day (UTC), or time, on.")
@click.option("--until", metavar="DATE", callback=_time, help="Only runs before this day (UTC), or time.")
@click.option("--min-cost", type=float, metavar="USD", callback=_money, help="Only runs that cost as much, or more.")
@click.option("--max-cost", type=float, metavar="USD", callback=_money, help="Only runs that cost no more.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many to list.")
@ON
@click.option("--json", "as_json", is_flag=True, help="Print the records whole.")
def command(
    runs_dir: str | None,
    workflow: str | None,
    provider: str | None,
    since: datetime | None,
    until: datetime | None,
    min_cost: float | None,
    max_cost: float | None,
    limit: int,
    on: str | None,
    as_json: bool,
) -> None:
    """List the runs of this project, the newest first. Every run and resume leaves a record; replays leave none.

    With --on those of a database that have ended, or wait, whoever asked for them and wherever they ran; without their steps.

    Exit codes: 0 done, also when there is none; 2 wrong usage, or a folder that can't be read.
    """
    if since is not None and until is not None and since >= until:
        raise UsageError("`--since` is not before `--until`, so no run lies between them")
    if min_cost is not None and max_cost is not None and min_cost > max_cost:
        raise UsageError("`--min-cost` is above `--max-cost`, so no run lies between them")
    where = place(on)
    runs: Iterable[RunRecord] = _records(runs_dir) if where is None else _records_on(where)
    some = False
    found: list[RunRecord] = []
    for run in runs:
        some = True
        if len(found) == limit:
            break
        if (
            (workflow is None or fnmatchcase(run.workflow_name, workflow))
            and (provider is None or any(provider in (used, used.partition("/")[0]) for used in run.providers_used))
            and (since is None or run.began >= since)
            and (until is None or run.began < until)
            and (min_cost is None or run.total_cost_usd >= min_cost)
            and (max_cost is None or run.total_cost_usd <= max_cost)
        ):
            found.append(run)
    look = look_of(sys.stdout, "never")
    if as_json:
        print_json([run.to_dict() for run in found])
    elif not found:
        print("No runs found that fit." if some else "No runs found.")
    else:
        for line in grid([HEADER, *map(_row, found)], look.encoding, numbers=(4, 5)):
            print(line)


def _records(folder: str | None) -> list[RunRecord]:
    history = history_of(folder, os.environ)
    try:
        runs, problems = history.runs()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"`{history.folder}` can't be read: {error.strerror}") from None
    _warn(problems)
    return runs


def _records_on(where: Place) -> Iterator[RunRecord]:
    from agentloom.cli.listings import rows_on

    return (row.record for row in rows_on(where) if not row.is_open)


def _warn(problems: list[str]) -> None:
    for problem in problems[:MANY_PROBLEMS]:
        print(f"warning: {visible(problem, sys.stderr.encoding or 'utf-8')}", file=sys.stderr)
    if len(problems) > MANY_PROBLEMS:
        print(f"warning: {len(problems) - MANY_PROBLEMS} more files can't be read", file=sys.stderr)


def _row(run: RunRecord) -> tuple[str, ...]:
    when = run.began.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (when, run.run_id, run.workflow_name, run.status, f"{run.total_cost_usd:.6f}", f"{run.duration_ms:.0f}")
