"""The built-in tool that makes HTTP requests. httpx is imported by the first request."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import anyio

from agentloom.errors import ValidationError
from agentloom.tools.addresses import Reach, read_target
from agentloom.tools.base import BaseTool
from agentloom.tools.bodies import ACCEPTED, read_body
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.certificates import certificates
from agentloom.tools.keys import HEADER, idempotency_key
from agentloom.tools.policy import Policy, current_policy, narrowed

if TYPE_CHECKING:
    import httpx

MAX_BODY_BYTES = 32 * 1024 * 1024
"""The largest body that is read, after decompression: it becomes state, which is kept in memory and in checkpoints."""

FAILURES: Mapping[str, str] = {
    "ConnectError": "can't connect",
    "ProxyError": "the proxy refuses",
    "ReadError": "the server dropped the connection",
    "WriteError": "the server dropped the connection",
    "CloseError": "the server dropped the connection",
    "NetworkError": "the connection failed",
    "RemoteProtocolError": "the server broke off its answer, or speaks no proper HTTP",
    "ProtocolError": "the server speaks no proper HTTP",
    "TransportError": "the connection failed",
    "DecodingError": "the answer can't be decompressed",
    "TooManyRedirects": "too many redirects",
    "RequestError": "the request failed",
    "HTTPStatusError": "the server refused the request",
    "HTTPError": "the request failed",
    "CookieConflict": "the server's cookies contradict each other",
    "StreamConsumed": "the answer was read twice",
    "StreamClosed": "the answer was closed too early",
    "ResponseNotRead": "the answer was not read",
    "RequestNotRead": "the request was not read",
    "StreamError": "the answer could not be read",
}
"""What httpx's exceptions mean, by class name; each may pass on another attempt."""

TIMEOUTS = ("ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout", "TimeoutException")
MALFORMED = ("InvalidURL", "UnsupportedProtocol", "LocalProtocolError")
"""The request itself is wrong, whatever the server says."""

_NO_HEADERS: dict[str, str] = {}


class HttpRequest(BaseTool):
    """`http_request`."""

    name = "http_request"
    description = BUILTIN_TOOLS[name].description
    returns = BUILTIN_TOOLS[name].returns

    def __init__(self, policy: Policy | None = None, folder: Path | None = None) -> None:
        self._policy = policy

    async def execute(
        self,
        url: Annotated[str, "The address, `http` or `https`."],
        method: Annotated[Literal["GET", "POST", "PUT", "DELETE"], "The HTTP method."] = "GET",
        headers: Annotated[dict[str, str], "Headers to send, by name."] = _NO_HEADERS,
        body: Annotated[str, "The text to send as the request's body."] = "",
        timeout: Annotated[  # noqa: ASYNC109 - an argument of the tool, by its documented name
            float, "Seconds until the request is given up; 0 means no limit.", {"minimum": 0}
        ] = 30,
    ) -> dict[str, Any]:
        """Return status code, headers (names in lower case) and body. A status of 400 or more is no error.

        Raises ``ValidationError`` for what can't be sent, ``TimeoutError``, and ``OSError`` when there is no proper answer.
        """
        policy = narrowed(self._policy, current_policy())
        reach = policy.reach() if policy is not None else None
        if reach is not None:
            _look_at(url, headers, reach)
        where = f"{method} {_address(url)}"
        sent_headers = {_header_name(name): _header_value(name, value) for name, value in headers.items()}
        if (key := idempotency_key()) and HEADER.lower() not in {name.lower() for name in headers}:
            sent_headers[HEADER.encode()] = key.encode()
        if "accept-encoding" not in {name.lower() for name in headers}:
            sent_headers[b"Accept-Encoding"] = ACCEPTED.encode()
        try:
            sent_body = body.encode()
        except UnicodeError:
            raise ValidationError("argument `body` holds half of a surrogate pair, which can't be sent") from None
        import httpx

        try:
            with anyio.fail_after(timeout or None):
                async with (
                    _client(timeout or None, reach) as client,
                    client.stream(method, url, headers=sent_headers, content=sent_body or None) as response,
                ):
                    received = await read_body(response, MAX_BODY_BYTES, where)
        except TimeoutError:
            raise TimeoutError(f"{where}: no answer within {timeout:g} s") from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict) as error:
            raise failure(error, where, timeout) from error
        return {
            "status_code": response.status_code,
            "headers": dict(response.headers),
            "body": received.decode(_charset(response.charset_encoding), "replace"),
        }


def _client(timeout: float | None, reach: Reach | None) -> httpx.AsyncClient:
    """Return a client that doesn't follow redirects; with ``reach``, one that looks at every address when it connects."""
    import httpx

    if reach is None:
        return httpx.AsyncClient(timeout=timeout, follow_redirects=False, verify=certificates())
    from agentloom.tools.pinned import PinnedTransport

    transport = PinnedTransport(reach)
    return httpx.AsyncClient(timeout=timeout, follow_redirects=False, transport=transport, trust_env=False)


def _look_at(url: str, headers: Mapping[str, str], reach: Reach) -> None:
    """Raise ``SandboxViolationError`` for an address that may not be asked, as far as it tells, or that can't be read.

    A header that names another host may not be sent: a server of many hosts would answer for that one.
    """
    try:
        target = read_target(url)
    except ValidationError as error:
        raise reach.refuse(str(error)) from None
    reach.look_at(target)
    if any(name.lower() == "host" for name in headers):
        raise reach.refuse("the header `Host` is set by the address alone; leave it out")


def failure(error: Exception, where: str, timeout: float) -> Exception:
    """Return our exception for one of httpx's; ``timeout`` is in seconds."""
    names = [kind.__name__ for kind in type(error).__mro__]
    detail = " ".join(str(error).split())
    detail = f" ({detail})" if detail else ""
    if any(name in TIMEOUTS for name in names):
        return TimeoutError(f"{where}: no answer within {timeout:g} s")
    if any(name in MALFORMED for name in names):
        return ValidationError(f"{where}: the request can't be sent{detail}")
    words = next((FAILURES[name] for name in names if name in FAILURES), "the request failed")
    return OSError(f"{where}: {words}{detail}")


def _charset(name: str | None) -> str:
    try:
        return codecs.lookup(name).name if name else "utf-8"
    except LookupError:
        return "utf-8"


def _address(url: str) -> str:
    """Return the address without user, query and fragment, which may hold secrets. Raises ``ValidationError`` when it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise ValidationError("argument `url` must be an address such as `https://host/path`")
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _header_name(name: str) -> bytes:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        raise ValidationError(
            "argument `headers` holds a name that no header can have; use letters, digits and hyphens"
        )
    return name.encode()


def _header_value(name: str, value: str) -> bytes:
    try:
        data = value.strip(" \t").encode()
    except UnicodeError:
        data = b"\n"
    if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", data):
        raise ValidationError(f"argument `headers.{name}` must be one line without control characters")
    return data
