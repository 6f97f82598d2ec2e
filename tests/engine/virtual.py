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

    def __init__(self, jumping: _Jumping | None = None) -> None:
        self.jumping = jumping or _Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        """Return the time, in seconds."""
        return self.jumping.now


class _Patient(_Jumping):
    """Jumps only while nobody is busy outside of this loop: a real server that is about to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.is_busy: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for the world while it is busy, and let the clock stand still meanwhile."""
        if not self.is_busy():
            return super().select(timeout)
        return selectors.DefaultSelector.select(self, 0.05)


def run_beside_servers(function: Callable[..., Awaitable[T]], is_busy: Callable[[], bool]) -> T:
    """Run a coroutine function on a clock that jumps, beside real servers: it stands still while ``is_busy`` says so."""

    def make() -> VirtualLoop:
        loop = VirtualLoop(_Patient())
        loop.jumping.is_busy = is_busy  # type: ignore[attr-defined]
        return loop

    return anyio.run(function, backend_options={"loop_factory": make})


def run_virtual(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run a coroutine function to its end, on a clock that jumps."""
    return anyio.run(function, *args, backend_options={"loop_factory": VirtualLoop})
