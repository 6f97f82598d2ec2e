"""Downloads of files that a workflow names: from checked addresses only, redirects looked at one by one, and never more than a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

import anyio

from agentloom import __version__
from agentloom.tools.addresses import Reach, read_target
from agentloom.tools.http_request import failure

if TYPE_CHECKING:
    import httpx

MOST_HOPS = 5
"""How many redirects are followed."""

TIMEOUT = 60.0
"""How long a download may take with all its redirects, in seconds."""

REDIRECTS = (301, 302, 303, 307, 308)
PACKED = ("", "identity", "gzip", "deflate")
"""How a body may be packed: once. Packed twice, a few bytes become gigabytes in one step."""


class Downloaded(NamedTuple):
    """What came: the bytes, and the media type that the server says, which may be empty."""

    data: bytes
    media_type: str


async def download(url: str, reach: Reach, most_bytes: int) -> Downloaded:
    """Return what lies at an address, at most ``most_bytes`` of it.

    Every hop is looked at before it is asked, and connects to an address that was looked at. Raises ``ValidationError`` for an address that is
    malformed, ``SandboxViolationError`` for one that ``reach`` refuses, ``OSError`` (``TimeoutError``) when nothing usable comes.
    """
    read_target(url)  # so that what follows may show its host
    import httpx

    from agentloom.tools.pinned import PinnedTransport

    where = shown(url)
    try:
        with anyio.fail_after(TIMEOUT):
            async with httpx.AsyncClient(
                transport=PinnedTransport(reach),
                timeout=TIMEOUT,
                follow_redirects=False,
                trust_env=False,
                headers={"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": f"agentloom/{__version__}"},
            ) as client:
                for _ in range(MOST_HOPS + 1):
                    async with client.stream("GET", url) as response:
                        if response.status_code in REDIRECTS and "location" in response.headers:
                            url = _next(url, response.headers["location"])
                            client.cookies.clear()
                            continue
                        return await _whole(response, where, most_bytes)
                raise OSError(f"{where} redirects more than {MOST_HOPS} times")
    except TimeoutError:
        raise TimeoutError(f"{where}: no answer within {TIMEOUT:g} s") from None
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict) as error:
        raise failure(error, where, TIMEOUT) from error


def shown(url: str) -> str:
    """Return an address without user, query and fragment, which may hold secrets."""
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _next(url: str, location: str) -> str:
    """Return where a redirect leads. Raises ``ValidationError``."""
    try:
        target = urljoin(url, location)
    except ValueError:
        target = location
    read_target(target)
    return target


async def _whole(response: httpx.Response, where: str, most_bytes: int) -> Downloaded:
    if response.status_code != 200:
        raise OSError(f"{where}: the server answers {response.status_code}")
    if response.headers.get("content-encoding", "").strip().lower() not in PACKED:
        raise OSError(f"{where}: the server packs its answer in a way that nobody asked for")
    announced = response.headers.get("content-length", "")
    too_large = OSError(f"{where} is larger than {most_bytes / 1024 / 1024:g} MB")
    if announced.isdecimal() and int(announced[:20]) > most_bytes:
        raise too_large
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > most_bytes:
            raise too_large
    return Downloaded(bytes(data), response.headers.get("content-type", "").partition(";")[0].strip().lower())
