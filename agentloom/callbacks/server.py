"""The server itself: sockets, time limits for slow clients, signals, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import anyio
import uvicorn
from anyio.abc import TaskGroup
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentloom.callbacks.access import Access
from agentloom.callbacks.app import make_app
from agentloom.core.keeping.waiting import Decisions
from agentloom.errors import UsageError
from agentloom.records import record

HEAD_SECONDS = 10.0
"""How long a request's head may take to arrive, from the first moment of its connection on."""

KEEP_ALIVE_SECONDS = 5
MOST_CONNECTIONS = 500
MOST_HEAD_BYTES = 16 * 1024

log = logging.getLogger(__name__)


@record()
class Settings:
    """How the server runs. ``decisions`` begins to carry out decisions, in a task group, and is told where the server can be reached, if
    that is one address; ``grace`` is the seconds that runs get when the server stops.
    """

    decisions: Callable[[TaskGroup, str | None], Decisions]
    host: str
    port: int
    token: str | None
    grace: float = 5.0


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Run the server until a signal ends it; ``ready`` is told its address. Raises ``UsageError`` for one that can't be listened on."""
    anyio.run(_serve, settings, ready)


async def _serve(settings: Settings, ready: Callable[[str], None]) -> None:
    listening = _listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    anywhere = settings.host in ("0.0.0.0", "::")
    url = f"http://{host}:{port}"
    async with anyio.create_task_group() as group:
        decisions = settings.decisions(group, None if anywhere else url)
        config = uvicorn.Config(
            make_app(decisions, Access(settings.token)),
            http=_Http,
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(settings.grace)),
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        )
        server = _Server(config)
        async with anyio.create_task_group() as inner:
            inner.start_soon(_heed_signals, server, decisions)
            inner.start_soon(decisions.keep)
            ready(url)
            with closing(listening):
                await server.serve([listening])
            # What was promised with a 202 is carried out, or left behind as a run that can be resumed.
            await decisions.stop(settings.grace)
            inner.cancel_scope.cancel()


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn would raise them again when it is done, and end the process by them."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


class _Http(H11Protocol):
    """Closes connections on which no whole request head arrives in time; uvicorn itself waits for ever."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head; stop waiting when it is there."""
        super().data_received(data)
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy:
            self._stop_waiting()
        elif self._waiting is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        self._waiting = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


async def _heed_signals(server: uvicorn.Server, decisions: Decisions) -> None:
    """Let the first signal end the server in an orderly way; with a second one it waits for no run any more."""
    if sys.platform == "win32":
        return  # there Ctrl-C raises KeyboardInterrupt in the loop
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            if server.should_exit:
                server.force_exit = True
                decisions.hurry()
            log.info("shutting down")
            server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ``UsageError``."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"`--host {host}` can't be used: {error.strerror or error}") from None
    try:
        if sys.platform != "win32":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(256)
        found.setblocking(False)
    except OSError as error:
        found.close()
        raise UsageError(f"can't listen on {host}, port {port}: {error.strerror or error}") from None
    return found
