"""What runs have left behind, as a resume and a listing find it: checkpoints, and the journals of runs that were killed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from agentloom.checkpointing.base import CheckpointData
from agentloom.checkpointing.files import FileCheckpointer
from agentloom.core.redaction import Redaction
from agentloom.core.results import JSON
from agentloom.core.secrets import redacted_in_result
from agentloom.durable.journal import SUFFIX, UnbegunJournal, is_running, read_journal
from agentloom.durable.recorded import Recorded
from agentloom.errors import CheckpointSchemaError
from agentloom.files import in_plain_words

INTERRUPTED = "interrupted"
"""The status of a run whose process ended without a checkpoint."""

RUNNING = "running"
"""The status of a run that a process holds, or somebody looks at just now."""


def last_update(checkpointer: FileCheckpointer, run_id: str) -> str:
    """Return when the checkpoint of a run was written, as it says; nothing without one."""
    try:
        return checkpointer.read(run_id).updated_at
    except (KeyError, CheckpointSchemaError):
        return ""


def goes_on_from(recorded: Recorded, updated: str) -> bool:
    """Tell whether a journal goes on from a checkpoint, given by when that was written; otherwise that was written after it.

    No clock decides: those may be put back.
    """
    after = recorded.header.get("after")
    if recorded.complete:
        return False
    return after == updated if isinstance(after, str) else str(recorded.header.get("begun")) > updated


def _written(path: Path, begun: str) -> str:
    """Return when a journal was last written to, in ISO 8601, UTC."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
    except OSError:
        return begun


def load_run(checkpointer: FileCheckpointer, run_id: str) -> CheckpointData:
    """Return what a run goes on from: its checkpoint, or what the journal holds of a run that was killed later than that.

    Raises ``KeyError`` for an unknown run, ``CheckpointSchemaError`` for files that can't be read.
    """
    try:
        saved: CheckpointData | None = checkpointer.read(run_id)
    except KeyError:
        saved = None
    path = journal_of(checkpointer, run_id)
    try:
        recorded = read_journal(path)
    except (FileNotFoundError, UnbegunJournal):
        return saved or checkpointer.read(run_id)  # a run that has just ended left one meanwhile
    except OSError as error:
        raise CheckpointSchemaError(f"journal `{path}` can't be read: {in_plain_words(error)}") from None
    header = recorded.header
    if saved is not None and not goes_on_from(recorded, saved.updated_at):
        return saved
    running = is_running(path)
    if not running and not path.exists():
        return checkpointer.read(run_id)
    try:
        return seed_of(
            recorded, run_id, RUNNING if running else INTERRUPTED, _written(path, str(header.get("begun", "")))
        )
    except CheckpointSchemaError as error:
        raise CheckpointSchemaError(f"journal `{path}` can't be read: {error}") from None


def seed_of(recorded: Recorded, run_id: str, status: str, updated: str) -> CheckpointData:
    """Return what a run goes on from that left no checkpoint, but what it recorded; ``updated`` is when that was written last.

    Raises ``CheckpointSchemaError`` when that is no journal's.
    """
    header = recorded.header
    completed, since = header.get("completed_steps"), header.get("paused_since")
    done = [path for path, result in recorded.outcomes.items() if "." not in path and result.get("status") == "success"]
    return CheckpointData.from_dict(
        {
            **header,
            "run_id": run_id,
            "status": status,
            "updated_at": updated,
            "completed_steps": [*completed, *done] if isinstance(completed, list) else done,
            "paused_since": {**since, **recorded.paused_since} if isinstance(since, dict) else recorded.paused_since,
            "total_cost_usd": recorded.whole.cost_usd,
            "total_tokens": recorded.whole.tokens,
            "schema_version": 1,
        }
    )


def redacted_in(checkpointer: FileCheckpointer, data: CheckpointData, given: Mapping[str, JSON]) -> list[str]:
    """Return the names of the values that a run goes on with and that are redacted; ``given`` are the state keys that are set anew.

    A name that begins with `steps.` is that of a value that stands nowhere else in the state, and can't be given again.
    """
    results = {**data.step_results, **data.inside}
    if data.status in (INTERRUPTED, RUNNING):
        with suppress(OSError, CheckpointSchemaError):  # gone on meanwhile, which the resume will find out itself
            results.update(read_journal(journal_of(checkpointer, data.run_id)).outcomes)
    return redacted_among(results, data, given)


def redacted_among(
    results: Mapping[str, Mapping[str, JSON]], data: CheckpointData, given: Mapping[str, JSON]
) -> list[str]:
    """Return the names of redacted values as ``redacted_in`` does; ``results`` are those that the run goes on with, by path."""
    found = list(Redaction().secret_keys({**data.state, **given}))
    for path, result in results.items():
        if result.get("status") == "success":
            found += redacted_in_result(path, result, data.workflow_definition, {**data.state, **given})
    return list(dict.fromkeys(found))


def paused_run(checkpointer: FileCheckpointer, run_id: str) -> CheckpointData | None:
    """Return the checkpoint of a run if it waits at a gate and nobody has gone on with it; takes no lock.

    Raises ``KeyError`` for an unknown run, ``CheckpointSchemaError`` for a file that can't be read.
    """
    saved = checkpointer.read(run_id)
    if saved.status != "paused" or saved.paused_step_id is None or saved.part_of is not None:
        return None
    try:
        recorded = read_journal(journal_of(checkpointer, run_id))
    except FileNotFoundError:
        return saved
    except CheckpointSchemaError:
        return None  # its first line is just being written
    return None if goes_on_from(recorded, saved.updated_at) else saved


def journal_of(checkpointer: FileCheckpointer, run_id: str) -> Path:
    """Return where a run's journal is kept."""
    return checkpointer.path(run_id).with_suffix(SUFFIX)
