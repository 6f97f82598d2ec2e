"""Deleting what a run left behind, unless it is under way or has gone on."""

from __future__ import annotations

from collections.abc import Iterable

from agentloom.checkpointing.files import FileCheckpointer
from agentloom.core.keeping.runs import journal_of, load_run
from agentloom.durable.journal import Journal, RunIsBusy


def size_of(store: FileCheckpointer, run_ids: Iterable[str]) -> int:
    """Return how many bytes the checkpoints and journals of some runs take."""
    found = 0
    for run_id in run_ids:
        for path in (store.path(run_id), journal_of(store, run_id)):
            try:
                found += path.stat().st_size
            except FileNotFoundError:
                continue
    return found


def remove_run(store: FileCheckpointer, run_id: str, updated: str, parts: Iterable[str]) -> bool:
    """Delete a run that was found as it was ``updated`` last, with the checkpoints of its ``parts``; tell whether that is so still.

    Raises ``KeyError`` for a run that is gone, ``OSError`` and ``CheckpointSchemaError`` for files that can't be deleted or read.
    """
    if load_run(store, run_id).updated_at != updated:
        return False
    try:
        journal, recorded = Journal.claim(journal_of(store, run_id))
    except RunIsBusy:
        return False
    gone = False
    try:
        # Now nobody can go on with it; before that somebody may have, and ended.
        if recorded is None and store.read(run_id).updated_at != updated:
            return False
        for name in (*parts, run_id):
            store.path(name).unlink(missing_ok=True)
        gone = True
    finally:
        journal.close(remove=gone or recorded is None)  # an empty one is the lock that was just made
    return True
