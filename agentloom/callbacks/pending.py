"""The runs of a folder that wait at a gate, found again cheaply: a checkpoint is read once, and again only when it has changed."""

from __future__ import annotations

import logging
import os
from typing import NamedTuple

from agentloom.checkpointing.files import SUFFIX, FileCheckpointer, is_run_id
from agentloom.core.keeping import paused_run
from agentloom.core.keeping.waiting import Paused, paused_of
from agentloom.durable.journal import SUFFIX as JOURNAL
from agentloom.errors import CheckpointSchemaError

MOST_TOLD = 1000

log = logging.getLogger(__name__)


class Stamp(NamedTuple):
    """What tells that a file is still the one that was read."""

    inode: int
    changed: int
    size: int


class PausedRuns:
    """The waiting runs of one store. Not for several threads at once."""

    def __init__(self, store: FileCheckpointer) -> None:
        self.store = store
        self._known: dict[str, tuple[Stamp, Paused | None]] = {}
        self._told: set[str] = set()

    def scan(self) -> list[Paused]:
        """Return the runs that wait, the one that waits longest first."""
        seen: dict[str, Stamp] = {}
        journals: set[str] = set()
        try:
            with os.scandir(self.store.folder) as entries:
                for entry in entries:
                    if entry.name.endswith(JOURNAL):
                        journals.add(entry.name.removesuffix(JOURNAL))
                    elif entry.name.endswith(SUFFIX) and is_run_id(entry.name):
                        stamp = _stamp(entry)
                        if stamp is not None:
                            seen[entry.name.removesuffix(SUFFIX)] = stamp
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn(f"`{self.store.folder}` can't be read: {error.strerror}")
            return []
        for gone in self._known.keys() - seen.keys():
            del self._known[gone]
        found: list[Paused] = []
        for run_id, stamp in seen.items():
            if run_id in journals:  # somebody goes on with it, or did
                paused = self._read(run_id)
            else:
                known = self._known.get(run_id)
                if known is None or known[0] != stamp:
                    known = self._known[run_id] = (stamp, self._read(run_id))
                paused = known[1]
            if paused is not None:
                found.append(paused)
        return sorted(found, key=lambda run: (run.updated_at, run.run_id))

    def find(self, run_id: str) -> Paused | None:
        """Return a run as it is now, if it waits. Raises ``KeyError``, ``CheckpointSchemaError``."""
        try:
            data = paused_run(self.store, run_id)
            return None if data is None else paused_of(data)
        except (KeyError, CheckpointSchemaError):
            if not is_run_id(run_id) or not self.store.path(run_id).exists():
                raise KeyError(run_id) from None
            raise
        except Exception as error:  # a file that somebody wrote by hand must not end the server
            raise CheckpointSchemaError(
                f"checkpoint `{self.store.path(run_id)}` can't be read: {type(error).__name__}: {error}"
            ) from error

    def _read(self, run_id: str) -> Paused | None:
        try:
            return self.find(run_id)
        except KeyError:
            return None
        except CheckpointSchemaError as error:
            self._warn(str(error))
            return None

    def _warn(self, message: str) -> None:
        """Say something once: it is found again at every look."""
        if message not in self._told:
            if len(self._told) > MOST_TOLD:
                self._told.clear()
            self._told.add(message)
            log.warning("%s", message)


def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
    try:
        found = entry.stat()
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_mtime_ns, found.st_size)
