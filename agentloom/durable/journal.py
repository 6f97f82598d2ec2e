"""The journal of a run: one JSON object a line, appended while the run goes on, so that a kill costs only what was running.

Lines, in the order of what happened (``n`` counts the attempts of an operation over the life of the run, from 1):

- ``{"kind": "run", "version": 1, "run_id", "workflow_name", "workflow_definition", "state", "source", "created_at", …}`` first;
- ``{"kind": "started", "path", "n"}`` before an attempt, ``{"kind": "failed", "path", "n", "cost_usd", "tokens"}`` after one that failed;
- ``{"kind": "outcome", "path", "result", "own_cost_usd"}``: what came of a step, as in a checkpoint, without secrets; and what its last
  attempt cost by itself (nothing for a subworkflow step, whose steps have lines of their own). ``paused_since`` goes with a gate that waits,
  ``cut_short`` with a subworkflow step that failed only because the whole run's money was gone: what finished in it is kept;
- ``{"kind": "end", "status"}``: the run came to an end of its own.

Every line is handed to the system at once, so it survives the process. ``sync`` has the disk write them: it is called when a layer is
done, before anything that depends on it starts. What was free and took no time may wait a moment for that: it costs less than the disk does. A line that was cut off counts as not written. The file is locked by its process, and the
system lets go of the lock when that ends, however it ends.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from agentloom.errors import AgentLoomError, CheckpointSchemaError
from agentloom.files import read_bytes, sync_folder

VERSION = 1
SUFFIX = ".journal"
_TRIES = 5
_PAUSE_SECONDS = 0.02

JSON = Any

WORTH_MS = 50.0
"""A result that took longer than this, in milliseconds, or cost anything, is on the disk before what depends on it starts."""
PATIENCE_S = 0.1
"""How long other results may wait for the disk, in seconds."""


class RunIsBusy(AgentLoomError):
    """Another process is running this run."""


@dataclass(slots=True)
class Recorded:
    """What a journal holds. ``outcomes`` are the latest by path; ``attempts`` the number of the last attempt, ``open`` whether it has no end.

    ``spent`` adds up what finished and failed attempts cost, in US dollars; ``complete`` tells that the run came to an end.
    """

    header: dict[str, JSON]
    outcomes: dict[str, dict[str, JSON]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    open: dict[str, bool] = field(default_factory=dict)
    paused_since: dict[str, str] = field(default_factory=dict)
    parents: dict[str, bool] = field(default_factory=dict)
    """The paths of the subworkflow steps below which there are outcomes, each with true."""
    spent: float = 0.0
    complete: bool = False
    length: int = 0
    """Bytes up to the end of the last whole line."""

    def next_attempt(self, path: str) -> int:
        """Return the number of an operation's next attempt: that of one that was cut off again, else one more than the last."""
        last = self.attempts.get(path, 0)
        return last if self.open.get(path) else last + 1

    def ended_attempts(self) -> dict[str, int]:
        """Return the number of the last attempt that has an end, by path: one that was cut off comes again under its own number."""
        ended = {path: number - 1 if self.open.get(path) else number for path, number in self.attempts.items()}
        return {path: number for path, number in ended.items() if number > 0}

    def forget_below(self, path: str) -> None:
        """Forget the outcomes of the steps below a subworkflow step: its next attempt begins with the first of them."""
        if path in self.parents:  # to look through all outcomes at each failure would cost their square
            for name in [name for name in self.outcomes if name.startswith(f"{path}.")]:
                del self.outcomes[name]


def above(path: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths of the subworkflow steps above a step, each with true."""
    at = path.find(".")
    while at >= 0:
        yield path[:at], True
        at = path.find(".", at + 1)


class Journal:
    """A run's journal, open for writing and locked. ``broken`` keeps the first error; after it nothing more is written."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self.broken: OSError | None = None
        self._handle = handle
        self._dirty = False
        self._due = False
        self._synced = monotonic()

    @classmethod
    def create(cls, path: Path, header: Mapping[str, JSON]) -> Journal:
        """Begin a journal, in the place of one that is there. Raises ``RunIsBusy``, and ``OSError`` as the system does."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o600)
        try:
            _lock(handle, path)
            os.ftruncate(handle, 0)
            journal = cls(path, handle)
            journal._write({"kind": "run", "version": VERSION, **header})
            if journal.broken is not None:
                raise journal.broken
            os.fsync(handle)
            sync_folder(path.parent)
        except BaseException:
            os.close(handle)
            raise
        return journal

    @classmethod
    def resume(cls, path: Path) -> tuple[Journal, Recorded]:
        """Go on with a journal. Raises ``RunIsBusy``, ``FileNotFoundError``, ``CheckpointSchemaError`` for a file that is none."""
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_APPEND)
        try:
            _lock(handle, path)
            recorded = read_journal(path)
            os.ftruncate(handle, recorded.length)  # the rest is a line that was cut off
        except BaseException:
            os.close(handle)
            raise
        return cls(path, handle), recorded

    def started(self, path: str, number: int) -> None:
        """Note that an attempt begins."""
        self._write({"kind": "started", "path": path, "n": number})

    def failed(self, path: str, number: int, cost_usd: float, tokens: int) -> None:
        """Note that an attempt failed, and what it cost."""
        self._write({"kind": "failed", "path": path, "n": number, "cost_usd": cost_usd, "tokens": tokens})

    def outcome(self, path: str, result: Mapping[str, JSON], own_cost_usd: float, **more: JSON) -> None:
        """Note what came of a step, and what its last attempt cost (those before it are noted as failed)."""
        self._write({"kind": "outcome", "path": path, "result": result, "own_cost_usd": own_cost_usd, **more})
        if own_cost_usd or _money(result.get("duration_ms")) > WORTH_MS:
            self._due = True

    def end(self, status: str) -> None:
        """Note how the run ended."""
        self._write({"kind": "end", "status": status})
        self._due = True
        self.sync()

    def sync(self) -> None:
        """Have the disk write what was noted, where something is worth it or has waited long enough."""
        if self._dirty and self.broken is None and (self._due or monotonic() - self._synced > PATIENCE_S):
            self._dirty = self._due = False
            self._synced = monotonic()
            try:
                os.fsync(self._handle)
            except OSError as error:
                self.broken = error

    def close(self, remove: bool = False) -> None:
        """Let go of the journal; ``remove`` its file when a checkpoint holds all of it."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._handle)

    def _write(self, line: Mapping[str, JSON]) -> None:
        if self.broken is not None:
            return
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=str)
        data = text.encode("utf-8", "backslashreplace") + b"\n"  # half of a surrogate pair as `\udc80`, which is JSON
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            self.broken = error
        self._dirty = True


def read_journal(path: Path) -> Recorded:
    """Return what a journal holds, up to the first line that isn't whole.

    Raises ``FileNotFoundError``, and ``CheckpointSchemaError`` for a file that is no journal or one of a newer version.
    """
    data = read_bytes(path, ours=True)
    recorded: Recorded | None = None
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        try:
            line = json.loads(data[at:end])
        except (ValueError, RecursionError):
            break
        if not isinstance(line, dict):
            break
        if recorded is None:
            recorded = Recorded(_header(line, path))
        else:
            _take(line, recorded)
        at = end + 1
        recorded.length = at
    if recorded is None:
        raise CheckpointSchemaError(f"journal `{path}` can't be read: it has no first line")
    return recorded


def _header(line: dict[str, JSON], path: Path) -> dict[str, JSON]:
    version = line.get("version")
    if line.get("kind") != "run" or not isinstance(version, int):
        raise CheckpointSchemaError(f"journal `{path}` can't be read: it is no journal")
    if version > VERSION:
        raise CheckpointSchemaError(
            f"journal `{path}` can't be read: it was written by a newer agentloom (version {version}, this one reads {VERSION})"
        )
    return line


def _take(line: dict[str, JSON], recorded: Recorded) -> None:
    kind, path, number = line.get("kind"), line.get("path"), line.get("n")
    if kind == "end":
        recorded.complete = True
    elif not isinstance(path, str):
        return
    elif kind == "started" and isinstance(number, int):
        recorded.attempts[path], recorded.open[path] = number, True
    elif kind == "failed" and isinstance(number, int):
        recorded.attempts[path], recorded.open[path] = number, False
        recorded.spent += _money(line.get("cost_usd"))
        recorded.forget_below(path)
    elif kind == "outcome" and isinstance(result := line.get("result"), dict):
        recorded.open[path] = False
        recorded.outcomes[path] = result
        recorded.parents.update(above(path))
        recorded.spent += _money(line.get("own_cost_usd"))
        if result.get("status") == "failed" and not line.get("cut_short"):
            recorded.forget_below(path)
        recorded.paused_since.pop(path, None)
        if isinstance(since := line.get("paused_since"), str):
            recorded.paused_since[path] = since


def _money(cost: JSON) -> float:
    return float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e300 else 0.0


def _lock(handle: int, path: Path, tries: int = _TRIES) -> None:
    """Lock a file for this process; the system lets go when the process ends. Raises ``RunIsBusy``."""
    busy = RunIsBusy(f"run `{path.name.removesuffix(SUFFIX)}` is running in another process")
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            for left in reversed(range(tries)):  # who lists the runs holds each lock for a moment
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not left:
                        raise
                    time.sleep(_PAUSE_SECONDS)
        there = os.stat(path)
    except OSError:
        raise busy from None
    here = os.fstat(handle)
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):  # its owner has just finished, and removed it
        raise busy


def is_running(path: Path) -> bool:
    """Tell whether a process holds a journal."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _lock(handle, path, tries=1)
    except RunIsBusy:
        return True
    finally:
        os.close(handle)
    return False
