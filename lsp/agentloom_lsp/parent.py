"""The process that started the server: when it is gone, the server has to go as well, however it ended."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

INTERVAL = 3.0
"""Seconds between two looks, on systems where a process can only be looked for."""
GRACE = 3.0
"""Seconds that the server has to end by itself before it is ended."""


def when_gone(process: int, leave: Callable[[], None]) -> bool:
    """Call ``leave`` from another thread once a process has ended, and end this one if that doesn't; tell whether it is watched.

    A process that can't be seen now isn't watched: a server in a container is told a number that means nothing there.
    """
    wait = _waiter(process)
    if wait is None:
        return False

    def watch() -> None:
        wait()
        leave()
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, name="agentloom-parent", daemon=True).start()
    return True


def _waiter(process: int) -> Callable[[], object] | None:
    if sys.platform == "win32":
        return _windows_waiter(process)
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            return None
        except OSError:  # an old kernel, or not allowed
            return _asking_waiter(process)
        import select

        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return poll.poll
    return _asking_waiter(process)


def _asking_waiter(process: int) -> Callable[[], object] | None:
    def there() -> bool:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

    def wait() -> None:
        while there():
            time.sleep(INTERVAL)

    return wait if there() else None


def _windows_waiter(process: int) -> Callable[[], object] | None:
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    synchronize, infinite = 0x00100000, 0xFFFFFFFF
    handle = kernel.OpenProcess(synchronize, False, process)
    return (lambda: kernel.WaitForSingleObject(handle, infinite)) if handle else None
