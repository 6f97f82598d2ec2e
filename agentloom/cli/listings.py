"""Lists of the runs in a database, and what is deleted from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentloom.cli.choice import Choice
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.listing import Row
from agentloom.durable.dbos.place import Place
from agentloom.durable.dbos.pruning import give_back, pruned

EVERY = Choice()


def rows_on(place: Place, choice: Choice = EVERY, notes: list[str] | None = None) -> Iterator[Row]:
    """Yield the runs of a place that are meant, the latest first; ``notes`` gets what is to be said of some."""
    with Archive(place) as archive:
        if notes is not None:
            archive.notes = notes
        for row in archive.rows():
            if choice.fits(row.status, row.workflow, row.updated):
                yield row


def whole_on(place: Place, choice: Choice, notes: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the same runs, each whole, as its checkpoint would hold it."""
    with Archive(place) as archive:
        archive.notes = notes
        for row in archive.rows():
            if choice.fits(row.status, row.workflow, row.updated):
                yield archive.whole(row).to_dict()


def prune_on(place: Place, choice: Choice, dry_run: bool) -> Iterator[tuple[Row, int]]:
    """Delete the runs that are meant, none that is under way. Yield each that is gone, or would be, with the bytes that it took."""
    with Archive(place) as archive:
        meant = (
            row for row in archive.rows() if not row.is_open and choice.fits(row.status, row.workflow, row.updated)
        )
        yield from pruned(archive, meant, dry_run)
    if not dry_run:
        give_back(place)
