"""Connections to checked addresses only: a name is resolved and looked at when the connection is made, and the connection goes there.

So a name that resolves to something else the second time (DNS rebinding) gains nothing. Host header and TLS keep the name. Proxies are not
used: behind one, nobody could say where a request goes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import httpx

from agentloom.tools.addresses import Address, Reach, Target, checked, read_target
from agentloom.tools.certificates import certificates

Check = Callable[[Target, Reach], Awaitable[list[Address]]]


class PinnedTransport(httpx.AsyncBaseTransport):
    """Sends each request to an address that ``reach`` allows; the next one is tried when one doesn't answer the connection.

    Raises ``SandboxViolationError`` before anything is sent.
    """

    def __init__(self, reach: Reach, inner: httpx.AsyncBaseTransport | None = None, check: Check = checked) -> None:
        self._reach = reach
        self._check = check
        self._inner = inner or httpx.AsyncHTTPTransport(verify=certificates(), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        target = read_target(str(request.url))
        try:
            addresses = await self._check(target, self._reach)
        except OSError as error:
            raise httpx.ConnectError(f"`{target.host}` can't be found: {error}", request=request) from error
        last: httpx.TransportError | None = None
        for address in addresses:
            try:
                return await self._inner.handle_async_request(_pinned(request, target, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                last = error
                await anyio.lowlevel.checkpoint()
        assert last is not None
        raise last

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _pinned(request: httpx.Request, target: Target, address: Address) -> httpx.Request:
    """Return the same request to one address; its Host header is set already, and TLS asks for the name."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": target.host},
    )
