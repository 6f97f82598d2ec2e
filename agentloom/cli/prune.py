"""``agentloom runs prune``: delete runs that nobody goes on with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import click

from agentloom.checkpointing.base import STATUSES
from agentloom.cli.choice import WORKFLOW, Choice, age, status_option
from agentloom.cli.console import look_of
from agentloom.cli.options import ON, checkpoint_dir_option, place
from agentloom.cli.stores import checkpointer_of, every_run
from agentloom.cli.tables import count, grid
from agentloom.errors import CheckpointSchemaError, UsageError
from agentloom.files import in_plain_words

HEADER = ("RUN ID", "WORKFLOW", "STATUS", "UPDATED", "SIZE")
UNDER_WAY = "running"
WAITS = "paused"


class Pruned(NamedTuple):
    """A run that was deleted, or would be; ``size`` in bytes."""

    run_id: str
    workflow: str
    status: str
    updated: str
    size: int


@click.command("prune", short_help="Delete those that are old.")
@click.option(
    "--older",
    required=True,
    metavar="AGE",
    callback=age,
    help="To which nothing happened for so long: 90m, 12h, 30d, 6w.",
)
@status_option(
    "Only runs of this status; may be repeated. Runs that wait at a gate are deleted only with `--status paused`."
)
@WORKFLOW
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@checkpoint_dir_option()
@ON
@click.pass_context
def prune(
    context: click.Context,
    older: timedelta,
    statuses: tuple[str, ...],
    workflow: str | None,
    dry_run: bool,
    checkpoint_dir: str | None,
    on: str | None,
) -> None:
    """Delete old runs whole: checkpoints and journals, those of subworkflows too. Their records in the history stay.

    With --on, the runs of a database, with everything that is in it of them; the workers may go on meanwhile. What is under way is never
    deleted, and what waits at a gate only if you say so.

    Exit codes: 0 done, also when there was none; 1 the files or the database can't be used, or something can't be deleted; 2 wrong usage.
    """
    if UNDER_WAY in statuses:
        raise UsageError("runs that are under way aren't deleted; `agentloom cancel RUN` stops one")
    chosen = frozenset(statuses or (word for word in STATUSES if word not in (UNDER_WAY, WAITS)))
    choice = Choice(chosen, workflow, datetime.now(UTC) - older)
    above_dir, above_on = (context.obj or (None, None))[:2]
    where = place(on or above_on)
    problems: list[str] = []
    if where is None:
        found = _files(checkpoint_dir or above_dir, choice, dry_run, problems)
    else:
        from agentloom.cli.listings import prune_on

        found = (
            Pruned(row.run_id, row.workflow, row.status, row.updated, size)
            for row, size in prune_on(where, choice, dry_run)
        )
    number, total = _told(found, dry_run)
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)
    words = f"{count(number, 'run')}, {in_bytes(total)}"
    print(f"would delete {words}" if dry_run else f"deleted {words}")
    if problems:
        raise SystemExit(1)


def in_bytes(size: float) -> str:
    """Return a number of bytes in the unit that suits it."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _told(found: Iterator[Pruned], dry_run: bool) -> tuple[int, int]:
    """Return how many runs there are, and how many bytes; a dry run shows them."""
    number = total = 0
    rows: list[tuple[str, ...]] = [HEADER]
    for run in found:
        number, total = number + 1, total + run.size
        if dry_run:
            rows.append((run.run_id, run.workflow, run.status, run.updated[:19], in_bytes(run.size)))
    if len(rows) > 1:
        for line in grid(rows, look_of(sys.stdout, "never").encoding, numbers=(4,)):
            print(line)
    return number, total


def _files(folder: str | None, choice: Choice, dry_run: bool, problems: list[str]) -> Iterator[Pruned]:
    from agentloom.core.keeping.removing import remove_run, size_of

    store = checkpointer_of(folder)
    meant: list[Pruned] = []
    parts: dict[str, list[str]] = {}
    for run in every_run(store):
        if isinstance(run, CheckpointSchemaError):
            problems.append(f"{run}; it stays")
        elif run.part_of is not None:
            parts.setdefault(run.part_of, []).append(run.run_id)
        elif choice.fits(run.status, run.workflow_name, run.updated_at):
            meant.append(Pruned(run.run_id, run.workflow_name, run.status, run.updated_at, 0))
    for found in meant:
        inside = parts.get(found.run_id, [])
        size = size_of(store, (found.run_id, *inside))
        try:
            if dry_run or remove_run(store, found.run_id, found.updated, inside):
                yield found._replace(size=size)
        except KeyError:
            continue  # gone meanwhile
        except (OSError, CheckpointSchemaError) as error:
            said = in_plain_words(error) if isinstance(error, OSError) else str(error)
            problems.append(f"run `{found.run_id}` can't be deleted: {said}")
