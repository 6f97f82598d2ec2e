"""Where runs are kept, and which one is meant: by its id, by the beginning of it, or as the latest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentloom.errors import CheckpointSchemaError, UsageError, WorkflowError
from agentloom.similar import closest

if TYPE_CHECKING:
    from agentloom.checkpointing.base import CheckpointData
    from agentloom.checkpointing.files import FileCheckpointer

LATEST = "latest"


def checkpointer_of(folder: str | None) -> FileCheckpointer:
    """Return the store in a folder; without one, in that of the environment, or the usual one."""
    from agentloom.checkpointing.files import DEFAULT_FOLDER, ENVIRONMENT, FileCheckpointer

    return FileCheckpointer(Path(folder or os.environ.get(ENVIRONMENT, "").strip() or DEFAULT_FOLDER))


def new_checkpointer(folder: str | None, run_id: str | None) -> FileCheckpointer:
    """Return the store for a new run. Raises ``UsageError`` when it holds one of that id: its checkpoint, or its journal."""
    from agentloom.core.keeping import journal_of

    store = checkpointer_of(folder)
    if run_id is not None and (store.path(run_id).exists() or journal_of(store, run_id).exists()):
        raise UsageError(f"there is a run `{run_id}` in `{store.folder}` already; take another `--run-id`")
    return store


def every_run(store: FileCheckpointer) -> Iterator[CheckpointData | CheckpointSchemaError]:
    """Yield what a store holds, in the order of the ids: runs, the checkpoints of their subworkflows, and what is wrong with files that can't be read."""
    from agentloom.core.keeping import load_run
    from agentloom.durable.journal import SUFFIX

    try:
        names = os.listdir(store.folder)
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise WorkflowError(f"`{store.folder}` can't be read: {error.strerror}") from None
    for run_id in sorted({*store.run_ids(), *(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))}):
        try:
            yield load_run(store, run_id)
        except KeyError:
            continue
        except CheckpointSchemaError as error:
            yield error


def all_runs(store: FileCheckpointer) -> tuple[list[CheckpointData], list[str]]:
    """Return every run of a store, the latest first, and what is wrong with files that can't be read.

    The checkpoints of subworkflows are parts of runs, and no runs.
    """
    found: list[CheckpointData] = []
    problems: list[str] = []
    for run in every_run(store):
        if isinstance(run, CheckpointSchemaError):
            problems.append(str(run))
        elif run.part_of is None:
            found.append(run)
    found.sort(key=lambda data: (data.updated_at, data.run_id), reverse=True)
    return found, problems


def find_run(store: FileCheckpointer, word: str) -> CheckpointData:
    """Return the run that a word names. Raises ``WorkflowError``, which says which runs there are."""
    from agentloom.core.keeping import load_run

    refuse_nothing(word)
    try:
        return load_run(store, word)
    except KeyError:
        pass
    runs = all_runs(store)[0]
    if word == LATEST:
        if not runs:
            raise WorkflowError(f"there is no run in `{store.folder}`; `agentloom run FILE --checkpoint` keeps one")
        return runs[0]
    fitting = [run for run in runs if run.run_id.startswith(word)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(f"`{run.run_id}`" for run in fitting[:5])
        raise WorkflowError(f"`{word}` begins the ids of {len(fitting)} runs: {names}; write more of it")
    near = closest(word, [run.run_id for run in runs])
    cure = f"did you mean `{near}`?" if near else "`agentloom runs` lists them"
    raise WorkflowError(f"there is no run `{word}` in `{store.folder}`; {cure}")


def refuse_nothing(word: str) -> None:
    """Raise ``WorkflowError`` for an empty word: every id begins with it, and a variable of a script that isn't set means no run."""
    if not word.strip():
        raise WorkflowError("the run's id is empty; give an id, the beginning of one, or `latest`")
