"""The time by which gates wait: the database's, which all workers share, whatever their own clocks say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic


class Clock:
    """Tells the database's time: as it was at the last look, and what has passed here since. Before the first look, and for a file, this machine's."""

    def __init__(self) -> None:
        self._seen: tuple[datetime, float] | None = None

    def set(self, time: datetime) -> None:
        """Take in what the database says that the time is, just now."""
        self._seen = time.astimezone(UTC), monotonic()

    def now(self) -> datetime:
        """Return the time, in UTC."""
        if self._seen is None:
            return datetime.now(UTC)
        time, at = self._seen
        return time + timedelta(seconds=monotonic() - at)
