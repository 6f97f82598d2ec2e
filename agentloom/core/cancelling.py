"""Whether a task is meant to end: tools may raise the same exception on their own account."""

from __future__ import annotations

import asyncio
from math import inf

import anyio


def is_cancelled() -> bool:
    """Tell whether somebody wants this task to end."""
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -inf or (task is not None and task.cancelling() > 0)
