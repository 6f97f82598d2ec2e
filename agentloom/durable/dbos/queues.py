"""The queues that a process listens to, and how much of them it performs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbos import DBOS


def limit(dbos: DBOS, names: Sequence[str], concurrency: int) -> None:
    """Have this process perform so many segments of some queues at once. DBOS reads the number from the database, where it is one for all."""
    stored = dbos._sys_db.get_queue
    active = dbos._active_workflows_set

    def get_queue(asked: str, **more: Any) -> Any:
        queue = stored(asked, **more)
        if queue is not None and asked in names:
            others = sum(active.count_for_queue(name) for name in names if name != asked)
            queue._worker_concurrency = max(0, concurrency - others)
        return queue

    dbos._sys_db.get_queue = get_queue  # type: ignore[assignment]


def register(poll_s: float, concurrency: int | None, name: str) -> None:
    """Tell the database of a queue that this process listens to."""
    DBOS.register_queue(name, worker_concurrency=concurrency, polling_interval_sec=poll_s, on_conflict="always_update")
