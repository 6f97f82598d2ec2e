"""Who may ask the callback server: by token, by a browser's session, and never a page of somebody else."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from ipaddress import ip_address
from secrets import token_urlsafe
from urllib.parse import urlsplit

COOKIE = "agentloom_session"
TOKEN_HEADER = "x-agentloom-token"


class Access:
    """What requests need. Without a ``token`` the server listens on loopback only, and requests must be meant for it.

    Header names are in lower case.
    """

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._session = token_urlsafe(32)
        self.csrf = token_urlsafe(32)

    @property
    def needs_token(self) -> bool:
        """Whether a token is needed."""
        return self._token is not None

    @property
    def session(self) -> str:
        """The value of a browser's cookie after it gave the token."""
        return self._session

    def is_token(self, given: str) -> bool:
        """Tell whether a text is the token, in a time that tells nothing about it."""
        return self._token is not None and _same(given, self._token)

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Tell whether a request brings the token."""
        scheme, _, bearer = headers.get("authorization", "").strip().partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else headers.get(TOKEN_HEADER, "").strip()
        return self.is_token(given)

    def has_session(self, cookies: Mapping[str, str]) -> bool:
        """Tell whether a browser has given the token before; without a token every browser counts."""
        return self._token is None or _same(cookies.get(COOKIE, ""), self._session)

    def is_csrf(self, given: str) -> bool:
        """Tell whether a form is one of ours."""
        return _same(given, self.csrf)

    def is_meant_for_us(self, headers: Mapping[str, str]) -> bool:
        """Tell whether a request names this machine; a foreign name that was made to point here (DNS rebinding) doesn't."""
        return self._token is not None or is_loopback(_host_of(headers.get("host", "")))


def is_own_page(headers: Mapping[str, str]) -> bool:
    """Tell whether a request comes from no page at all, or from one of ours: a foreign one mustn't decide in its visitor's name."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(value: str) -> str:
    found = re.fullmatch(r"\[([^\[\]]+)\](?::\d+)?|([^:\[\]]+)(?::\d+)?", value)
    return "" if found is None else found.group(1) or found.group(2)


def _same(one: str, other: str) -> bool:
    # Hashes, so that not even the length can be told.
    return hmac.compare_digest(
        sha256(one.encode("utf-8", "replace")).digest(), sha256(other.encode("utf-8", "replace")).digest()
    )
