"""Bytes in and out: framed JSON messages over standard input and output, or one TCP connection.

A thread of its own reads, so that a client never waits for us to read on, whatever we do. Reading goes through plain file
descriptors: a buffered reader that a thread is blocked in makes the interpreter abort when it shuts down.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop  # takes longer to load than all else that the first answer needs

CHUNK = 65_536
LONGEST_HEAD = 65_536
"""Bytes before a message's text; who sends more without an end speaks another protocol."""
BATCH = 64
"""Messages handled before the loop gets a turn for other things."""


class Broken(Exception):
    """The message is no JSON."""


END: Final = object()


class Channel:
    """One connection. ``recv`` returns at most so many bytes, none at the end; ``write`` takes all it is given."""

    def __init__(self, recv: Callable[[int], bytes], write: Callable[[bytes], Any], close: Callable[[], None]) -> None:
        self._recv = recv
        self._write = write
        self._close = close
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._notify: Callable[[], None] = lambda: None
        threading.Thread(target=self._read, name="agentloom-reader", daemon=True).start()

    def receive(self) -> Any:
        """Wait for the next message and return it; None at the end. Broken ones are passed over."""
        while True:
            message = self._inbox.get()
            if message is END:
                return None
            if not isinstance(message, Broken):
                return message

    def attach(self, loop: AbstractEventLoop, handle: Callable[[Any], None], ended: Callable[[], None]) -> None:
        """From now on hand each message to ``handle`` in the loop's thread (a ``Broken`` for one that is no JSON).

        ``ended`` is called once, when the client has closed its side.
        """

        def drain() -> None:
            for _ in range(BATCH):
                try:
                    message = self._inbox.get_nowait()
                except Empty:
                    return
                if message is END:
                    ended()
                    return
                handle(message)
            loop.call_soon(drain)

        def notify() -> None:
            try:
                loop.call_soon_threadsafe(drain)
            except RuntimeError:  # the loop is closed: nobody listens any more
                return

        self._notify = notify
        notify()

    def send(self, message: Any) -> None:
        """Send one message given as plain JSON."""
        body = json.dumps(message, separators=(",", ":")).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def write(self, data: bytes) -> None:
        """Send bytes that are framed already. A client that is gone is no error here: the reader notices."""
        with self._lock:
            try:
                self._write(data)
            except OSError:
                return

    def close(self) -> None:
        """Close our side."""
        self._close()

    def _read(self) -> None:
        buffer = bytearray()
        while True:
            head = buffer.find(b"\r\n\r\n")
            size = _content_length(bytes(buffer[:head])) if head >= 0 else 0
            if head >= 0 and len(buffer) >= head + 4 + size:
                body = bytes(buffer[head + 4 : head + 4 + size])
                del buffer[: head + 4 + size]
                if body:
                    self._put(_decoded(body))
                continue
            try:
                chunk = self._recv(CHUNK)
            except OSError:
                chunk = b""
            if not chunk or (head < 0 and len(buffer) > LONGEST_HEAD):
                self._put(END)
                return
            buffer += chunk

    def _put(self, message: Any) -> None:
        self._inbox.put(message)
        self._notify()


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit() and len(value) < 20:
            return int(value)
    return 0


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        return Broken(str(error))


def take_stdio() -> Channel:
    """Return the channel over standard input and output, and keep everybody else away from them.

    From now on `print`, foreign libraries and child processes that write to descriptor 1 write to standard error, and what
    reads descriptor 0 finds it empty.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without standard error
        os.dup2(nothing, 1)
    if os.name == "nt":
        import msvcrt

        for descriptor in (incoming, outgoing):
            msvcrt.setmode(descriptor, os.O_BINARY)  # type: ignore[attr-defined,unused-ignore]
    sys.stdout = sys.stderr

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(outgoing, view) :]

    return Channel(lambda size: os.read(incoming, size), write, lambda: os.close(outgoing))


def accept_tcp(host: str, port: int, ready: Callable[[str, int], None]) -> Channel:
    """Wait for one client on a TCP address and return the channel to it; ``ready`` is told the address once it is open.

    Raises ``OSError`` when the address can't be had.
    """
    import socket  # only here

    with socket.create_server((host, port)) as server:
        ready(*server.getsockname()[:2])
        connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Channel(connection.recv, connection.sendall, connection.close)
