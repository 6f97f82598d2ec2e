"""The runs of a folder that wait at a gate, found again cheaply: a checkpoint is read once, and again only when it has changed."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from agentloom.checkpointing.base import CheckpointData
from agentloom.checkpointing.files import SUFFIX, FileCheckpointer, is_run_id
from agentloom.core.definition import definition_below
from agentloom.core.events import cut
from agentloom.core.keeping import paused_run
from agentloom.durable.journal import SUFFIX as JOURNAL
from agentloom.errors import CheckpointSchemaError

MOST_OUTPUTS = 10
OUTPUT_CHARACTERS = 2000
"""How much is kept of what the steps gave: the last of them, and the beginnings of long ones."""

MOST_TOLD = 1000

log = logging.getLogger(__name__)


class Paused(NamedTuple):
    """A run that waits. ``step_id`` is the gate's path, ``since`` and ``due`` when it began to wait and when its time is over, ``then`` what
    becomes of it.

    ``deadline`` is the earliest ``due`` of all its gates. ``finished`` are the outputs of its last finished steps, without secrets, for people.
    """

    run_id: str
    workflow_name: str
    step_id: str
    updated_at: str
    since: datetime | None
    due: datetime | None
    then: str
    deadline: datetime | None
    finished: tuple[tuple[str, str], ...]


THEN: Mapping[Any, str] = {"approve": "is approved", "reject": "is rejected"}


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


def paused_of(data: CheckpointData) -> Paused:
    """Return what is known of a run that waits."""
    dues: dict[str, datetime] = {}
    for path, since in data.paused_since.items():
        seconds = _gate(data.workflow_definition, path).get("timeout_seconds")
        began = _time(since)
        if began is not None and isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0:
            dues[path] = began + timedelta(seconds=min(seconds, 10**9))
    gate = data.paused_step_id or ""
    return Paused(
        data.run_id,
        data.workflow_name,
        gate,
        data.updated_at,
        _time(data.paused_since.get(gate, "")),
        dues.get(gate),
        THEN.get(_gate(data.workflow_definition, gate).get("on_timeout"), "fails"),
        min(dues.values(), default=None),
        tuple(_finished(data))[-MOST_OUTPUTS:],
    )


def _finished(data: CheckpointData) -> Iterator[tuple[str, str]]:
    for results in (data.step_results, data.inside):
        for name, result in results.items():
            if result.get("status") == "success":
                yield name, _short(result.get("output"))


def _short(value: Any) -> str:
    shown = cut(value, OUTPUT_CHARACTERS)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, indent=2)


def _gate(definition: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    above, _, name = path.rpartition(".")
    within = definition_below(definition, above) if above else definition
    return next((step for step in within.get("steps") or () if step.get("id") == name), {})


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
    try:
        found = entry.stat()
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_mtime_ns, found.st_size)
