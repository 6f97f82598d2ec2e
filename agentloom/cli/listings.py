"""The runs of a database: lists of them, one in full, and what is deleted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from agentloom.checkpointing.base import CheckpointData
from agentloom.checkpointing.history import History, RunRecord
from agentloom.cli.choice import Choice
from agentloom.cli.chronicle import Chronicle
from agentloom.cli.durable import found_run
from agentloom.core.keeping import INTERRUPTED
from agentloom.core.keeping.showing import ShownRun, shown
from agentloom.core.loader import load_data
from agentloom.durable.dbos.archive import QUEUED, Archive, Found
from agentloom.durable.dbos.feed import recorded_of
from agentloom.durable.dbos.listing import Row
from agentloom.durable.dbos.orders import run_of, segment_id
from agentloom.durable.dbos.place import Place
from agentloom.durable.dbos.pruning import give_back, pruned
from agentloom.durable.dbos.staff import why_it_waits
from agentloom.errors import AgentLoomError

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


def checkpoint_on(place: Place, word: str) -> CheckpointData:
    """Return what a resume of a run goes on from."""
    with Archive(place) as archive:
        return found_run(archive, word).data


def shown_on(place: Place, word: str, history: History) -> ShownRun:
    """Return a run with all that is known of it."""
    with Archive(place) as archive:
        found = found_run(archive, word)
        data = found.data
        if data.status == QUEUED and (why := why_it_waits(archive, found.segment)) is not None:
            print(f"warning: run `{data.run_id}` waits: {why}", file=sys.stderr)
        inside = recorded_of(found.lines or archive.lines(found.segment))
        results = dict(data.step_results)
        if inside is not None:
            results.update({path: result for path, result in inside.outcomes.items() if "." in path})
        remembered = history.read(data.run_id)
        is_ours = remembered is not None
        if remembered is None and not found.is_open:  # another terminal's, or that of nobody
            remembered = _remembered(archive, found, history)
        run = shown(
            data.run_id,
            data,
            {**results, **data.inside},
            recorded_of(found.lines),
            remembered,
            None,
            history,
        )
        return run if is_ours else replace(run, history=None)


def _remembered(archive: Archive, found: Found, history: History) -> RunRecord | None:
    """Return the record that a terminal would have written which had followed the run; None without a result or events."""
    result = archive.ended(found.segment).result
    run_id, last = run_of(found.segment)
    if result is None:
        return None
    try:
        document = load_data(found.data.workflow_definition, found.data.source or f"<run {run_id}>")
    except AgentLoomError:
        return None
    chronicle = Chronicle(history, document)
    began = None
    for number in range(1, last + 1):
        for event in archive.events(segment_id(run_id, number)):
            chronicle.take(event)
            began = event.time if event.name == "run_started" else began
    if began is None:
        return None
    return replace(chronicle.record(run_id, result), timestamp=began.isoformat())


def prune_on(place: Place, choice: Choice, dry_run: bool) -> Iterator[tuple[Row, int]]:
    """Delete the runs that are meant, none that is under way. Yield each that is gone, or would be, with the bytes that it took."""
    with Archive(place) as archive:
        meant = (
            row
            for row in archive.rows()
            # One whose process was killed is under way for DBOS; on a file nobody goes on with it unless asked to.
            if (not row.is_open or (row.status == INTERRUPTED and place.file is not None))
            and choice.fits(row.status, row.workflow, row.updated)
        )
        yield from pruned(archive, meant, dry_run)
    if not dry_run:
        give_back(place)
