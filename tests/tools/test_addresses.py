"""The gate for addresses: every way to write an internal one, every address of a name, and again when it connects."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

import anyio
import httpx
import pytest

from agentloom.errors import SandboxViolationError, ValidationError
from agentloom.tools.addresses import Address, Reach, Target, checked, is_internal, read_target
from agentloom.tools.pinned import PinnedTransport

pytestmark = pytest.mark.anyio

REACH = Reach("webhook")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://LOCALHOST:8080/x",
        "http://localhost./",
        "http://a.b.localhost/",
        "http://loc%61lhost/",
        "http://ｌｏｃａｌｈｏｓｔ/",
        "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
        "http://127.0.0.1/",
        "http://127.0.0.1./",
        "http://127.1/",
        "http://127.0.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://%31%32%37.0.0.1/",
        "http://１２７.０.０.１/",
        "http://127。0。0。1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.1.2.3/",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://224.0.0.1/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::127.0.0.1]/",
        "http://[2002:7f00:1::]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::1]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        "http://user:pw@127.0.0.1/",
        "http://example.com@127.0.0.1/",
    ],
)
def test_internal_targets_are_refused_however_they_are_written(url: str) -> None:
    """WH-2, SB-6."""
    with pytest.raises(
        SandboxViolationError, match=r"^Sandbox violation \(webhook\): `.*(internal address|this machine)$"
    ):
        REACH.look_at(read_target(url))
    Reach("webhook", internal=True).look_at(read_target(url))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "//example.com/",
        "example.com",
        "http://",
        "http:///x",
        "http://exa mple.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com\n/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://1.2.3.4.5/",
        "http://999.1.1.1/",
        "http://0x/",
        "http://a..b/",
        "http://%ff/",
        "http://a%2fb/",
        "http://a%00b/",
        "http://example.com../",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """WH-2: http and https only, and hosts that can be read in one way."""
    with pytest.raises(ValidationError):
        read_target(url)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://hooks.example.com/x", "hooks.example.com", 443),
        ("HTTP://EXAMPLE.com.:8080/x?y", "example.com", 8080),
        ("https://bücher.example/", "xn--bcher-kva.example", 443),
        ("http://8.8.8.8/", "8.8.8.8", 80),
        ("http://[2606:4700::1111]/", "2606:4700::1111", 80),
        ("http://[2002:808:808::]/", "2002:808:808::", 80),
        ("http://[64:ff9b::808:808]/", "64:ff9b::808:808", 80),
    ],
)
def test_public_targets_pass(url: str, host: str, port: int) -> None:
    """In one form."""
    target = read_target(url)
    assert (target.host, target.port) == (host, port)
    REACH.look_at(target)


def test_domains_and_the_network_switch() -> None:
    """WH-2, SB-4: with the sandbox on, an exact match of the host, in whatever form it is written."""
    only = Reach("webhook", domains=("Hooks.Example.com.", "bücher.example"))
    only.look_at(read_target("https://hooks.example.com/x"))
    only.look_at(read_target("https://xn--bcher-kva.example/x"))
    for url in ("https://example.com/", "https://a.hooks.example.com/", "https://hooks.example.com.evil.org/"):
        with pytest.raises(SandboxViolationError, match="is not among the `allowed_domains`"):
            only.look_at(read_target(url))
    with pytest.raises(SandboxViolationError, match="`allow_network` is off"):
        Reach("webhook", network=False).look_at(read_target("https://example.com/"))
    with pytest.raises(SandboxViolationError):  # listed is not trusted
        Reach("webhook", domains=("127.0.0.1",)).look_at(read_target("http://127.0.0.1/"))
    Reach("http_request", domains=("127.0.0.1",), trusted=("127.0.0.1",)).look_at(read_target("http://127.0.0.1/"))


@pytest.mark.parametrize(
    "records", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["93.184.216.34", "::1"], ["fe80::1%lo"]]
)
async def test_every_record_of_a_name_counts(records: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """WH-2: one internal record among public ones is enough."""

    async def found(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (record, port)) for record in records]

    monkeypatch.setattr(anyio, "getaddrinfo", found)
    with pytest.raises(SandboxViolationError, match=r"`evil\.example` \(.*\) is an internal address"):
        await checked(read_target("http://evil.example/"), REACH)


class Sent(httpx.AsyncBaseTransport):
    """Stands for the network: keeps each request, and answers those to some addresses."""

    def __init__(self, *answering: str) -> None:
        self.answering = answering
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.host not in self.answering:
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response(200)


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """SB-6: pinned, with the Host header and the name for TLS kept; the next address is tried when one doesn't answer."""
    inner = Sent("2606:4700::1111")

    async def check(target: Target, reach: Reach) -> list[Address]:
        return [ip_address("93.184.216.34"), ip_address("2606:4700::1111")]

    async with httpx.AsyncClient(transport=PinnedTransport(REACH, inner, check)) as client:
        answer = await client.post("https://hooks.example.com:8443/x?y=1", content=b"hello")
    assert answer.status_code == 200
    assert [str(request.url) for request in inner.requests] == [
        "https://93.184.216.34:8443/x?y=1",
        "https://[2606:4700::1111]:8443/x?y=1",
    ]
    for request in inner.requests:
        assert request.headers["host"] == "hooks.example.com:8443"
        assert request.extensions["sni_hostname"] == "hooks.example.com"


async def test_a_name_that_changes_its_mind_is_refused_at_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """SB-6: public when it is looked at first, loopback when the connection is made: nothing is sent."""
    answers = iter(["93.184.216.34", "127.0.0.1"])

    async def found(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(anyio, "getaddrinfo", found)
    await checked(read_target("http://evil.example/"), REACH)
    inner = Sent("127.0.0.1", "93.184.216.34")
    async with httpx.AsyncClient(transport=PinnedTransport(REACH, inner)) as client:
        with pytest.raises(SandboxViolationError):
            await client.get("http://evil.example/")
    assert inner.requests == []


@pytest.mark.parametrize(
    ("address", "internal"),
    [("1.1.1.1", False), ("172.32.0.1", False), ("100.128.0.1", False), ("2a00:1450::1", False), ("5f00::1", True)],
)
def test_the_edges_of_networks(address: str, internal: bool) -> None:
    """Neighbours of private networks are public; IPv6 beyond global unicast is not."""
    assert is_internal(ip_address(address)) is internal
