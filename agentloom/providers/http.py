"""The HTTP layer that all providers share: one client per provider, and one table of what can go wrong.

Every failure becomes a ``ProviderError``: with a status when the server answered with one, without one when it didn't answer properly
(which another attempt may cure), permanent when no attempt can succeed.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import anyio
import httpx

from agentloom import __version__
from agentloom.errors import ProviderError, RateLimitError
from agentloom.providers.connections import Connections
from agentloom.providers.ndjson import LineParser
from agentloom.providers.secret import Secret, without_keys
from agentloom.providers.sse import Event, EventParser
from agentloom.records import record

MAX_REPLY_BYTES = 32 * 1024 * 1024
"""The largest reply that is read, after decompression; far above any model's, and a bound on what a broken server can cost."""

CODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
"""How an answer may be compressed, and only once."""

MAX_ERROR_BYTES = 64 * 1024
MAX_ERROR_CHARACTERS = 500
"""How much of an error's body is read, and how much of it is shown."""

DRAIN_SECONDS = 0.1
"""How long the end of a finished stream is awaited, so that its connection can be used again."""

LONGEST_RETRY_AFTER = 365 * 24 * 3600.0
"""Larger Retry-After values, in seconds, are taken for mistakes."""


@record()
class Failure:
    """What an exception of httpx means, in our words. ``{where}`` is the server, ``{timeout}`` the limit in seconds."""

    text: str
    permanent: bool = False


FAILURES: Mapping[type[Exception], Failure] = {
    httpx.ConnectTimeout: Failure("no connection to {where} within {timeout:g} s"),
    httpx.ReadTimeout: Failure("no answer from {where} within {timeout:g} s"),
    httpx.WriteTimeout: Failure("{where} did not take the request within {timeout:g} s"),
    httpx.PoolTimeout: Failure("no free connection to {where} within {timeout:g} s"),
    httpx.TimeoutException: Failure("no answer from {where} within {timeout:g} s"),
    httpx.ConnectError: Failure("can't connect to {where}"),
    httpx.ReadError: Failure("{where} dropped the connection"),
    httpx.WriteError: Failure("{where} dropped the connection"),
    httpx.CloseError: Failure("{where} dropped the connection"),
    httpx.NetworkError: Failure("{where} dropped the connection"),
    httpx.RemoteProtocolError: Failure("{where} broke off its answer, or speaks no proper HTTP"),
    httpx.LocalProtocolError: Failure("the request to {where} can't be written as HTTP", permanent=True),
    httpx.ProtocolError: Failure("{where} speaks no proper HTTP"),
    httpx.ProxyError: Failure("the proxy before {where} refuses"),
    httpx.UnsupportedProtocol: Failure("the address of {where} is neither http nor https", permanent=True),
    httpx.TransportError: Failure("the connection to {where} failed"),
    httpx.DecodingError: Failure("the answer of {where} can't be decompressed"),
    httpx.TooManyRedirects: Failure("{where} redirects without end", permanent=True),
    httpx.RequestError: Failure("the request to {where} failed"),
    httpx.HTTPStatusError: Failure("{where} refused the request"),
    httpx.HTTPError: Failure("the request to {where} failed"),
    httpx.InvalidURL: Failure("the address of {where} is malformed", permanent=True),
    httpx.CookieConflict: Failure("{where} sent cookies that contradict each other"),
    httpx.StreamConsumed: Failure("the answer of {where} was read twice"),
    httpx.StreamClosed: Failure("the answer of {where} was closed too early"),
    httpx.ResponseNotRead: Failure("the answer of {where} was not read"),
    httpx.RequestNotRead: Failure("the request to {where} was not read"),
    httpx.StreamError: Failure("the answer of {where} could not be read"),
}
"""Every exception class of httpx. A class that a later version adds is taken for its nearest known base."""


class HttpClient:
    """One provider's connections, kept open between calls.

    ``headers`` go with every request, the key included; ``key`` is what is cut out of errors. ``timeout`` (seconds) bounds a whole call,
    or each silence of a streamed one. Redirects are not followed.
    """

    def __init__(
        self,
        provider: str,
        *,
        headers: Mapping[str, str] | None = None,
        key: Secret | None = None,
        timeout: float = 60.0,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.provider = provider
        self._key = key
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._connections = Connections(
            {"User-Agent": f"agentloom/{__version__}", "Accept-Encoding": "gzip, deflate", **(headers or {})}, timeout
        )

    async def post(
        self, url: str, payload: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send JSON and return the JSON object that comes back."""
        body = bytearray()
        try:
            with anyio.fail_after(self._timeout):
                async with (
                    self._open(url, payload, headers or {}) as response,
                    aclosing(self._chunks(response)) as chunks,
                ):
                    async for chunk in chunks:
                        body += chunk
        except TimeoutError:
            raise self._failed(httpx.ReadTimeout(""), url) from None
        return self.json_object(bytes(body))

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        payload: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        *,
        lines: bool = False,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Send JSON; inside the block, the server's events as they arrive: server-sent events, or with ``lines`` one a line.

        A server that doesn't stream, and answers with one JSON text, is one event of that text.
        """
        accept = {"Accept": "application/x-ndjson" if lines else "text/event-stream", **(headers or {})}
        async with self._open(url, payload, accept) as response, aclosing(self._events(response, lines)) as events:
            yield events

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        await self._connections.close()

    def json_object(self, body: bytes | str) -> dict[str, Any]:
        """Return the JSON object in ``body``. Raises ``ProviderError`` when it holds none."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            begin = body[: 4 * MAX_ERROR_CHARACTERS]
            text = begin if isinstance(begin, str) else begin.decode("utf-8", "replace")
            shown = self.shown(text)
            raise self.error(f"the answer is not JSON: {shown}" if shown else "the answer is empty") from None
        if not isinstance(data, dict):
            raise self.error("the answer is JSON, but not an object")
        return data

    def error(
        self,
        text: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        permanent: bool = False,
    ) -> ProviderError:
        """Return an error of this provider; keys are cut out of its text."""
        kind = RateLimitError if status == 429 else ProviderError
        return kind(
            f"Provider '{self.provider}': {without_keys(text, self._key)}",
            provider=self.provider,
            status_code=status,
            retry_after=retry_after,
            permanent=permanent,
        )

    def api_error(self, status: int, body: str, retry_after: float | None = None) -> ProviderError:
        """Return the error for a status and what the server said with it; a wait that only the body asks for counts like the header's."""
        text = f"API error {status}"
        shown = self.shown(_message_in(body))
        wait = retry_after if retry_after is not None else _retry_delay_in(body)
        return self.error(f"{text}: {shown}" if shown else text, status=status, retry_after=wait)

    @asynccontextmanager
    async def _open(
        self, url: str, payload: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        try:
            content = json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
        except ValueError as error:
            raise self.error(f"the request can't be written as JSON: {error}", permanent=True) from None
        lane = self._connections.take()
        response: httpx.Response | None = None
        try:
            try:
                request = lane.client.build_request(
                    "POST", _parsed(url), content=content, headers={"Content-Type": "application/json", **headers}
                )
                response = await lane.client.send(request, stream=True)
            except tuple(FAILURES) as error:
                raise self._failed(error, url) from error
            codings = [name.strip().lower() for name in response.headers.get("content-encoding", "").split(",")]
            if len(codings) > 1 or codings[0] not in CODINGS:
                # Packed twice, a few kilobytes can hold more than any memory before the first of them is counted.
                raise self.error(f"the answer is compressed in a way that isn't read: {self.shown(', '.join(codings))}")
            if not response.is_success:
                raise await self._refused(response)
            yield response
        finally:
            with anyio.CancelScope(shield=True):
                if response is not None and not response.is_closed:
                    await response.aclose()
                await self._connections.give_back(lane)

    async def _chunks(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        total = 0
        url = str(response.request.url)
        try:
            async for chunk in response.aiter_bytes():
                total += len(chunk)
                if total > self._max_bytes:
                    raise self.error(f"the answer is larger than {self._max_bytes} bytes", permanent=True)
                yield chunk
        except tuple(FAILURES) as error:
            raise self._failed(error, url) from error

    async def _events(self, response: httpx.Response, lines: bool) -> AsyncGenerator[Event, None]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        url = str(response.request.url)
        parser: EventParser | LineParser | None = LineParser() if lines else EventParser()
        if kind == "text/html" or (kind == "application/json" and not lines):
            parser = None
        body = bytearray()
        deadline = anyio.current_time() + self._timeout
        async with aclosing(self._chunks(response)) as chunks:
            while True:
                try:
                    # Comments and spaces keep a connection alive, but are no answer: only an event moves the deadline on.
                    with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
                        chunk = await anext(chunks, None)
                except TimeoutError:
                    raise self._failed(httpx.ReadTimeout(""), url) from None
                if chunk is None:
                    break
                if parser is None:
                    body += chunk
                    continue
                for event in parser.feed(chunk):
                    yield event
                    deadline = anyio.current_time() + self._timeout
            for event in [Event(body.decode("utf-8", "replace"))] if parser is None else parser.finish():
                yield event

    async def _refused(self, response: httpx.Response) -> ProviderError:
        status = response.status_code
        if 300 <= status < 400:
            target = response.headers.get("location")
            where = f" to {server_of(target)}" if target else ""
            return self.error(
                f"API error {status}: redirected{where}; redirects are not followed, set the base URL to the server that answers",
                status=status,
            )
        body = bytearray()
        with anyio.move_on_after(self._timeout):
            try:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) >= MAX_ERROR_BYTES:
                        break
            except tuple(FAILURES):
                pass  # the status says enough; what arrived of the body is shown
        return self.api_error(
            status,
            bytes(body[:MAX_ERROR_BYTES]).decode("utf-8", "replace"),
            retry_after(response.headers),
        )

    def _failed(self, error: Exception, url: str) -> ProviderError:
        failure = next(FAILURES[kind] for kind in type(error).__mro__ if kind in FAILURES)
        text = failure.text.format(where=server_of(url), timeout=self._timeout)
        detail = self.shown(str(error))
        return self.error(f"{text} ({detail})" if detail else text, permanent=failure.permanent)

    def shown(self, text: str) -> str:
        """Return a foreign text as one line of a sane length, without keys and without control characters."""
        line = " ".join(re.sub(r"[^\S ]|[\x00-\x1f\x7f-\x9f]", " ", without_keys(text, self._key)).split())
        return line if len(line) <= MAX_ERROR_CHARACTERS else line[: MAX_ERROR_CHARACTERS - 1] + "…"


@lru_cache(maxsize=64)
def _parsed(url: str) -> httpx.URL:
    """Return an address that is called again and again."""
    return httpx.URL(url)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a Retry-After header asks for, from a number or an HTTP date; None without a usable one.

    A date is measured against the answer's own Date, so that a wrong clock on either side does no harm.
    """
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII):
        seconds = float(value)
        return seconds if seconds <= LONGEST_RETRY_AFTER else None
    until = _http_date(value)
    if until is None:
        return None
    now = _http_date(headers.get("date", "")) or datetime.now(UTC)
    seconds = max(0.0, (until - now).total_seconds())
    return seconds if seconds <= LONGEST_RETRY_AFTER else None


def server_of(url: str) -> str:
    """Return scheme, host and path of an address: without user, query and fragment, which may hold keys."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")) or "the server"
    except ValueError:
        return "the server"


@lru_cache(maxsize=64)
def endpoint(base: str, path: str) -> str:
    """Return the address of one operation under a base address, whose query (`?api-version=…`) is kept."""
    parts = urlsplit(base)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, parts.query, ""))


def _http_date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _message_in(body: str) -> str:
    """Return the sentence in an error's JSON body, in the shapes that servers use; else the body."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(data, dict):
        return body
    error = data.get("error", data)
    if isinstance(error, str):
        return error
    if isinstance(error, dict):
        for key in ("message", "detail"):
            message = error.get(key)
            if isinstance(message, str) and message:
                code = error.get("code")
                return f"{message} ({code})" if isinstance(code, str) and code and code not in message else message
    return body


def _retry_delay_in(body: str) -> float | None:
    """Return the seconds that Google's `RetryInfo` asks for in an error's body; None without it."""
    if "retryDelay" not in body:
        return None
    found = re.search(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"', body, re.ASCII)
    seconds = float(found.group(1)) if found else None
    return seconds if seconds is not None and seconds <= LONGEST_RETRY_AFTER else None
