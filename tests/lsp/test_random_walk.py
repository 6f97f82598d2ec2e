"""Hours of typing in seconds: random edits of real workflows, with requests of every kind in between.

Longer: `make walk`, or the number of edits in the environment's `WALK`.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.text import Source
from agentloom_lsp.dispatch import run_session
from agentloom_lsp.handshake import shake_hands
from agentloom_lsp.requests import REQUESTS
from agentloom_lsp.transport import Channel
from tests.lsp.asking import FOLLOWING, items_of, params_of, ranges_in
from tests.lsp.peer import FULL, PULLING, ROOT, Local, Refused
from tests.lsp.walking import UNITS, Editor

EDITS = int(os.environ.get("WALK", "0")) or 240
"""Edits in each encoding, once for diagnostics that are pushed and once for pulled ones; as many again take them back."""
ROUND = 40
"""Edits on one workflow before the next is opened."""
EXAMPLES = sorted((ROOT / "examples").glob("*.loom.yaml"))
MODIFIED, FAILED = -32801, -32803
MAY_FAIL = ("textDocument/rename", "textDocument/prepareRename", "codeAction/resolve", "workspace/willRenameFiles")
"""Requests that are refused with a reason where they make no sense."""
WHOLE = (
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/semanticTokens/full",
    "textDocument/documentLink",
)
"""Requests about the whole text: what they are answered must not depend on how the text came to be."""


class Walk:
    """One server, and an editor that types into it. ``texts`` are the server's own, by version."""

    def __init__(self, peer: Local, fresh: Local, folder: Path, encoding: str, pulls: bool) -> None:
        self.peer = peer
        self.fresh = fresh
        self.encoding = encoding
        self.pulls = pulls
        self.texts = texts_of(peer)
        self.kept: dict[str, Any] = {}
        self.ids: dict[str, str] = {}
        self.random = random.Random(f"{encoding}{pulls}")
        self.paths = sorted(folder.glob("*.loom.yaml"))
        self.asked: set[str] = set()

    def round(self, path: Path, seed: int, edits: int) -> None:
        """Open a workflow, edit it for a while, ask about it all the time, take everything back, close it."""
        self.uri = path.as_uri()
        self.latest = 0, []
        text = path.read_text(encoding="utf-8")
        self.editor = Editor(text, self.encoding, seed)
        self.peer.open(self.uri, text)
        self.settled()
        done = 0
        while done < edits:
            pending: list[tuple[str, int]] = []
            for _ in range(self.random.randint(1, 4)):
                for changes in self.editor.step():
                    self.send(changes)
                    done += 1
                pending.extend(self.ask() for _ in range(self.random.randint(0, 2)))
            for method, number in pending:
                self.answered(method, number, still=False)
            self.settled()
            for method in self.random.sample([request.method for request in REQUESTS], 3):
                self.answered(*self.ask(method), still=True)
        self.like_from_nothing()
        for changes in self.editor.undo_all():
            self.send(changes)
        assert self.editor.text == text
        self.settled()
        self.peer.close_document(self.uri)

    def send(self, changes: list[dict[str, Any]]) -> None:
        self.peer.versions[self.uri] += 1
        document = {"uri": self.uri, "version": self.peer.versions[self.uri]}
        self.peer.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def ask(self, method: str = "") -> tuple[str, int]:
        """Send a request of some kind, or of this one."""
        method = method or self.random.choice(REQUESTS).method
        if method in FOLLOWING and FOLLOWING[method] not in self.kept:
            method = FOLLOWING[method]
        one, other = sorted((self.editor.anywhere(), self.editor.anywhere()))
        kept = self.kept.get(FOLLOWING.get(method, ""))
        before = self.ids.get(method.removesuffix("/delta"), "")
        params = params_of(method, self.uri, self.editor.position(one), self.editor.position(other), kept, before)
        self.asked.add(method)
        return method, self.peer.start(method, params)

    def answered(self, method: str, number: int, still: bool) -> None:
        """Take an answer. ``still``: nothing was edited since it was asked for, so its ranges lie in the text."""
        answer, code = outcome(self.peer, number)
        if code is not None:
            expected = {MODIFIED: not still or method in MAY_FAIL, FAILED: method in MAY_FAIL}
            assert expected.get(code), (method, code)
            return
        if isinstance(answer, dict) and isinstance(answer.get("resultId"), str):
            self.ids[method.removesuffix("/delta")] = answer["resultId"]
        if items := items_of(answer):
            self.kept[method] = self.random.choice(items)
        if still and method not in FOLLOWING:
            for start, end in ranges_in(answer, self.uri):
                assert self.editor.holds(start), (method, start)
                assert self.editor.holds(end), (method, end)
                assert (start["line"], start["character"]) <= (end["line"], end["character"]), method

    def settled(self) -> list[dict[str, Any]]:
        """Wait for the newest version's diagnostics; the server's text is the editor's by then."""
        if self.pulls:
            found: list[dict[str, Any]] = self.peer.request(
                "textDocument/diagnostic", {"textDocument": {"uri": self.uri}}
            )["items"]
        else:
            found = self.published()
        versions = [version or 0 for version in self.peer.publishes(self.uri)]
        assert versions == sorted(versions), "a stale version was published"
        assert self.texts[self.uri, self.peer.versions[self.uri]] == self.editor.text, (
            "the server's text is another one"
        )
        failures = [m["params"] for m in self.peer.seen if m.get("method") == "window/logMessage"]
        assert not failures
        self.peer.seen.clear()
        return found

    def published(self) -> list[dict[str, Any]]:
        version = self.peer.versions[self.uri]
        for message in self.peer.seen:
            params = message.get("params")
            if message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == self.uri:
                self.latest = params["version"], params["diagnostics"]
        if self.latest[0] != version:
            self.latest = version, self.peer.published(self.uri, version)
        return self.latest[1]

    def like_from_nothing(self) -> None:
        """Ask a server that has only seen the text as it is now: it says the same."""
        about = {"textDocument": {"uri": self.uri}}
        self.fresh.open(self.uri, self.editor.text)
        assert self.settled() == self.fresh.request("textDocument/diagnostic", about)["items"]
        for method in WHOLE:
            if method in {request.method for request in REQUESTS}:
                answers = [without_id(server.request(method, about)) for server in (self.peer, self.fresh)]
                assert answers[0] == answers[1], method
        self.fresh.close_document(self.uri)
        self.fresh.seen.clear()


def without_id(answer: Any) -> Any:
    """Return an answer without its name, which counts the answers."""
    return {name: value for name, value in answer.items() if name != "resultId"} if isinstance(answer, dict) else answer


def outcome(peer: Local, number: int) -> tuple[Any, int | None]:
    """Return a request's answer, or the code of its error."""
    try:
        return peer.answer(number), None
    except Refused as refused:
        return None, refused.code


Texts = dict[tuple[str, int | None], str]
TEXTS: dict[int, Texts] = {}


def texts_of(peer: Local) -> Texts:
    return TEXTS[id(peer)]


def connected(encoding: str, pulls: bool, folder: Path | None = None) -> Local:
    """Return a client of a server that checks without delay, and whose texts can be looked at."""
    texts: Texts = {}

    def door(source: Source, *rest: Any) -> WorkflowDocument:
        texts[source.uri, source.version] = source.text
        return analyze(source, *rest)

    def serve(channel: Channel) -> int:
        client = shake_hands(channel.receive, channel.send)
        assert client
        return run_session(channel, client, door, AnalysisCache)

    peer = Local(serve)
    TEXTS[id(peer)] = texts
    capabilities = {**(PULLING if pulls else FULL), "general": {"positionEncodings": [encoding]}}
    peer.answers["workspace/diagnostic/refresh"] = None
    peer.answers["window/workDoneProgress/create"] = None
    peer.initialize(capabilities, folder, initializationOptions={"debounce": 0})
    return peer


@pytest.mark.parametrize("pulls", [False, True], ids=["pushed", "pulled"])
@pytest.mark.parametrize("encoding", UNITS)
def test_random_walk(encoding: str, pulls: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of edits: the same text on both sides, no error, no crash, nothing stale, the same findings as from nothing.

    And what is left when all is taken back and closed doesn't grow.
    """
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    with connected(encoding, pulls, folder) as peer, connected(encoding, True) as fresh:
        walk = Walk(peer, fresh, folder, encoding, pulls)
        rounds = max(6, EDITS // ROUND)
        left = []
        for number in range(rounds):
            walk.round(walk.paths[(number * 5 + len(encoding)) % len(walk.paths)], seed=number, edits=ROUND)
            peer.request("workspace/diagnostic", {"previousResultIds": []})
            for one in (peer, fresh):
                one.seen.clear()
            gc.collect()
            left.append(len(gc.get_objects()))
        assert fresh.leave() == peer.leave() == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert walk.asked >= {request.method for request in REQUESTS} - FOLLOWING.keys()
    assert max(left[len(left) // 2 :]) < 1.05 * max(left[1 : len(left) // 2]), left
