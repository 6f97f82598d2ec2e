"""The protocol's library, set up for our handlers: what it does well is kept, and where it trips it is overruled.

Kept: messages to typed parameters and back, request numbers, cancelling. Overruled: a message that doesn't fit its type is
answered (a request) or read as it is (an answer of the client) instead of being lost; texts are kept in ``documents`` and not
here as well; the process ends with the right code.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, NamedTuple

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcParseError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from agentloom import __version__
from agentloom_lsp.checking import Door
from agentloom_lsp.client import Client, find
from agentloom_lsp.features import FEATURES, Feature
from agentloom_lsp.handshake import NAME
from agentloom_lsp.parent import when_gone
from agentloom_lsp.session import Session
from agentloom_lsp.transport import Broken, Channel

logger = logging.getLogger(__name__)


class AgentloomProtocol(LanguageServerProtocol):
    """Requests and notifications, on messages that are plain JSON."""

    stop: Callable[[int], None]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._numbers = count()

    def _register_builtin_features(self) -> None:
        for method in (self.refuse_initialize, self.ignore_trace, self.shutdown_requested, self.exit_requested):
            self.fm.add_builtin_feature(method.method_name, method)  # type: ignore[attr-defined]

    @lsp_method(types.INITIALIZE)
    def refuse_initialize(self, params: Any) -> None:
        """Refuse a second introduction; the first was answered by the handshake."""
        raise JsonRpcInvalidRequest("the server is initialized already")

    @lsp_method(types.SET_TRACE)
    def ignore_trace(self, params: Any) -> None:
        """Take note that the client sets a trace level: nothing is traced."""

    @lsp_method(types.SHUTDOWN)
    def shutdown_requested(self, params: Any) -> None:
        """Stop answering; requests under way are cancelled."""
        for future in list(self._request_futures.values()):
            future.cancel()
        self._shutdown = True

    @lsp_method(types.EXIT)
    def exit_requested(self, params: Any) -> None:
        """End the process: with 0 after a shutdown, else with 1."""
        self.stop(0 if self._shutdown else 1)

    @property
    def was_shut_down(self) -> bool:
        """Whether the client has asked to shut down."""
        return self._shutdown

    def receive(self, message: Any) -> None:
        """Take one message. Never raises."""
        number = message.get("id") if isinstance(message, dict) and "method" in message else None
        try:
            self._take(message, number)
        except JsonRpcException as error:
            if number is not None or not isinstance(message, dict):
                self._refuse(number, error)
            else:
                logger.warning("a notification was passed over: %s", error)
        except Exception:
            logger.exception("a message could not be handled")
            if number is not None:
                self._refuse(number, JsonRpcException("internal error"))

    def ask(self, method: str, params: Any) -> Awaitable[Any]:
        """Send a request in plain JSON; return the answer to come, in plain JSON too."""
        number = f"agentloom-{next(self._numbers)}"
        future: Future[Any] = Future()
        self._request_futures[number] = future
        self._send_data({"jsonrpc": self.VERSION, "id": number, "method": method, "params": params})
        return asyncio.wrap_future(future)

    def tell(self, method: str, params: Any) -> None:
        """Send a notification in plain JSON."""
        self._send_data({"jsonrpc": self.VERSION, "method": method, "params": params})

    def _take(self, message: Any, number: Any) -> None:
        if isinstance(message, Broken):
            raise JsonRpcParseError(f"the message is no JSON: {message}")
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            raise JsonRpcInvalidRequest("the message is none of JSON-RPC 2.0")
        if "method" not in message:
            self._answered(message)
            return
        if self._shutdown and number is not None:
            raise JsonRpcInvalidRequest("the server is shutting down")
        _mend(message)
        try:
            typed = self.structure_message(message)
        except JsonRpcException:
            if message.get("params") is not None:
                raise
            typed = self.structure_message({**message, "params": {}})  # left out, where the type wants an object
        self.handle_message(typed)

    def _answered(self, message: dict[str, Any]) -> None:
        """Take the client's answer as it is: null where a list is due is an answer too."""
        error = message.get("error")
        if isinstance(error, dict):
            code, words = error.get("code"), error.get("message")
            refusal = types.ResponseError(code if isinstance(code, int) else 0, words if isinstance(words, str) else "")
            self._handle_response(message.get("id", 0), None, refusal)
        else:
            self._handle_response(message.get("id", 0), message.get("result"))

    def _send_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        if error is not None:
            self._refuse(msg_id, JsonRpcException(error.message, error.code))
        else:
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "result": result})

    def _refuse(self, number: Any, error: JsonRpcException) -> None:
        said = {"code": error.code, "message": error.message}
        self._send_data({"jsonrpc": self.VERSION, "id": number, "error": said})


def _mend(message: dict[str, Any]) -> None:
    """Fill in what a client may have left out of a document's message; to lose an edit would spoil all that follow."""
    document = find(message, "params.textDocument")
    if message["method"] in ("textDocument/didOpen", "textDocument/didChange") and isinstance(document, dict):
        if not isinstance(document.get("version"), int):
            document["version"] = 0
        if not isinstance(document.get("languageId"), str):
            document["languageId"] = ""


class _Writer:
    """A channel as the library wants it."""

    def __init__(self, channel: Channel) -> None:
        self.write = channel.write
        self.close = channel.close


class _Wire(NamedTuple):
    """The protocol as the session wants it."""

    notify: Callable[[str, Any], None]
    request: Callable[[str, Any], Awaitable[Any]]


def run_session(channel: Channel, client: Client, door: Door, new_cache: Callable[[], Any]) -> int:
    """Serve a client that has introduced itself, until it leaves; return the exit code."""
    return asyncio.run(_serve(channel, client, door, new_cache))


async def _serve(channel: Channel, client: Client, door: Door, new_cache: Callable[[], Any]) -> int:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()
    protocol = LanguageServer(NAME, __version__, protocol_cls=AgentloomProtocol).protocol
    assert isinstance(protocol, AgentloomProtocol)

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    def leave() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(stop, 1)

    protocol.stop = stop
    protocol.set_writer(_Writer(channel))
    session = Session(loop, client, _Wire(protocol.tell, protocol.ask), door, new_cache)
    for feature in FEATURES:
        protocol.fm.feature(feature.method)(guarded(session, feature))
    if client.process_id is not None:
        when_gone(client.process_id, leave)
    channel.attach(loop, protocol.receive, lambda: stop(0 if protocol.was_shut_down else 1))
    return await stopped


def guarded(session: Session, feature: Feature) -> Callable[[Any], Any]:
    """Return a feature's handler for this session; where it fails, it answers empty and says so once."""
    method, handle, empty = feature

    async def later(params: Any) -> Any:
        try:
            return await handle(session, params)
        except JsonRpcException:
            raise
        except Exception as error:
            session.log_once(method, error)
            return empty

    def at_once(params: Any) -> Any:
        try:
            return handle(session, params)
        except JsonRpcException:
            raise
        except Exception as error:
            session.log_once(method, error)
            return empty

    return later if inspect.iscoroutinefunction(handle) else at_once
