"""One function over many items, spread over processes where that pays; results come in the order of the items.

Processes are forked: the function and what it refers to need no import and no copy in the children. Where there is no ``fork``, or
the process has other threads (which a fork would freeze), everything happens here.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def can_fork() -> bool:
    """Tell whether forking is possible and safe."""
    return hasattr(os, "fork") and threading.active_count() == 1


def spread(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int, lost: Callable[[Item, str], Result]
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item, in order, computed by ``workers`` processes.

    ``lost`` gives the result for an item whose process died, from the item and the reason. Exceptions of ``function`` are its own
    affair: an item that raises ends its process.
    """
    if workers < 2 or len(items) < 2 or not can_fork():
        yield from map(function, items)
        return
    sys.stdout.flush()
    sys.stderr.flush()
    children: list[tuple[int, int]] = []
    try:
        for worker in range(workers):
            children.append(_start(function, items[worker::workers], [read_end for _, read_end in children]))
        pipes = [os.fdopen(os.dup(read_end), "rb") for _, read_end in children]
        try:
            for at, item in enumerate(items):
                try:
                    result: Result = pickle.load(pipes[at % workers])
                except (EOFError, pickle.UnpicklingError):
                    result = lost(item, "the process that checked it ended too early")
                yield result
        finally:
            for pipe in pipes:
                pipe.close()
    finally:
        for child, read_end in children:
            os.close(read_end)
            _end(child)


def _start(function: Callable[[Item], Result], items: Sequence[Item], others: Sequence[int]) -> tuple[int, int]:
    """Fork a process that writes the results for ``items``; return its id and the pipe to read them from."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child:
        os.close(write_end)
        return child, read_end
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for end in (read_end, *others):
            os.close(end)
        with os.fdopen(write_end, "wb") as out:
            for item in items:
                out.write(pickle.dumps(function(item), pickle.HIGHEST_PROTOCOL))
                out.flush()
        code = 0
    except BrokenPipeError:
        code = 0  # the parent has stopped listening
    finally:
        os._exit(code)


def _end(child: int) -> None:
    """End a process that may still run, and take its leave."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
