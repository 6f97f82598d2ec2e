"""The connections to one server, kept open between calls: as many as there are calls at once.

httpx looks through all connections of a client at the beginning and the end of every request, so that a thousand calls at once on one
client cost a million looks. Here each client gets a few calls at once, and there are as many clients as that takes.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import anyio
import httpx
from anyio.lowlevel import current_token

CALLS_A_CLIENT = 8
"""How many calls one client makes at once."""

IDLE_SECONDS = 5.0
"""How long a connection without a call is kept; the next call that ends closes those that waited longer."""


@dataclass(slots=True, eq=False)
class Lane:
    """One client and how many calls it is making; ``since`` is when it made its last one, on the event loop's clock."""

    client: httpx.AsyncClient
    calls: int = 0
    since: float = 0.0


class Connections:
    """The clients of one server. They belong to the event loop that opened them: used in a second one, there are new ones."""

    def __init__(self, headers: Mapping[str, str], timeout: float) -> None:
        self._headers = headers
        self._timeout = timeout
        self._lanes: list[Lane] = []
        self._loop: object = None

    def take(self) -> Lane:
        """Return a client that has room for a call; it is given back when the call has ended."""
        loop = current_token()
        if self._loop != loop:
            self._lanes, self._loop = [], loop
        lane = next((lane for lane in self._lanes if lane.calls < CALLS_A_CLIENT), None)
        if lane is None:
            lane = Lane(self._client())
            self._lanes.append(lane)
        lane.calls += 1
        return lane

    async def give_back(self, lane: Lane) -> None:
        """Note that a call has ended; close clients that haven't been needed for a while."""
        lane.calls -= 1
        lane.since = now = anyio.current_time()
        if len(self._lanes) == 1:
            return
        idle = [each for each in self._lanes if not each.calls and now - each.since > IDLE_SECONDS]
        for each in idle:
            self._lanes.remove(each)
        for each in idle:
            await each.client.aclose()

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        lanes, self._lanes = self._lanes, []
        if self._loop != current_token():
            return
        for lane in lanes:
            await lane.client.aclose()

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._headers,
            timeout=self._timeout,
            follow_redirects=False,
            verify=_certificates(),
            # How many calls run at once is the engine's business.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_SECONDS),
        )


@cache
def _certificates() -> ssl.SSLContext:
    """Return the certificates that are trusted, loaded once for all providers: that takes 20 ms."""
    return httpx.create_ssl_context()
