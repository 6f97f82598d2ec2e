"""Waiting for a change: of a document, a file, settings, folders."""

from __future__ import annotations

import asyncio
from asyncio import Future


class Bell:
    """Rings when a verdict on any file may have changed. ``count`` says how often it has rung. Used in the loop's thread only."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[Future[None]] = []

    def ring(self) -> None:
        """Wake everybody who waits."""
        self.count += 1
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def after(self, count: int) -> None:
        """Wait until it has rung more than ``count`` times."""
        while self.count <= count:
            future: Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
