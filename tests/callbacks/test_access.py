"""Who gets in: tokens, cookies, foreign pages, other machines; and clients that are slow or broken."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.callbacks import server as module
from agentloom.callbacks.access import Access, is_own_page
from agentloom.callbacks.deciding import in_files
from agentloom.callbacks.server import Settings
from agentloom.checkpointing import FileCheckpointer
from tests.callbacks.conftest import Answer, Server, StartServer, done, publish
from tests.cli.conftest import Call
from tests.cli.conftest import call as call  # a fixture

TOKEN = "correct horse battery staple"
FORM = "application/x-www-form-urlencoded"
Pause = Callable[..., None]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", "127.0.0.1.example.com"])
def test_other_machines_need_a_token(call: Call, host: str) -> None:
    """CB-1, case: loopback by default; refused before anything listens."""
    refused = call("callback-server", "--host", host)
    assert (refused.code, refused.out) == (2, "")
    assert f"`--host {host}` lets other machines in, so a token is needed" in refused.err
    assert call("callback-server", "--token", " ").code == 2


def test_a_port_that_is_taken(call: Call) -> None:
    """Said in a line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = call("callback-server", "--port", str(port))
    assert refused.code == 2
    assert f"can't listen on 127.0.0.1, port {port}: " in refused.err


def test_tokens(serve: StartServer, pause: Pause, tmp_path: Path) -> None:
    """CB-1: as Bearer or in a header of its own, for everything; and a page that asks for it."""
    pause("r1", publish(tmp_path))
    server = serve(env={"AGENTLOOM_CALLBACK_TOKEN": TOKEN})
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"X_AgentLoom_Token": TOKEN + "x"},
        {"Authorization": TOKEN},
    ):
        for method, path in (
            ("GET", "/pending"),
            ("POST", "/approve/r1"),
            ("POST", "/webhook"),
            ("POST", "/reject/no"),
        ):
            answer = server.ask(method, path, **headers)
            assert (answer.status, answer.json) == (401, {"error": "the token is missing or wrong"})
            assert answer.headers["www-authenticate"] == "Bearer"
    assert server.ask("GET", "/pending", Authorization=f"bearer {TOKEN}").status == 200
    assert server.ask("GET", "/pending", X_AgentLoom_Token=TOKEN, Host="build.example.com").status == 200
    page = server.ask("GET", "/")
    assert 'name="token"' in page.text
    assert "r1" not in page.text


def sign_in(server: Server, token: str = TOKEN, **headers: str) -> Answer:
    return server.ask("POST", "/login", f"token={token.replace(' ', '+')}", Content_Type=FORM, **headers)


def hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of the first form."""
    form = page.partition('action="/decide">')[2].partition("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def test_the_page_signs_in_and_decides(serve: StartServer, pause: Pause, tmp_path: Path) -> None:
    """A strict cookie, a form of ours, nothing from a foreign page, and no decision about what one hasn't seen."""
    pause("r1", publish(tmp_path))
    server = serve(env={"AGENTLOOM_CALLBACK_TOKEN": TOKEN})
    assert sign_in(server, "wrong").status == 401
    assert sign_in(server, Origin="https://evil.example").status == 403
    entered = sign_in(server, Origin=f"http://127.0.0.1:{server.port}", Sec_Fetch_Site="same-origin")
    cookie = entered.headers["set-cookie"]
    assert (entered.status, entered.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    session = cookie.partition(";")[0]
    page = server.ask("GET", "/", Cookie=session)
    fields = hidden(page.text)
    assert fields["run_id"] == "r1"

    def press(decision: str, changes: dict[str, str] | None = None, **headers: str) -> Answer:
        from urllib.parse import urlencode

        body = urlencode({**fields, "decision": decision, **(changes or {})})
        return server.ask("POST", "/decide", body, **{"Cookie": session, "Content_Type": FORM, **headers})

    assert press("approved", Cookie="agentloom_session=x").status == 403
    assert press("approved", {"csrf": "x"}).status == 403
    assert press("approved", Origin="https://evil.example").status == 403
    assert press("approved", Sec_Fetch_Site="cross-site").status == 403
    assert press("maybe").status == 400
    assert press("approved", {"updated_at": "2020-01-01"}).status == 409
    assert press("approved", {"step_id": "other"}).status == 409
    assert press("approved", {"run_id": "../x"}).status == 400
    answer = press("rejected")
    assert (answer.status, answer.headers["location"]) == (303, "/?done=rejected&run=r1")
    server.wait_for("run r1: success")
    assert done(tmp_path) == ["rejected"]
    assert "Run r1 is rejected and goes on." in server.ask("GET", "/?done=rejected&run=r1", Cookie=session).text
    assert press("approved").status == 409
    # The cookie is for the page alone: programs bring the token.
    assert server.ask("GET", "/pending", Cookie=session).status == 401


def test_the_page_holds_nothing_foreign(serve: StartServer, pause: Pause, tmp_path: Path) -> None:
    """Names and values are escaped, the policy forbids scripts, and a crafted link says nothing of its own."""
    name = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    data = publish(tmp_path, name=name)
    data["config"] = {"provider": "mock", "model": "m"}
    data["state"] = {"x": "</pre><script>alert(3)</script>"}
    say = {"command": "printf '%s' '</pre><script>alert(4)</script>'"}
    data["steps"].insert(0, {"id": "s", "type": "tool", "tool_name": "shell_command", "tool_args": say})
    pause("r1", data)
    server = serve()
    page = server.ask("GET", "/?done=approved&run=%3Cscript%3E")
    assert "<script" not in page.text
    assert "<img" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "alert(4)" in page.text
    assert "goes on" not in page.text
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for header, value in {
        "x-content-type-options": "nosniff", "x-frame-options": "DENY", "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin",
    }.items():  # fmt: skip
        assert page.headers[header] == value


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost", True), ("localhost:8642", True), ("LOCALHOST.", True), ("127.0.0.1:1", True), ("127.9.9.9", True),
        ("[::1]:8642", True), ("", False), ("evil.example", False), ("localhost.evil.example", False), ("127.0.0.1.nip.io", False),
        ("192.168.0.1", False), ("[::1", False), ("a:b:c", False),
    ],
)  # fmt: skip
def test_without_a_token_only_this_machine_s_names_count(host: str, ours: bool) -> None:
    """A foreign name that was made to point here is not ours."""
    assert Access(None).is_meant_for_us({"host": host}) is ours
    assert Access("t").is_meant_for_us({"host": host})


def test_what_comes_from_which_page() -> None:
    """Programs send neither header; browsers send at least one with a form."""
    assert is_own_page({"host": "a:1"})
    assert is_own_page({"host": "a:1", "origin": "http://a:1", "sec-fetch-site": "same-origin"})
    assert is_own_page({"host": "a:1", "sec-fetch-site": "none"})
    for headers in ({"origin": "http://a:2"}, {"origin": "null"}, {"origin": ""}, {"sec-fetch-site": "same-site"}):
        assert not is_own_page({"host": "a:1", **headers})


@pytest.mark.anyio
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"])  # fmt: skip
async def test_slow_clients_are_let_go(kept: FileCheckpointer, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """A head or a body that never comes holds no connection for ever; others are served meanwhile."""
    from agentloom.callbacks import app

    monkeypatch.setattr(module, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(app, "BODY_SECONDS", 0.2)

    enough = anyio.Event()

    async def until_enough(server: Any, decisions: Any) -> None:
        await enough.wait()
        server.should_exit = True

    monkeypatch.setattr(module, "_heed_signals", until_enough)
    ready = anyio.Event()
    urls: list[str] = []

    def tell(url: str) -> None:
        urls.append(url)
        ready.set()

    async with anyio.create_task_group() as group:
        group.start_soon(module._serve, Settings(in_files(kept, 8), "127.0.0.1", 0, None), tell)
        await ready.wait()
        port = int(urls[0].rpartition(":")[2])
        with anyio.fail_after(20):
            async with await anyio.connect_tcp("127.0.0.1", port) as slow:
                if said:
                    await slow.send(said)
                async with await anyio.connect_tcp("127.0.0.1", port) as quick:
                    await quick.send(b"GET /pending HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    assert (await quick.receive()).startswith(b"HTTP/1.1 200")
                answer = b""
                async for chunk in slow:
                    answer += chunk
                assert answer == b"" or answer.startswith(b"HTTP/1.1 408")
        enough.set()
