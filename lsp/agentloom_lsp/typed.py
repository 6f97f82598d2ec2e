"""Requests through the protocol's library: plain JSON becomes its types, handlers are called, and can be cancelled.

The library takes half a second to load, so this module is imported in a thread of its own while documents are being checked
already. What it does well is kept; that a request which doesn't fit its type would never be answered is overruled.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from agentloom import __version__
from agentloom_lsp.handshake import NAME
from agentloom_lsp.requests import REQUESTS, Request
from agentloom_lsp.session import Session
from agentloom_lsp.wire import INTERNAL_ERROR, Wire

logger = logging.getLogger(__name__)


class RequestProtocol(LanguageServerProtocol):
    """Takes requests and `$/cancelRequest`, as plain JSON."""

    wire: Wire

    def _register_builtin_features(self) -> None:
        """Leave out what the library does by itself: documents, folders and the process are looked after elsewhere."""

    def receive(self, message: dict[str, Any]) -> None:
        """Take one message. Never raises; every request is answered."""
        number = message.get("id")
        try:
            self.handle_message(self._typed(message))
        except JsonRpcException as error:
            if number is not None:
                self.wire.refuse(number, error.code, error.message)
        except Exception:
            logger.exception("a message could not be handled")
            if number is not None:
                self.wire.refuse(number, INTERNAL_ERROR, "internal error")

    def cancel_all(self) -> None:
        """Cancel every request under way."""
        for future in list(self._request_futures.values()):
            future.cancel()

    def _typed(self, message: dict[str, Any]) -> Any:
        try:
            return self.structure_message(message)
        except JsonRpcException:
            if message.get("params") is not None:
                raise
            return self.structure_message({**message, "params": {}})  # left out, where the type wants an object

    def _send_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        if error is not None:
            self.wire.refuse(msg_id, error.code, error.message)
        else:
            self.wire.answer(msg_id, result)


def make_protocol(session: Session) -> RequestProtocol:
    """Return the protocol with every handler in place."""
    protocol = LanguageServer(NAME, __version__, protocol_cls=RequestProtocol).protocol
    assert isinstance(protocol, RequestProtocol)
    protocol.wire = session.wire
    for request in REQUESTS:
        protocol.fm.feature(request.method)(guarded(session, request))
    return protocol


def guarded(session: Session, request: Request) -> Callable[[Any], Awaitable[Any]]:
    """Return a request's handler for this session; where it fails, it answers empty and says so once."""

    async def handle(params: Any) -> Any:
        try:
            return await request.handle(session, params)
        except JsonRpcException:
            raise  # an answer: the handler refuses, with its reason
        except Exception as error:
            session.log_once(request.method, error)
            return request.empty

    return handle
