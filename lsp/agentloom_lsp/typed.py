"""Requests through the protocol's library: plain JSON becomes its types, handlers are called, and can be cancelled.

The library takes half a second to load, so this module is imported in a thread of its own while documents are being checked
already. What it does well is kept; that a request which doesn't fit its type would never be answered is overruled.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from agentloom import __version__
from agentloom.text import Source
from agentloom_lsp.asking import seen
from agentloom_lsp.documents import Documents
from agentloom_lsp.features.running import ended
from agentloom_lsp.handshake import NAME
from agentloom_lsp.requests import EXPECTED, REQUESTS, Request
from agentloom_lsp.session import Session
from agentloom_lsp.wire import CANCELLED, CONTENT_MODIFIED, INTERNAL_ERROR, Wire

logger = logging.getLogger(__name__)

_one_at_a_time = threading.Lock()
"""The library fills in its tables when it is first used, and fails when two servers of one process have it do so at once."""
PLACES = ("position", "range", "positions")
"""Fields of requests that mean places in the text as it was when the client asked."""


class RequestProtocol(LanguageServerProtocol):
    """Takes requests and `$/cancelRequest`, as plain JSON."""

    wire: Wire

    def _register_builtin_features(self) -> None:
        """Leave out what the library does by itself: documents, folders and the process are looked after elsewhere."""

    def receive(self, message: dict[str, Any], text: Source | None = None) -> None:
        """Take one message; ``text`` is what the client had before it when it sent that. Never raises; every request is answered."""
        number = message.get("id")
        seen.set(text)
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

    def _send_handler_result(self, future: Any, *, msg_id: Any) -> None:
        """Answer a request. A refusal is an answer, not a failure to be logged."""
        self._request_futures.pop(msg_id, None)
        if future.cancelled():
            self.wire.refuse(msg_id, CANCELLED, "the request was cancelled")
            return
        error = future.exception()
        if isinstance(error, JsonRpcException):
            self.wire.refuse(msg_id, error.code, error.message)
        elif error is not None:
            logger.error("a request could not be answered", exc_info=error)
            self.wire.refuse(msg_id, INTERNAL_ERROR, "internal error")
        else:
            self.wire.answer(msg_id, future.result())

    def _send_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        if error is not None:
            self.wire.refuse(msg_id, error.code, error.message)
        else:
            self.wire.answer(msg_id, result)


def make_protocol(session: Session) -> RequestProtocol:
    """Return the protocol with every handler in place."""
    with _one_at_a_time:
        protocol = LanguageServer(NAME, __version__, protocol_cls=RequestProtocol).protocol
    assert isinstance(protocol, RequestProtocol)
    protocol._converter.register_structure_hook(str, _text)
    protocol.wire = session.wire
    session.unstructure = protocol._converter.unstructure
    session.project.expect(*(function(session) for function in EXPECTED))
    session.after_run = lambda run: ended(session, run)
    for request in REQUESTS:
        protocol.fm.feature(request.method)(guarded(session, request))
    return protocol


def _text(value: Any, of_type: type) -> str:
    """Return a text of a request as it is. The library would turn anything into one: a step would be renamed to `None`."""
    del of_type
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def guarded(session: Session, request: Request) -> Callable[[Any], Awaitable[Any]]:
    """Return a request's handler for this session; where it fails, it answers empty and says so once.

    An answer about a place in a text that has changed meanwhile would be wrong, so it is refused with `ContentModified`; but not
    what the client fits to the text itself: a refused completion is a menu that doesn't open.
    """

    async def handle(params: Any) -> Any:
        if not request.late and _outdated(session.documents, params):
            raise _modified()
        try:
            result = await request.handle(session, params)
        except JsonRpcException:
            raise  # an answer: the handler refuses, with its reason
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Not this request was called off, but the check that it waited for: the document is closed.
            return request.empty
        except (Exception, SystemExit) as error:
            session.log_once(request.method, error)
            return request.empty
        if not request.late and _outdated(session.documents, params):
            raise _modified()
        return result

    return handle


def _modified() -> JsonRpcException:
    return JsonRpcException("the text has changed since this was asked", CONTENT_MODIFIED)


def _outdated(documents: Documents, params: Any) -> bool:
    """Tell whether a request names places in a text that isn't there any more."""
    text = seen.get()
    if text is None or not any(hasattr(params, name) for name in PLACES):
        return False
    document = documents.get(text.uri)
    return document is None or document.source is not text
