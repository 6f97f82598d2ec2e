"""The journal of a run: one JSON object a line, appended while the run goes on, so that a kill costs only what was running.

Lines, in the order of what happened (``n`` counts the attempts of an operation over the life of the run, from 1):

- ``{"kind": "run", "version": 1, "run_id", "workflow_name", "workflow_definition", "state", "source", "created_at", …}`` first;
- ``{"kind": "resumed", …}``: the run goes on in this journal, with what is different now from the first line;
- ``{"kind": "started", "path", "n"}`` before an attempt, ``{"kind": "failed", "path", "n", "cost_usd", "tokens"}`` after one that failed;
- ``{"kind": "spent", "path", "n", "cost_usd", "tokens"}`` after each call inside an attempt: it counts if the attempt never ends. What an
  attempt that ended cost in all stands in its ``failed`` or ``outcome``;
- ``{"kind": "outcome", "path", "result", "own_cost_usd", "own_tokens"}``: what came of a step, as in a checkpoint, without secrets; and what
  its last attempt cost by itself (nothing for a subworkflow step, whose steps have lines of their own). ``paused_since`` goes with a gate that
  waits, ``cut_short`` with a subworkflow step that failed only because the whole run's money was gone: what finished in it is kept;
- ``{"kind": "end", "status"}``: the run came to an end of its own.

Every line is handed to the system at once, so it survives the process. ``sync`` has the disk write them: it is called when a layer is
done, before anything that depends on it starts. What was free and took no time may wait a moment for that: it costs less than the disk does. A line that was cut off counts as not written. The file is locked by its process, and the
system lets go of the lock when that ends, however it ends.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from agentloom.durable.recorded import Recorded, Spend
from agentloom.errors import AgentLoomError, CheckpointSchemaError
from agentloom.files import no_number, read_bytes, sync_folder

VERSION = 1
SUFFIX = ".journal"
_TRIES = 5
_PAUSE_SECONDS = 0.02
_TRIES_OF_ORPHANS = 100

JSON = Any

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode

WORTH_MS = 50.0
"""A result that took longer than this, in milliseconds, or cost anything, is on the disk before what depends on it starts."""
PATIENCE_S = 0.1
"""How long other results may wait for the disk, in seconds."""


class RunIsBusy(AgentLoomError):
    """Another process is running this run."""


class UnbegunJournal(CheckpointSchemaError):
    """A journal without a whole first line: nothing has happened in that run yet."""


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
        journal, _ = cls.claim(path)
        journal.begin(header)
        return journal

    @classmethod
    def claim(cls, path: Path) -> tuple[Journal, Recorded | None]:
        """Lock a run's journal, and return it with what it holds, if it holds anything. ``begin`` or ``close`` it.

        Raises ``RunIsBusy``, ``CheckpointSchemaError`` for a file that is none of ours to begin anew, and ``OSError`` as the system does.
        """
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o600)
        try:
            _lock(handle, path)
            try:
                recorded: Recorded | None = read_journal(path)
            except UnbegunJournal:
                recorded = None
        except BaseException:
            os.close(handle)
            raise
        return cls(path, handle), recorded

    def begin(self, header: Mapping[str, JSON]) -> None:
        """Write the first line, in the place of everything that is there. Raises ``OSError``; the journal is closed then."""
        try:
            os.ftruncate(self._handle, 0)
            self._write({"kind": "run", "version": VERSION, "pid": os.getpid(), **header})
            if self.broken is not None:
                raise self.broken
            os.fsync(self._handle)
            sync_folder(self.path.parent)
        except BaseException:
            os.close(self._handle)
            raise

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
        self._put(f'{{"kind":"started","path":{_ENCODE(path)},"n":{number}}}')  # the commonest line, for each attempt

    def spent(self, path: str, number: int, spend: Spend) -> None:
        """Note what a call cost, inside an attempt that goes on."""
        self._write({"kind": "spent", "path": path, "n": number, "cost_usd": spend.cost_usd, "tokens": spend.tokens})

    def failed(self, path: str, number: int, spend: Spend) -> None:
        """Note that an attempt failed, and what it cost in all."""
        self._write({"kind": "failed", "path": path, "n": number, "cost_usd": spend.cost_usd, "tokens": spend.tokens})

    def outcome(self, path: str, result: Mapping[str, JSON], own: Spend, **more: JSON) -> None:
        """Note what came of a step, and what its last attempt cost in all (those before it are noted as failed)."""
        line = {
            "kind": "outcome",
            "path": path,
            "result": result,
            "own_cost_usd": own.cost_usd,
            "own_tokens": own.tokens,
        }
        self._write({**line, **more})
        if own.cost_usd or result.get("duration_ms", 0.0) > WORTH_MS:
            self._due = True

    def resumed(self, changes: Mapping[str, JSON]) -> None:
        """Note that the run goes on in this journal, and what is different from its first line."""
        self._write({"kind": "resumed", "pid": os.getpid(), **changes})

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

    @property
    def is_gone(self) -> bool:
        """Whether somebody has deleted the file meanwhile: what is written can't be found any more."""
        return os.fstat(self._handle).st_nlink == 0

    def close(self, remove: bool = False) -> None:
        """Let go of the journal; ``remove`` its file when a checkpoint holds all of it."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._handle)

    def _write(self, line: Mapping[str, JSON]) -> None:
        if self.broken is None:
            self._put(_ENCODE(line))

    def _put(self, text: str) -> None:
        if self.broken is not None:
            return
        data = text.encode("utf-8", "backslashreplace") + b"\n"  # half of a surrogate pair as `\udc80`, which is JSON
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            self.broken = error
        self._dirty = True


def read_journal(path: Path) -> Recorded:
    """Return what a journal holds, up to the first line that isn't whole.

    Raises ``FileNotFoundError``, ``UnbegunJournal``, and ``CheckpointSchemaError`` for a file that is no journal or one of a newer version.
    """
    data = read_bytes(path, ours=True)
    recorded: Recorded | None = None
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        try:
            line = json.loads(data[at:end], parse_constant=no_number)
        except (ValueError, RecursionError):
            break
        if not isinstance(line, dict):
            break
        if recorded is None:
            recorded = Recorded.begun(_header(line, path))
        else:
            recorded.take(line)
        at = end + 1
        recorded.length = at
    more = data.find(b"\n", at) >= 0
    if recorded is None:
        if more:
            raise CheckpointSchemaError(f"journal `{path}` can't be read: its first line is damaged")
        raise UnbegunJournal(f"journal `{path}` can't be read: it has no first line")
    recorded.is_damaged = more
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


def _lock(handle: int, path: Path, tries: int = _TRIES) -> None:
    """Lock a file for this process; the system lets go when the process ends. Raises ``RunIsBusy``."""
    busy = RunIsBusy(f"run `{path.name.removesuffix(SUFFIX)}` is running in another process")
    try:
        while not _locked(handle):
            tries -= 1  # who lists the runs holds each lock for a moment
            if (tries == 0 and not _owner_is_gone(path)) or tries < -_TRIES_OF_ORPHANS:
                raise busy
            time.sleep(_PAUSE_SECONDS)
        there = os.stat(path)
    except OSError:
        raise busy from None
    here = os.fstat(handle)
    if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):  # its owner has just finished, and removed it
        raise busy


def _locked(handle: int) -> bool:
    """Try to lock a file, and tell whether that worked."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner_is_gone(path: Path) -> bool:
    """Tell whether the process that wrote a journal is gone, though its lock is held.

    A process that it was just starting has a copy of everything until it becomes the program that it is to be; then it lets go.
    """
    try:
        owner = read_journal(path).header.get("pid")
    except (OSError, CheckpointSchemaError):
        return False
    if os.name == "nt" or not isinstance(owner, int) or isinstance(owner, bool) or owner <= 0:
        return False
    try:
        os.kill(owner, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


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
