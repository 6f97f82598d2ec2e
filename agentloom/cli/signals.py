"""The signals that stop a run: they end the program as Ctrl-C does, from its first moments on. And word to who started us as a service."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop a run as Ctrl-C does: SIGTERM, and SIGHUP (the terminal is gone) but under `nohup`.

    The processes of a run's commands have groups of their own: no signal of the terminal reaches them, only we do.
    """
    found = [signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found


def heed_signals() -> None:
    """Let the signals to stop raise ``KeyboardInterrupt``. An event loop that has handled them takes its handlers away; call this again then."""
    for number in stop_signals():
        signal.signal(number, _interrupt)


@contextmanager
def terminable() -> Iterator[None]:
    """Heed the signals for a while."""
    before = [(number, signal.getsignal(number)) for number in stop_signals()]
    heed_signals()
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def tell_manager(word: str) -> None:
    """Tell the service manager how far we are, if one asked for it as systemd does: `READY=1`, `STOPPING=1`."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")) or sys.platform == "win32":
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
        wire.sendto(word.encode(), address if address[0] == "/" else "\0" + address[1:])


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
