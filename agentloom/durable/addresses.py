"""Addresses of databases, as users write them."""

from __future__ import annotations

SQLITE = "sqlite:///"


def without_password(url: str) -> str:
    """Return an address as it may be told: without any password."""
    scheme, separator, rest = url.partition("://")
    login, at, host = rest.rpartition("@")
    address, mark, query = host.partition("?")
    kept = [part for part in query.split("&") if not part.partition("=")[0].endswith("password")]
    return f"{scheme}{separator}{login.partition(':')[0]}{at}{address}{mark if any(kept) else ''}{'&'.join(kept)}"
