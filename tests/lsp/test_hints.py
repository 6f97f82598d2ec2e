"""Inlay hints over the wire: places, switches, and what happens when the user changes them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.lsp.peer import FULL, Local

URI = "file:///nowhere/flow.loom.yaml"
TEXT = "name: w\r\nsteps:\r\n  - {id: é😀, type: llm_call, prompt: hi, retry: {max_retries: 1}}\r\n"
EVERYTHING = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
REFRESHING = {**FULL, "workspace": {**FULL["workspace"], "inlayHint": {"refreshSupport": True}}}


def ask(peer: Local, uri: str = URI) -> Any:
    return peer.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": EVERYTHING})


def labels(peer: Local) -> list[str]:
    return [hint["label"] for hint in ask(peer)]


def is_refresh(message: dict[str, Any]) -> bool:
    return message.get("method") == "workspace/inlayHint/refresh"


def test_places_and_words() -> None:
    """Positions in the client's units; tooltips in the form that it takes."""
    with Local() as peer:
        peer.initialize({**FULL, "textDocument": {**FULL["textDocument"], "hover": {"contentFormat": ["markdown"]}}})
        peer.open(URI, TEXT)
        layer, model, attempts = ask(peer)
        assert layer["position"] == {"line": 2, "character": 12}
        assert layer["tooltip"] == {"kind": "markdown", "value": "Layer 1 of 1: it starts at once, alone."}
        assert (model["label"], attempts["label"]) == ("gpt-4o-mini (openai)", "up to 2 attempts, 2.5 s of waits")
        assert layer["paddingLeft"] is True
        together = [hint["position"] == after["position"] for hint, after in pairwise([layer, model, attempts])]
        assert [layer["paddingRight"], model["paddingRight"], attempts["paddingRight"]] == [*together, False]
        assert ask(peer, "file:///unknown.yaml") is None
        assert peer.leave() == 0


def test_each_kind_can_be_switched_off() -> None:
    """By options of the client, in any of the shapes that editors send."""
    for options, expected in (
        ({"hints": {"layer": False}}, ["gpt-4o-mini (openai)", "up to 2 attempts, 2.5 s of waits"]),
        ({"agentloom.hints.model": False, "agentloom": {"hints": {"attempts": False}}}, ["layer 1"]),
        ({"hints": {"layer": False, "model": False, "attempts": False}}, []),
        ({"hints": "nonsense"}, ["layer 1", "gpt-4o-mini (openai)", "up to 2 attempts, 2.5 s of waits"]),
    ):
        with Local() as peer:
            peer.initialize({}, initializationOptions=options)
            peer.open(URI, TEXT)
            assert labels(peer) == expected
            assert peer.leave() == 0


def test_a_changed_switch_is_seen_at_once() -> None:
    """The client asks again when its user switches hints on or off, and not for other settings."""
    with Local() as peer:
        peer.answers = {**peer.answers, "workspace/inlayHint/refresh": None}
        peer.initialize(REFRESHING)
        peer.open(URI, TEXT)
        assert len(labels(peer)) == 3
        peer.notify("workspace/didChangeConfiguration", {"settings": {"agentloom": {"debounce": 0}}})
        assert len(labels(peer)) == 3
        assert not any(map(is_refresh, peer.seen))
        peer.notify("workspace/didChangeConfiguration", {"settings": {"agentloom": {"hints": {"layer": False}}}})
        peer.until(is_refresh)
        assert len(labels(peer)) == 2
        peer.answers["workspace/configuration"] = [{"hints": {"attempts": False}}]
        peer.notify("workspace/didChangeConfiguration", {"settings": None})
        peer.until(is_refresh)
        assert labels(peer) == ["layer 1", "gpt-4o-mini (openai)"]
        assert peer.leave() == 0


def test_what_was_sent_outlasts_the_answer_to_an_older_question() -> None:
    """The user switches hints off while the server's first question about settings is still open; no request that wasn't announced."""
    with Local() as peer:
        peer.initialize()
        peer.open(URI, TEXT)
        peer.notify("workspace/didChangeConfiguration", {"settings": {"agentloom": {"hints": {"layer": False}}}})
        assert len(labels(peer)) == 2
        assert not any(map(is_refresh, peer.seen))
        assert peer.leave() == 0
