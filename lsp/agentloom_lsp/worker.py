"""The thread that checks documents, away from the one that talks to the client."""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from itertools import count
from queue import PriorityQueue
from typing import Any, TypeVar

T = TypeVar("T")
OPEN = 0
"""Rank of work for an open document."""
CLOSED = 1
"""Rank of work for files nobody looks at: done when there is no other."""


class Worker:
    """One thread, one piece of work at a time, lower ranks first, else in order. Ends with the process."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._numbers = count()
        self._queue: PriorityQueue[tuple[int, int, Callable[[], Any], Future[Any]]] = PriorityQueue()
        threading.Thread(target=self._run, name="agentloom-worker", daemon=True).start()

    def submit(self, work: Callable[[], T], rank: int = OPEN) -> Future[T]:
        """Have work done; return its result to come. Work whose future is cancelled before its turn is left out."""
        future: Future[T] = self._loop.create_future()
        self._queue.put((rank, next(self._numbers), work, future))
        return future

    def _run(self) -> None:
        while True:
            _, _, work, future = self._queue.get()
            if future.cancelled():
                continue
            result: Any = None
            error: Exception | None = None
            try:
                result = work()
            except Exception as raised:
                error = raised  # handed to whoever waits for the result
            try:
                self._loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:  # the loop is closed
                return
            del work, future, result, error


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
