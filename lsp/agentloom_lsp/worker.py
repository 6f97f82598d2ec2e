"""The thread that checks documents, away from the one that talks to the client."""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from itertools import count
from queue import Empty, PriorityQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
OPEN = 0
"""Rank of the check of an open document, and of an answer that somebody waits for and that is quick to find."""
WHOLE = 1
"""Rank of what is shown all over an open document, such as its colours and its outline: an answer about one place comes first."""
SEARCH = 2
"""Rank of work that goes through all files: checks of open documents don't wait for it."""
CLOSED = 3
"""Rank of work for files nobody looks at: done when there is no other."""
END = -1
"""Rank of the end, which comes before everything."""


class CalledOff(BaseException):
    """Nobody waits for the work under way any longer. Like ``KeyboardInterrupt`` no ``Exception``: nothing on the way may catch it."""


class _Piece(NamedTuple):
    rank: int
    number: int
    work: Callable[[], Any]
    future: Future[Any]


class Worker:
    """One thread, one piece of work at a time, lower ranks first, else in order. Ends with the process."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._numbers = count()
        self._queue: PriorityQueue[_Piece] = PriorityQueue()
        self._current: _Piece | None = None
        self._thread = threading.Thread(target=self._run, name="agentloom-worker", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T], rank: int = OPEN) -> Future[T]:
        """Have work done; return its result to come. Work whose future is cancelled before its turn is left out."""
        future: Future[T] = self._loop.create_future()
        self._queue.put(_Piece(rank, next(self._numbers), work, future))
        return future

    def breathe(self) -> None:
        """For long work, between two of its steps: do what has come in meanwhile and is of a lower rank.

        Raises ``CalledOff`` when nobody waits for the long work any more.
        """
        current = self._current
        if current is None or threading.current_thread() is not self._thread:
            return
        if current.future.cancelled():
            raise CalledOff
        while True:
            try:
                piece = self._queue.get_nowait()
            except Empty:
                return
            if piece.rank >= current.rank or piece.rank == END:
                self._queue.put(piece)  # with its old number: it keeps its turn
                return
            self._do(piece)

    def end(self) -> None:
        """Let the thread go as soon as it is free."""
        self._queue.put(_Piece(END, next(self._numbers), lambda: None, self._loop.create_future()))

    def _run(self) -> None:
        while (piece := self._queue.get()).rank != END and self._do(piece):
            pass

    def _do(self, piece: _Piece) -> bool:
        """Do a piece of work; tell whether there is still somebody to tell."""
        if piece.future.cancelled():
            return True
        before, self._current = self._current, piece
        result: Any = None
        error: Exception | None = None
        try:
            result = piece.work()
        except CalledOff:
            return True
        except Exception as raised:
            error = raised  # handed to whoever waits for the result
        except BaseException as raised:  # an attempt to end the process: this thread has to go on
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
        finally:
            self._current = before
        try:
            self._loop.call_soon_threadsafe(_settle, piece.future, result, error)
        except RuntimeError:  # the loop is closed
            return False
        return True


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
