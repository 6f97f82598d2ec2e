"""What a segment writes down, on its way into the durable stream: by one thread, everything that waits in one go."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from datetime import datetime
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from dbos import DBOS
from dbos import error as dbos_error

from agentloom.checkpointing.base import BaseCheckpointer, CheckpointData
from agentloom.core.events import StepDelta, utc_now
from agentloom.core.keeping.host import Host
from agentloom.core.keeping.keeper import Keeper
from agentloom.core.references import Hidden
from agentloom.core.results import JSON
from agentloom.durable.dbos.sessions import is_away
from agentloom.durable.journal import VERSION, Journal
from agentloom.durable.recorded import Recorded

log = logging.getLogger(__name__)

STREAM = "events"
"""The key of the stream. Its values are `{"lines": […], "events": […], "n": "…"}`: lines of the journal, in JSON, events, and a number."""

PATIENCE_S = 0.05
"""How long what nothing depends on may wait for company, in seconds: a write costs milliseconds."""

LAG_S = 2.0
"""How long a write may last, in seconds, while further steps of a layer begin: they would have to come again on another worker."""

PAUSE_S = 0.5
"""After what time a database that is away is tried again, in seconds."""

LAST_S = 5.0
"""How long a feed that is to hurry waits for the database, in seconds."""

AWAY = "the database is away"


class Feed:
    """Writes to the stream of one segment. ``context`` is that of the DBOS step which the segment lives in: it proves who owns the segment.
    A database that is away is waited for.

       ``broken`` is why nothing is written any more, ``lost`` tells that the segment isn't ours any more: it was cancelled, or taken over.
       ``on_lost`` is called then, in the thread that writes.
    """

    def __init__(self, context: Context, on_lost: Callable[[], None] = lambda: None) -> None:
        self.broken: OSError | None = None
        self.lost = False
        self.hidden = Hidden()
        """What nothing of is written."""
        self._context = context
        self._on_lost = on_lost
        self._lines: list[str] = []
        self._events: list[Mapping[str, JSON]] = []
        self._urgent = False
        self._is_closed = self._hurries = self._is_done = False
        self._change = threading.Condition()
        self._put = 0
        self._written = 0
        self._marked = 0
        self._waits_since = inf
        self._life = os.urandom(4).hex()
        self._thread = threading.Thread(target=self._write_all, name="agentloom-feed", daemon=True)
        self._thread.start()

    def line(self, line: str, urgent: bool) -> None:
        """Take a line of the journal; one that is not ``urgent`` may wait a moment."""
        if self.hidden:
            line = json.dumps(self.hidden.value(json.loads(line)), ensure_ascii=False)
        with self._change:
            self._lines.append(line)
            self._put += 1
            self._urgent = self._urgent or urgent
            self._change.notify_all()

    def event(self, event: Mapping[str, JSON]) -> None:
        """Take an event."""
        if self.hidden:
            if event.get("event") == StepDelta.name:
                return  # a value may be cut in two there
            event = self.hidden.value(event)
        with self._change:
            self._events.append(event)
            self._put += 1
            self._change.notify_all()

    def mark(self) -> None:
        """Take note that what comes next depends on everything that was taken so far."""
        with self._change:
            self._marked = self._put
            self._urgent = True
            self._change.notify_all()

    def is_safe(self) -> bool:
        """Tell whether what was marked is written, or can't be, and the rest hasn't waited for long."""
        return self.broken is not None or (self._written >= self._marked and monotonic() - self._waits_since < LAG_S)

    def flush(self) -> None:
        """Wait until everything that was taken is written, or can't be."""
        with self._change:
            upto = self._put
            self._urgent = True
            self._change.notify_all()
            self._wait(lambda: self._written >= upto or self.broken is not None)

    def hurry(self) -> None:
        """Wait no longer for a database that is away."""
        with self._change:
            self._hurries = True
            self._change.notify_all()

    def close(self) -> None:
        """Write the rest, and end."""
        with self._change:
            self._is_closed = self._urgent = True
            self._change.notify_all()
            self._wait(lambda: self._is_done)

    def _wait(self, is_done: Callable[[], bool]) -> None:
        self._change.wait_for(lambda: is_done() or self._hurries)
        if not self._change.wait_for(is_done, LAST_S):
            self.broken = self.broken or OSError(AWAY)

    def _write_all(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._lines or self._events or self._is_closed)
                if not self._urgent:
                    self._change.wait_for(lambda: self._urgent, PATIENCE_S)
                lines, events, upto = self._lines, self._events, self._put
                self._waits_since = monotonic()
                self._lines, self._events, self._urgent = [], [], self._is_closed
                if not lines and not events:
                    if self._is_closed:
                        self._is_done = True
                        self._change.notify_all()
                        return
                    continue
            value = {"lines": lines, "events": events, "n": f"{self._life}-{upto}"}
            told = False
            while self.broken is None and (error := self._write(value)) is not None:
                if not told:
                    log.warning("The database can't be written, the run waits for it: %s", error)
                told = True
                with self._change:
                    if self._change.wait_for(lambda: self._hurries, PAUSE_S):
                        self.broken = OSError(f"{AWAY}: {error}")
            with self._change:
                self._written, self._waits_since = upto, inf
                self._change.notify_all()

    def _write(self, value: Mapping[str, Any]) -> str | None:
        """Write once; return what the database says that is away."""
        try:
            self._context.run(DBOS.write_stream, STREAM, value)
        except dbos_error.DBOSWorkflowConflictIDError:
            self.broken, self.lost = OSError("another worker has taken the run over, or it was cancelled"), True
            self._on_lost()
        except Exception as error:
            log.debug("The stream can't be written", exc_info=error)
            reason = " ".join(str(getattr(error, "orig", error)).split())[:200]
            if is_away(error):
                return reason
            self.broken = OSError(f"the database refuses it: {reason}")
        return None


class StreamJournal(Journal):
    """A run's journal in the stream of its segment."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(Path(STREAM), -1)
        self._feed = feed

    @property
    def broken(self) -> OSError | None:
        """Why nothing can be written any more."""
        return self._feed.broken

    @broken.setter
    def broken(self, error: OSError | None) -> None:
        pass

    def begin(self, header: Mapping[str, JSON]) -> None:
        """Write the first line."""
        self._write({"kind": "run", "version": VERSION, **header})

    def started(self, path: str, number: int) -> None:
        """Note that an attempt begins. If that is lost, the attempt comes again under the same number: nothing waits for it."""
        self._feed.line(json.dumps({"kind": "started", "path": path, "n": number}), urgent=False)

    def _put(self, text: str) -> None:
        self._feed.line(text, urgent=True)

    def sync(self) -> None:
        """Have the database keep what was noted before another step begins; see ``Feed.is_safe``."""
        self._feed.mark()

    @property
    def is_gone(self) -> bool:
        """Nobody deletes the stream of a segment that is running."""
        return False

    def close(self, remove: bool = False) -> None:
        """Let go; the feed stays open for the last events."""
        self._feed.flush()


class StreamHost(Host):
    """Keeps a run in a feed. ``recorded`` is what earlier lives of the run left that came to no end; the run goes on from there.

    ``clock`` tells the time, in UTC: one for all workers, whose own may be wrong. ``sources`` says what the files are called, by what they
    are called in this process.
    """

    def __init__(
        self,
        feed: Feed,
        recorded: Recorded | None,
        clock: Callable[[], datetime] = utc_now,
        sources: Mapping[str | None, str | None] | None = None,
    ) -> None:
        self._feed = feed
        self._recorded = recorded
        self._clock = clock
        self._sources = sources or {}

    def open(
        self,
        run_id: str,
        checkpointer: BaseCheckpointer | None,
        seed: CheckpointData | None,
        header: Mapping[str, JSON],
    ) -> Keeper:
        """Begin the journal, or go on with it."""
        journal, recorded = StreamJournal(self._feed), self._recorded
        now = self._clock().isoformat()
        header = {**header, "source": self._sources.get(header["source"], header["source"])}
        if recorded is None:
            if seed is None:
                header = {**header, "created_at": now}
            journal.begin({"begun": now, **header})
        else:
            changed: dict[str, Any] = {name: header[name] for name in ("workflow_definition", "state")}
            if header["decisions"]:
                changed["decisions"] = header["decisions"]
            same = {name for name, value in changed.items() if recorded.header.get(name) == value}
            journal.resumed({"begun": now, **{key: changed[key] for key in changed if key not in same}})
        return Keeper(run_id, checkpointer, seed, recorded, journal, self._clock)


class Kept(BaseCheckpointer):
    """The checkpoint that a segment ends with; it becomes the segment's output. ``sources`` as for ``StreamHost``."""

    def __init__(self, sources: Mapping[str | None, str | None] | None = None) -> None:
        self.data: CheckpointData | None = None
        self._sources = sources or {}

    async def save(self, data: CheckpointData) -> None:
        """Keep the run's; those of child workflows are for reading only, and their steps are in the journal."""
        if data.part_of is None:
            data.source = self._sources.get(data.source, data.source)
            self.data = data

    async def load(self, run_id: str) -> CheckpointData:
        """Return it."""
        if self.data is None or self.data.run_id != run_id:
            raise KeyError(run_id)
        return self.data

    async def list_runs(self) -> list[CheckpointData]:
        """Return it, if there is one."""
        return [] if self.data is None else [self.data]

    async def delete(self, run_id: str) -> None:
        """Let it go."""
        await self.load(run_id)
        self.data = None


class Once:
    """Tells of each value of a stream whether it is new. One whose writing was not confirmed, since the connection broke, is written again."""

    def __init__(self) -> None:
        self._last: object = None

    def __call__(self, value: Mapping[str, JSON]) -> bool:
        """Tell whether a value isn't the one before it once more."""
        number = value.get("n")
        is_new = number is None or number != self._last
        self._last = number
        return is_new


def recorded_of(lines: Iterable[str]) -> Recorded | None:
    """Return what the lines of a journal hold; None without any."""
    found: Recorded | None = None
    for text in lines:
        line = json.loads(text)
        if found is None:
            if line.get("kind") != "run":
                continue
            found = Recorded.begun(line)
        else:
            found.take(line)
    return found
