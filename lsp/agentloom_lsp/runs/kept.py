"""Runs on the disk: what checkpoints and journals tell, remembered until their files change. For the worker's thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(".agentloom") / "checkpoints"
ENVIRONMENT = "AGENTLOOM_CHECKPOINT_DIR"
MOST_READ = 200
"""Runs of one folder that are looked into, the latest first."""
GOES_ON = ("failed", "timeout", "budget_exceeded", "cancelled", "interrupted")
"""How a run ended that can be resumed as it is. One that is paused needs a decision."""


class KeptRun(NamedTuple):
    """What is told of a kept run in a list. ``folder`` holds its checkpoint, or is the address of its database, without a password.

    ``source`` is the file that it came from; times are ISO 8601, UTC; ``cost`` in US dollars.

    ``resumable`` tells that a resume has something left to do.
    """

    run_id: str
    workflow: str
    status: str
    folder: Path | str
    source: str | None
    created: str
    updated: str
    cost: float
    paused_step: str | None
    steps_done: int
    steps: int
    resumable: bool

    def to_json(self) -> dict[str, Any]:
        """Return the run as the entry of a list, in the protocol's manner."""
        return {
            "runId": self.run_id,
            "workflow": self.workflow,
            "status": self.status,
            "folder": str(self.folder),
            "file": self.source,
            "created": self.created,
            "updated": self.updated,
            "costUsd": self.cost,
            "pausedStep": self.paused_step,
            "stepsDone": self.steps_done,
            "steps": self.steps,
            "resumable": self.resumable,
        }


def latest_first(*lists: Iterable[KeptRun]) -> list[KeptRun]:
    """Return runs of several places as one list."""
    return sorted((run for some in lists for run in some), key=lambda run: (run.updated, run.run_id), reverse=True)


class _Known(NamedTuple):
    stamp: Any
    run: KeptRun | None
    problem: str | None


class KeptRuns:
    """Looks into folders of checkpoints. ``breathe`` is called between two files."""

    def __init__(self, breathe: Callable[[], None]) -> None:
        self._breathe = breathe
        self._known: dict[Path, dict[str, _Known]] = {}

    def in_folders(
        self, folders: Iterable[Path], most: int = MOST_READ, without: Collection[str] = ()
    ) -> tuple[list[KeptRun], list[str]]:
        """Return the runs of some folders, the latest first, and what is wrong with files that can't be read.

        ``without`` are the ids of runs that are left out: their journals grow while they are read.
        """
        found: list[KeptRun] = []
        problems: list[str] = []
        for folder in dict.fromkeys(folders):
            for known in self._look(folder, most, without).values():
                if known.run is not None:
                    found.append(known.run)
                elif known.problem is not None:
                    problems.append(known.problem)
        found.sort(key=lambda run: (run.updated, run.run_id), reverse=True)
        return found[:most], problems

    def details(self, folder: Path, run_id: str) -> dict[str, Any]:
        """Return all that is kept of a run, without secrets. Raises ``KeyError`` for an unknown one, ``ValueError`` for unreadable files."""
        from agentloom.checkpointing.files import FileCheckpointer
        from agentloom.core.keeping import load_run
        from agentloom.errors import CheckpointSchemaError

        try:
            return load_run(FileCheckpointer(folder), run_id).to_dict()
        except CheckpointSchemaError as error:
            raise ValueError(str(error)) from None

    def _look(self, folder: Path, most: int, without: Collection[str]) -> Mapping[str, _Known]:
        names: dict[str, list[tuple[str, int, int]]] = {}
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    stem, dot, suffix = entry.name.rpartition(".")
                    if dot and suffix in ("json", "journal") and stem not in without:
                        found = entry.stat()
                        names.setdefault(stem, []).append((suffix, found.st_mtime_ns, found.st_size))
        except OSError:
            self._known.pop(folder, None)
            return {}
        latest = sorted(names, key=lambda name: max(stamp[1] for stamp in names[name]), reverse=True)[:most]
        before = self._known.get(folder, {})
        known: dict[str, _Known] = {}
        for name in latest:
            stamp = tuple(sorted(names[name]))
            old = before.get(name)
            # Whether a journal's process still runs can't be seen from its file.
            if old is None or old.stamp != stamp or any(suffix == "journal" for suffix, *_ in stamp):
                self._breathe()
                old = _read(folder, name, stamp)
            known[name] = old
        self._known[folder] = known
        return known


def _read(folder: Path, name: str, stamp: Any) -> _Known:
    from agentloom.checkpointing.files import FileCheckpointer
    from agentloom.core.keeping import load_run
    from agentloom.errors import CheckpointSchemaError

    try:
        data = load_run(FileCheckpointer(folder), name)
    except KeyError:
        return _Known(stamp, None, None)
    except CheckpointSchemaError as error:
        return _Known(stamp, None, str(error))
    if data.part_of is not None:
        return _Known(stamp, None, None)
    steps = data.workflow_definition.get("steps")
    count = len(steps) if isinstance(steps, list) else 0
    ended = {*data.step_results, *data.completed_steps}
    left = data.status == "success" and len(ended) < count  # it was told to go up to a step only
    run = KeptRun(
        data.run_id,
        data.workflow_name,
        data.status,
        folder,
        data.source,
        data.created_at,
        data.updated_at,
        data.total_cost_usd,
        data.paused_step_id,
        len(set(data.completed_steps)),
        count,
        left or data.status in GOES_ON,
    )
    return _Known(stamp, run, None)
