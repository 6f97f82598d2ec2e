"""The certificates that requests trust, loaded once: that takes longer than many a request. httpx is imported by the first request."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


@cache
def certificates() -> ssl.SSLContext:
    """Return the certificates that are trusted."""
    import httpx

    return httpx.create_ssl_context()
