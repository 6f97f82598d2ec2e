"""An event loop whose clock jumps: waits cost no time, and every time is exact.

The clock stands still while anything can run. When everything waits for the clock, it jumps to the next moment that somebody waits for.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for input as long as it takes, but not for the clock."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the time, in seconds."""
        return self._jumping.now


def run_virtual(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run a coroutine function to its end, on a clock that jumps."""
    return anyio.run(function, *args, backend_options={"loop_factory": VirtualLoop})
