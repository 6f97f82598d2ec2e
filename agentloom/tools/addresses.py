"""The gate before requests that leave the house: which addresses they may go to, however an address is written.

A host is brought to one form first (percent-encoding, full-width letters, trailing dot, IDN, numbers in any base), then looked at as a
name, then each address that it resolves to. ``agentloom.tools.pinned`` looks again when it connects, and connects to what was looked at.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

import anyio

from agentloom.errors import SandboxViolationError, ValidationError
from agentloom.records import record

Address: TypeAlias = IPv4Address | IPv6Address

SCHEMES = ("http", "https")
_PORTS = {"http": 80, "https": 443}

_INTERNAL_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network; 0.0.0.0 reaches this host
            "10.0.0.0/8",  # RFC 1918
            "100.64.0.0/10",  # carriers' NAT
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # a cloud's platform service behind a public address
            "169.254.0.0/16",  # link-local, where clouds keep their metadata
            "172.16.0.0/12",  # RFC 1918
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # relays from IPv6 to IPv4
            "192.168.0.0/16",  # RFC 1918
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
_INTERNAL_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")


class Target(NamedTuple):
    """Where a request goes. ``host`` is in its one form: ASCII, lower case, without a trailing dot; ``literal`` if it is an address."""

    scheme: str
    host: str
    port: int
    literal: Address | None


@record()
class Reach:
    """What may be reached. ``who`` is named in refusals; ``domains`` are the only hosts, if there are any, ``schemes`` the only schemes.

    ``trusted`` hosts may have internal addresses, and so may all if ``internal`` is true.
    """

    who: str
    network: bool = True
    domains: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    internal: bool = False
    schemes: tuple[str, ...] = SCHEMES

    def refuse(self, why: str) -> SandboxViolationError:
        """Return the refusal."""
        return SandboxViolationError(f"Sandbox violation ({self.who}): {why}")

    def look_at(self, target: Target) -> None:
        """Raise ``SandboxViolationError`` for a host that may not be asked, as far as its name tells."""
        if not self.network:
            raise self.refuse("`allow_network` is off")
        if target.scheme not in self.schemes:
            raise self.refuse(f"`{target.scheme}` is not among the `allowed_schemes`")
        if self.domains and target.host not in _same_form(self.domains):
            raise self.refuse(f"`{target.host}` is not among the `allowed_domains`")
        if self._may_be_internal(target.host):
            return
        if target.host == "localhost" or target.host.endswith(".localhost"):
            raise self.refuse(f"`{target.host}` is this machine")
        if target.literal is not None:
            self.look_at_addresses(target, (target.literal,))

    def look_at_addresses(self, target: Target, addresses: Sequence[Address]) -> None:
        """Raise ``SandboxViolationError`` if any of a host's addresses is internal."""
        if self._may_be_internal(target.host):
            return
        for address in addresses:
            if is_internal(address):
                where = f"`{target.host}`" if target.literal is not None else f"`{target.host}` ({address})"
                raise self.refuse(f"{where} is an internal address")

    def _may_be_internal(self, host: str) -> bool:
        return self.internal or (bool(self.trusted) and host in _same_form(self.trusted))


def read_target(url: str) -> Target:
    """Return where a URL leads. Raises ``ValidationError`` for one that is malformed or neither http nor https."""
    if not url.isprintable() or re.search(r"[\s\\]", url):
        raise ValidationError("the address holds a space, a backslash or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
    except ValueError:
        raise ValidationError("the address is malformed; write one such as `https://host/path`") from None
    if parts.scheme not in SCHEMES:
        raise ValidationError("the address must begin with `http://` or `https://`")
    if port == 0:
        raise ValidationError("the address names port 0")
    name, literal = _host(host)
    return Target(parts.scheme, name, port or _PORTS[parts.scheme], literal)


async def resolve(target: Target) -> list[Address]:
    """Return every address of a host, each once, in the system's order. Raises ``OSError`` for a name that has none."""
    if target.literal is not None:
        return [target.literal]
    found = await anyio.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in found))


async def checked(target: Target, reach: Reach) -> list[Address]:
    """Return the addresses of a host that may be reached, all of them looked at. Raises ``SandboxViolationError``, ``OSError``."""
    reach.look_at(target)
    addresses = await resolve(target)
    reach.look_at_addresses(target, addresses)
    if not addresses:
        raise OSError(f"`{target.host}` has no address")
    return addresses


def is_internal(address: Address) -> bool:
    """Tell whether an address belongs to this machine, a private network, or nobody: everything but public hosts."""
    if isinstance(address, IPv4Address):
        return any(address in network for network in _INTERNAL_V4) or not address.is_global
    number = int(address)
    if address in _MAPPED or address in _TRANSLATED:
        return is_internal(IPv4Address(number & 0xFFFFFFFF))
    if address in _SIX_TO_FOUR:
        return is_internal(IPv4Address((number >> 80) & 0xFFFFFFFF))
    if address not in _PUBLIC_V6:
        return True
    return any(address in network for network in _INTERNAL_V6) or not address.is_global


def _host(written: str) -> tuple[str, Address | None]:
    """Return a host in its one form, and the address that it is, if it is one. Raises ``ValidationError``."""
    malformed = ValidationError("the address has no usable host")
    try:
        host = unquote(written, errors="strict") if "%" in written else written
    except UnicodeDecodeError:
        raise malformed from None
    if ":" in host:  # urlsplit takes colons in brackets only; a zone (`%eth0`) is none of a URL's business
        try:
            address = IPv6Address(host)
        except ValueError:
            raise malformed from None
        if address.scope_id is not None:
            raise malformed
        return str(address), address
    host = unicodedata.normalize("NFKC", host).lower().replace("\u3002", ".").removesuffix(".")
    if not host.isascii():
        host = _ascii(host, malformed)
    if not re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", host) or len(host) > 253:
        raise malformed
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", host.rpartition(".")[2]):
        # What ends in a number is an address, in one of the forms that the system's own parser takes: `127.1`, `0x7f000001`, `0177.0.0.1`.
        try:
            literal = IPv4Address(socket.inet_aton(host))
        except OSError:
            raise malformed from None
        return str(literal), literal
    return host, None


def _ascii(host: str, malformed: ValidationError) -> str:
    """Return a name in letters of other scripts as it stands in the DNS."""
    import httpx

    try:
        return httpx.URL(f"http://{host}").raw_host.decode("ascii").removesuffix(".")
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise malformed from None


def _same_form(names: Sequence[str]) -> set[str]:
    found = set()
    for name in names:
        try:
            found.add(_host(name)[0])
        except ValidationError:
            continue  # no host can have that name
    return found
