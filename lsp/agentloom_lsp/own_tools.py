"""The tools of projects, learned away from the loop and from the thread that checks; known again only after their files changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agentloom.analysis.settings import Settings
from agentloom.tools.learning import Learned, learn, stamps

logger = logging.getLogger(__name__)

NONE = Learned()
"""What is known of a project without tools of its own."""

_Key = tuple[str, ...]


class _Entry:
    """What is known of the modules of one settings file. ``learned`` is None until they were looked at for the first time."""

    __slots__ = ("again", "folder", "learned", "modules", "running", "stamps")

    def __init__(self, settings: Settings) -> None:
        self.folder: Path | None = settings.folder
        self.modules = settings.tools
        self.learned: Learned | None = None
        self.stamps: object = None
        self.running = self.again = False


class OwnTools:
    """Learns tools, each project's in a thread and a process of their own. For all threads.

    ``told`` is called, in some thread, when more or something else is known than before.
    """

    def __init__(self) -> None:
        self._entries: dict[_Key, _Entry] = {}
        self._lock = threading.Lock()
        self.told: Callable[[], None] = lambda: None
        self._enabled = True

    def enable(self, enabled: bool) -> None:
        """Say whether anything is learned from now on."""
        self._enabled, before = enabled, self._enabled
        if enabled and not before:
            self.look()

    def of(self, settings: Settings) -> Learned | None:
        """Return what is known of a project's tools; None while they are being looked at. The same object until something changes."""
        if not settings.tools:
            return NONE
        key = (str(settings.folder), *settings.tools)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry(settings)
                self._start(entry)
            return entry.learned

    def files(self) -> frozenset[Path]:
        """Return the files that tools were learned from, or would have been."""
        with self._lock:
            found = [entry.learned.files for entry in self._entries.values() if entry.learned is not None]
        return frozenset(Path(file) for files in found for file in files)

    def look(self) -> None:
        """Learn again what may be known wrongly by now."""
        with self._lock:
            for entry in self._entries.values():
                if entry.running:
                    entry.again = True
                elif entry.learned is None or stamps(entry.learned.files) != entry.stamps:
                    self._start(entry)

    def _start(self, entry: _Entry) -> None:
        if not self._enabled:
            return
        entry.running, entry.again = True, False
        threading.Thread(target=self._learn, args=(entry,), name="agentloom-tools", daemon=True).start()

    def _learn(self, entry: _Entry) -> None:
        try:
            found: Learned | None = learn(entry.modules, entry.folder)
        except Exception:
            logger.exception("the tools in %s could not be learned", ", ".join(entry.modules))
            found = None
        with self._lock:
            entry.running = False
            changed = found is not None and found != entry.learned
            if found is not None:
                entry.learned = found if changed else entry.learned
                entry.stamps = stamps(found.files)
            if entry.again:
                self._start(entry)
        if changed:
            with suppress(RuntimeError):  # the loop is closed: nobody is there to be told
                self.told()
