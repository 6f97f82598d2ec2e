"""Messages to where they belong: notifications at once, requests when the protocol's library is there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentloom.text import Source
from agentloom_lsp.checking import Door
from agentloom_lsp.client import Client, find
from agentloom_lsp.notifications import NOTIFICATIONS
from agentloom_lsp.parent import when_gone
from agentloom_lsp.session import Session
from agentloom_lsp.transport import Broken, Channel
from agentloom_lsp.wire import CANCELLED, INVALID_REQUEST, PARSE_ERROR, Wire

if TYPE_CHECKING:
    from agentloom_lsp.typed import RequestProtocol

logger = logging.getLogger(__name__)

IDS = (int, str, type(None))
"""What names a request. `true` is none, although Python takes it for a number."""
TERMINATED = 128 + 15
"""The exit code of a process that SIGTERM ended, as shells count."""


def run_session(
    channel: Channel,
    client: Client,
    door: Door,
    new_cache: Callable[[], Any],
    loaded: Callable[[], None] = lambda: None,
) -> int:
    """Serve a client that has introduced itself, until it leaves; return the exit code."""

    async def main() -> int:
        loop = asyncio.get_running_loop()
        wire = Wire(loop, channel.send)
        session = Session(loop, client, wire, door, new_cache)
        dispatcher = Dispatcher(session, loop, loaded)
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            loop.add_signal_handler(signal.SIGTERM, dispatcher.terminated)
        if client.process_id is not None:
            when_gone(client.process_id, dispatcher.leave)
        channel.attach(loop, dispatcher.receive, dispatcher.ended)
        try:
            return await dispatcher.stopped
        finally:
            await session.runs.close()
            session.worker.end()

    return asyncio.run(main())


class Dispatcher:
    """Takes every message of the client, in the loop's thread. ``stopped`` gets the exit code when it is time to go."""

    def __init__(self, session: Session, loop: AbstractEventLoop, loaded: Callable[[], None]) -> None:
        self._session = session
        self._wire = session.wire
        self._loop = loop
        self._loaded = loaded
        self._requests: RequestProtocol | None = None
        self._early: list[tuple[dict[str, Any], Source | None]] = []
        self._shut_down = False
        self.stopped: asyncio.Future[int] = loop.create_future()
        threading.Thread(target=self._load, name="agentloom-loader", daemon=True).start()

    def receive(self, message: Any) -> None:
        """Take one message. Never raises."""
        if isinstance(message, Broken):
            self._wire.refuse(None, PARSE_ERROR, f"the message is no JSON: {message}")
        elif not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._wire.refuse(None, INVALID_REQUEST, "the message is none of JSON-RPC 2.0")
        elif "method" not in message:
            self._wire.answered(message)
        elif not isinstance(message["method"], str) or type(message.get("id")) not in IDS:
            self._wire.refuse(None, INVALID_REQUEST, "the message is none of JSON-RPC 2.0")
        elif message.get("id") is None:
            self._take_notification(message)
        else:
            self._take_request(message)

    def ended(self) -> None:
        """Go: the client has closed its side."""
        self._stop(0 if self._shut_down else 1)

    def terminated(self) -> None:
        """Go: somebody ends the process."""
        self._stop(TERMINATED)

    def leave(self) -> None:
        """Go: the client's process is gone. For any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: gone already
            self._loop.call_soon_threadsafe(self._stop, 1)

    def _take_notification(self, message: dict[str, Any]) -> None:
        method = message["method"]
        if method == "exit":
            self.ended()
        elif method == "$/cancelRequest":
            self._cancel(message)
        elif method in NOTIFICATIONS:
            try:
                NOTIFICATIONS[method](self._session, message.get("params"))
            except (Exception, SystemExit) as error:
                self._session.log_once(method, error)

    def _take_request(self, message: dict[str, Any]) -> None:
        number, method = message["id"], message["method"]
        if self._shut_down:
            self._wire.refuse(number, INVALID_REQUEST, "the server is shutting down")
        elif method == "initialize":
            self._wire.refuse(number, INVALID_REQUEST, "the server is initialized already")
        elif method == "shutdown":
            self._shut_down = True
            self._drop_all()
            self._session.runs.leave()
            self._wire.answer(number, None)
        elif self._requests is None:
            self._early.append((message, self._text(message)))
        else:
            self._requests.receive(message, self._text(message))

    def _text(self, message: dict[str, Any]) -> Source | None:
        """Return the text that the client has before it as it sends a request."""
        uri = find(message, "params.textDocument.uri")
        document = self._session.documents.get(uri) if isinstance(uri, str) else None
        return document.source if document is not None else None

    def _cancel(self, message: dict[str, Any]) -> None:
        number = find(message, "params.id")
        if self._requests is not None:
            self._requests.receive(message)
        elif any(early["id"] == number for early, _ in self._early):
            self._early = [(early, text) for early, text in self._early if early["id"] != number]
            self._wire.refuse(number, CANCELLED, "the request was cancelled")

    def _drop_all(self) -> None:
        early, self._early = self._early, []
        for message, _ in early:
            self._wire.refuse(message["id"], CANCELLED, "the server is shutting down")
        if self._requests is not None:
            self._requests.cancel_all()

    def _stop(self, code: int) -> None:
        if not self.stopped.done():
            self.stopped.set_result(code)

    def _load(self) -> None:
        """Load the protocol's library; in a thread, since it takes long."""
        try:
            from agentloom_lsp.typed import make_protocol

            requests = make_protocol(self._session)
        except Exception:
            logger.exception("the protocol's library can't be loaded")
            self.leave()
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: the client left meanwhile
            self._loop.call_soon_threadsafe(self._use, requests)

    def _use(self, requests: RequestProtocol) -> None:
        self._requests = requests
        early, self._early = self._early, []
        for message, text in early:
            requests.receive(message, text)
        self._loaded()
