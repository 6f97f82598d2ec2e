"""What the server survives: odd messages, requests about texts that are gone, cancelled work, attempts to end it from inside."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.text import Source
from agentloom_lsp.dispatch import run_session
from agentloom_lsp.handshake import shake_hands
from agentloom_lsp.notifications import NOTIFICATIONS
from agentloom_lsp.requests import REQUESTS
from agentloom_lsp.transport import LONGEST_HEAD, Channel
from tests.lsp.asking import FOLLOWING, items_of, params_of
from tests.lsp.peer import PULLING, SERVER, Local, Process, Refused

GOOD = "name: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: hi\n"
BAD = GOOD + "    depends_on: [zz]\n"
URI = "file:///nowhere/flow.loom.yaml"
HERE = {"start": {"line": 5, "character": 18}, "end": {"line": 5, "character": 18}}
CANCELLED, MODIFIED, FAILED = -32800, -32801, -32803
MAY_REFUSE = ("textDocument/rename", "textDocument/prepareRename", "codeAction/resolve")
"""Requests that are refused with a reason where they make no sense."""


@pytest.fixture
def peer() -> Iterator[Local]:
    with Local() as peer:
        peer.initialize()
        yield peer
        assert peer.leave() == 0


def codes(reports: list[dict[str, Any]]) -> list[str]:
    return [report["code"] for report in reports]


def is_alive(peer: Local, uri: str = "file:///nowhere/still.loom.yaml") -> bool:
    """Tell whether the server still takes documents and answers."""
    peer.open(uri, BAD)
    return codes(peer.request("textDocument/diagnostic", about(uri))["items"]) == ["AL202"]


def refusal(peer: Local, method: str, params: Any) -> int | None:
    """Return the code of the error that answers a request; None for any other answer."""
    return refused(peer, peer.start(method, params))


def taken(peer: Local) -> None:
    """Wait until the server has taken in all that was sent so far."""
    assert refusal(peer, "textDocument/nonsense", {}) == -32601


def refused(peer: Local, number: int) -> int | None:
    try:
        peer.answer(number)
    except Refused as error:
        return int(error.code)
    return None


def about(uri: str = URI, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, **more}


def actions(**more: Any) -> dict[str, Any]:
    return about(range=HERE, context={"diagnostics": []}, **more)


class Gate:
    """A server whose checks of texts with `wait` in them end when the test says so; ``began`` is set when one begins."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self, channel: Channel) -> int:
        client = shake_hands(channel.receive, channel.send)
        assert client
        return run_session(channel, client, self._door, AnalysisCache)

    def _door(self, source: Source, *rest: Any) -> WorkflowDocument:
        if "wait" in source.text:
            self.began.set()
            assert self.go.wait(30)
        return analyze(source, *rest)


# --- odd messages

FIELDS = [
    "textDocument",
    "uri",
    "version",
    "text",
    "contentChanges",
    "range",
    "start",
    "end",
    "line",
    "character",
    "position",
    "context",
    "settings",
    "agentloom",
    "changes",
    "event",
    "added",
    "token",
    "id",
    "files",
    "type",
    "previousResultIds",
    "command",
    "arguments",
    "query",
    "item",
    "data",
    "newName",
    "positions",
    "value",
]
SCRAPS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1000, 2**40)
    | st.integers(max_value=0)
    | st.floats()
    | st.sampled_from(["", "x", URI, "\ud800", "agentloom"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
METHODS = st.sampled_from(
    sorted(
        {*NOTIFICATIONS, *(r.method for r in REQUESTS), "$/cancelRequest", "$/setTrace", "initialize", "window/x", ""}
    )
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": st.integers(900, 903) | SCRAPS,
        "method": METHODS | SCRAPS,
        "params": SCRAPS,
        "result": SCRAPS,
        "error": SCRAPS,
    },
)
PROPER = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": METHODS, "params": SCRAPS}, optional={"id": st.integers(900, 903)}
)


@settings(max_examples=15, deadline=None)
@given(early=st.lists(MESSAGES, max_size=10), messages=st.lists(MESSAGES | PROPER, min_size=20, max_size=40))
def test_no_message_is_too_odd(early: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    """Made-up messages, before the client has introduced itself and after: the server answers the next proper one."""
    with Local() as peer:
        for message in early:
            if message.get("method") != "initialize" and not isinstance(message.get("id"), int):
                peer.send(**{**message, "jsonrpc": "2.0"})
        peer.initialize(PULLING)
        peer.open(URI, BAD)
        for message in messages:
            body = json.dumps(message).encode()
            peer.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        peer.open(URI, BAD)
        assert codes(peer.request("textDocument/diagnostic", about())["items"]) == ["AL202"]
        assert peer.leave() == 0


def test_every_request_of_the_wrong_shape_is_answered(peer: Local) -> None:
    """Each method with nothing, a number, a list, an empty object: an answer or a proper error, never silence."""
    peer.open(URI, BAD)
    for request in REQUESTS:
        for params in (None, 3, [], {}, {"textDocument": None}, {"textDocument": {"uri": 3}}):
            assert refusal(peer, request.method, params) in (None, -32602), (request.method, params)
    assert is_alive(peer)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 99999999999999999999999999999999\r\n\r\n",
        b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"content-length:2\r\n\r\n{}",
        b"\r\n\r\n",
        b"Content-Length: 0\r\n\r\n",
    ],
)
def test_odd_heads_are_passed_over(peer: Local, head: bytes) -> None:
    """A head without a sensible length has no text; what follows is read as ever."""
    peer.raw(head)
    assert is_alive(peer)


def test_half_a_message_is_the_end() -> None:
    """The client dies in the middle of a message."""
    with Local() as peer:
        peer.initialize()
        peer.raw(b'Content-Length: 1000\r\n\r\n{"jsonrpc": "2.0", ')
        assert peer.hang_up() == 1


def test_another_protocol_is_the_end() -> None:
    """What never comes to an end of its head is no message; the server doesn't fill its memory with it."""
    with Local() as peer:
        peer.initialize()
        for _ in range(3):
            peer.raw(b"GET / HTTP/1.1 " * (LONGEST_HEAD // 15))
        assert peer._code.get(timeout=30) == 1


def test_a_huge_message(peer: Local) -> None:
    """Fifteen megabytes in one message: a long document, opened and edited."""
    text = GOOD + "".join(f"# {'x' * 990}\n" for _ in range(15_000))
    peer.open(URI, text)
    assert peer.published(URI, 1) == []
    version = peer.change(URI, "    depends_on: [zz]\n", 5, 0, 5, 0)
    assert codes(peer.published(URI, version)) == ["AL202"]


def test_a_batch_is_refused(peer: Local) -> None:
    """JSON-RPC's lists of messages are no part of the protocol: one error, nothing of it is done."""
    body = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}]).encode()
    peer.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    answer = peer.until(lambda message: "error" in message)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert is_alive(peer)


@pytest.mark.parametrize("answer", [None, 3, "x", [], {}, [[[]]], {"applied": "perhaps"}, [{"agentloom": 3}]])
def test_any_answer_of_the_client_is_taken(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The client answers every request of the server with the same nonsense."""
    with Local() as peer:
        for method in ("client/registerCapability", "workspace/configuration", "window/workDoneProgress/create"):
            peer.answers[method] = answer
        peer.send(id="agentloom-99", result=answer)
        peer.initialize()
        peer.send(id="agentloom-0", error=answer)
        peer.send(id=["x"], result=answer)
        assert is_alive(peer)
        assert peer.leave() == 0
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


# --- requests about texts that are gone


def test_an_answer_about_a_place_is_never_about_another_text() -> None:
    """A request names a place, and the text changes before it is answered: `ContentModified`."""
    gate = Gate()
    with Local(gate) as peer:
        peer.initialize()
        peer.open(URI, BAD.replace("hi", "wait"))
        gate.began.wait(30)
        number = peer.start("textDocument/codeAction", actions())
        peer.change(URI, "# new\n", 0, 0, 0, 0)
        taken(peer)
        gate.go.set()
        with pytest.raises(Refused) as caught:
            peer.answer(number)
        assert caught.value.code == MODIFIED
        assert peer.leave() == 0


def test_completion_is_about_the_text_of_the_question() -> None:
    """Typing goes on while the menu is worked out: the client fits what comes to it, and a refusal would leave the menu closed."""
    gate = Gate()
    with Local(gate) as peer:
        peer.initialize()
        peer.open(URI, BAD.replace("hi", "wait"))
        gate.began.wait(30)
        peer.change(URI, "    t\n", 6, 0, 6, 0)
        number = peer.start("textDocument/completion", about(position={"line": 6, "character": 5}))
        peer.change(URI, "em", 6, 5, 6, 5)
        peer.change(URI, "# new\n", 0, 0, 0, 0)
        taken(peer)
        gate.go.set()
        items = {item["label"]: item for item in peer.answer(number)["items"]}
        place = {"start": {"line": 6, "character": 4}, "end": {"line": 6, "character": 5}}
        assert items["temperature"]["textEdit"]["range"] == place
        assert peer.leave() == 0


def test_an_answer_about_the_whole_text_is_about_the_newest() -> None:
    """A request that names no place is answered for the text as it is now."""
    gate = Gate()
    with Local(gate) as peer:
        peer.initialize(PULLING)
        peer.open(URI, BAD.replace("hi", "wait"))
        gate.began.wait(30)
        number = peer.start("textDocument/diagnostic", about())
        peer.change(URI, "", 5, 0, 6, 0)
        taken(peer)
        gate.go.set()
        assert peer.answer(number)["items"] == []
        assert peer.leave() == 0


def test_a_request_about_a_document_that_is_closed_meanwhile() -> None:
    """Its answer is empty; it wasn't the client who called it off."""
    gate = Gate()
    with Local(gate) as peer:
        peer.initialize(PULLING)
        peer.open(URI, BAD.replace("hi", "wait"))
        gate.began.wait(30)
        number = peer.start("textDocument/diagnostic", about())
        peer.close_document(URI)
        taken(peer)
        gate.go.set()
        assert peer.answer(number) == {"kind": "full", "items": []}
        assert is_alive(peer)
        assert peer.leave() == 0


@pytest.mark.parametrize("request_", REQUESTS, ids=[request.method for request in REQUESTS])
def test_every_request_can_be_cancelled(request_: Any) -> None:
    """While its check is under way, and while it is still in the queue behind another: refused as cancelled, at once."""
    gate = Gate()
    item = {"name": "a", "kind": 12, "uri": URI, "range": HERE, "selectionRange": HERE}
    params = {
        **actions(),
        "position": HERE["start"],
        "positions": [HERE["start"]],
        "previousResultIds": [],
        "query": "",
        "item": item,
        "newName": "b",
    }
    with Local(gate) as peer:
        peer.initialize(PULLING)
        other = "file:///nowhere/other.loom.yaml"
        peer.open(URI, BAD.replace("hi", "wait"))
        gate.began.wait(30)
        peer.open(other, BAD)
        running = peer.start(request_.method, params)
        queued = peer.start(request_.method, {**params, "textDocument": {"uri": other}})
        for number in (running, queued):
            peer.notify("$/cancelRequest", {"id": number})
        for number in (running, queued):
            # Those that need no check are answered before they can be called off.
            assert refused(peer, number) in (None, CANCELLED, -32602)
        gate.go.set()
        assert is_alive(peer)
        assert peer.leave() == 0


# --- from inside


def test_nothing_inside_can_end_the_server(peer: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sys.exit` in a handler, in a check or in a notification is a failure like any other."""
    peer.open(URI, BAD)
    peer.published(URI, 1)
    monkeypatch.setattr("agentloom_lsp.features.actions.offers", lambda *arguments: sys.exit(3))
    assert peer.request("textDocument/codeAction", actions()) is None
    monkeypatch.setattr("agentloom_lsp.session.check", lambda *rest: sys.exit(3))
    peer.change(URI, "", 5, 0, 6, 0)
    assert peer.request("textDocument/codeAction", actions()) is None
    monkeypatch.undo()
    monkeypatch.setattr("agentloom_lsp.session.Session.edited", lambda *rest: sys.exit(3))
    peer.change(URI, "# x\n", 0, 0, 0, 0)
    monkeypatch.undo()
    assert is_alive(peer)
    said = [m["params"]["message"] for m in peer.seen if m.get("method") == "window/logMessage"]
    assert len([words for words in said if "`textDocument/codeAction` failed with" in words]) == 1


# --- the end


def test_sigterm_ends_the_server_without_a_word() -> None:
    """Whoever manages processes ends it: at once, with the code that shells give, and nothing on standard error."""
    with Process() as peer:
        peer.initialize()
        peer.open(URI, BAD)
        peer.published(URI)
        peer.process.send_signal(signal.SIGTERM)
        assert peer.process.wait(30) == 143
        assert peer.process.stderr
        assert peer.process.stderr.read() == b""


PARENT = """
import json, os, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
os.set_inheritable(server.stdin.fileno(), True)
# A process that outlives the editor holds the stream open, so that its end tells the server nothing.
keeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False)
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": os.getpid(), "capabilities": {}}})
server.stdin.write(f"Content-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
server.stdin.flush()
print(server.pid, keeper.pid, file=sys.stderr, flush=True)
keeper.wait()
"""


def test_the_server_ends_when_its_editor_is_killed() -> None:
    """The editor gets SIGKILL while another of its children keeps the server's input open."""
    from tests.lsp.peer import ROOT

    path = os.pathsep.join((str(ROOT), str(ROOT / "lsp")))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    with parent:
        assert parent.stdout
        assert parent.stderr
        _, keeper = map(int, parent.stderr.readline().split())
        assert parent.stdout.readline().startswith(b"Content-Length: ")  # introduced: the server knows its parent
        parent.kill()
        try:
            assert parent.stdout.read()  # up to its end, which comes when the server is gone
        finally:
            os.kill(keeper, signal.SIGKILL)


def test_an_output_that_nobody_reads_is_no_crash() -> None:
    """The client closes its reading side and goes on writing: the server ends in order when the other side is closed too."""
    with Process() as peer:
        peer.initialize()
        assert peer.process.stdout
        assert peer.process.stdin
        peer._read.close()
        peer.process.stdout.close()
        for number in range(20):
            peer.open(f"file:///nowhere/{number}.loom.yaml", BAD)
        peer.process.stdin.close()
        assert peer.process.wait(30) == 1
        assert peer.process.stderr
        assert b"Traceback" not in peer.process.stderr.read()


# --- places that aren't there

FAR = {"line": 10**9, "character": 10**9}
TEXTS = {
    "a workflow": BAD,
    "empty": "",
    "a mark": "\ufeff",
    "a comment": "# hi",
    "one break": "\r\n",
    "no end of line": "name: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: |\n      hi {state.",
    "a list": "- a\n",
    "an agent": "name: a\nsystem_prompt: hi\n",
    "of others": "services:\n  web: {image: x}\n",
    "unreadable": "a: [\n\t- {x: 'y\n",
    "halves": "name: \ud83d\nsteps: [{id: \ude00, type: llm_call, prompt: hi}]\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_every_request_at_odd_places(text: str) -> None:
    """Past the end, at the very beginning, behind a line's end: each method answers, and none fails inside."""
    with Local() as peer:
        peer.initialize(PULLING)
        peer.open(URI, text)
        for here, there in (
            (FAR, FAR),
            ({"line": 0, "character": 0}, FAR),
            ({"line": 1, "character": 999}, {"line": 2, "character": 0}),
        ):
            kept: dict[str, Any] = {}
            for request in sorted(REQUESTS, key=lambda request: request.method in FOLLOWING):
                item = kept.get(FOLLOWING.get(request.method, ""))
                if request.method in FOLLOWING and item is None:
                    continue
                number = peer.start(request.method, params_of(request.method, URI, here, there, item))
                code = refused(peer, number)
                assert code is None or (code == FAILED and request.method in MAY_REFUSE), (request.method, code)
                if code is None and (items := items_of(peer.answer(number))):
                    kept[request.method] = items[0]
        assert not [
            m for m in peer.seen if m.get("method") == "window/logMessage" and "failed" in m["params"]["message"]
        ]
        assert peer.leave() == 0
