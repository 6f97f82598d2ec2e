"""Symbols over the wire: trees and lists, positions in every encoding, the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.peer import FULL, Local

URI = "file:///nowhere/flow.loom.yaml"
TEXT = "\ufeffname: w\r\nsteps:\r\n  - {id: 'é😀', type: router, conditions: [{expression: 1, target: b}]}\r\n  - na"
TREES = {**FULL, "textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}}


def ask(peer: Local, uri: str = URI) -> Any:
    return peer.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_a_tree_for_clients_that_know_trees(encoding: str, width: int) -> None:
    """Names are selected where they stand, in the units of the client."""
    with Local() as peer:
        peer.initialize({**TREES, "general": {"positionEncodings": [encoding]}})
        peer.open(URI, TEXT)
        (steps,) = ask(peer)
        one, two = steps["children"]
        assert (one["name"], one["detail"], one["kind"]) == ("é😀", "router", 12)
        assert one["selectionRange"] == {
            "start": {"line": 2, "character": 10},
            "end": {"line": 2, "character": 10 + width},
        }
        assert [child["name"] for child in one["children"]] == ["1"]
        assert (two["name"], two["range"]["start"]) == ("step 2", {"line": 3, "character": 4})
        assert peer.leave() == 0


def test_a_list_for_other_clients() -> None:
    """The same names, each with what it stands in."""
    with Local() as peer:
        peer.initialize({})
        peer.open(URI, TEXT)
        found = ask(peer)
        told = [(symbol["name"], symbol.get("containerName")) for symbol in found]
        assert told == [("steps", None), ("é😀", "steps"), ("1", "é😀"), ("step 2", "steps")]
        assert {symbol["location"]["uri"] for symbol in found} == {URI}
        assert ask(peer, "file:///unknown.yaml") is None
        assert peer.leave() == 0


def test_case_five_thousand_steps() -> None:
    """Editor case: the number of symbols is limited, and the log says so, once."""
    steps = "".join(f"  - {{id: s{n}, type: llm_call, prompt: hi}}\n" for n in range(5_001))
    with Local() as peer:
        peer.initialize(TREES)
        peer.open(URI, "name: w\nsteps:\n" + steps)
        for _ in range(2):
            assert len(ask(peer)[0]["children"]) == 5_000
        told = [m["params"] for m in peer.seen if m.get("method") == "window/logMessage"]
        assert [(message["type"], "1 symbols beyond" in message["message"]) for message in told] == [(3, True)]
        assert peer.leave() == 0


def test_names_of_closed_files(tmp_path: Path) -> None:
    """Files that nobody opened count as they are on disk, in the client's units."""
    path = tmp_path / "w.loom.yaml"
    path.write_text(
        "name: 😀\nsteps:\n  - {id: a, type: llm_call, prompt: '😀'}\n  - {type: tool, x: '😀', id: later}\n"
    )
    with Local() as peer:
        peer.initialize(folder=tmp_path)
        (found,) = peer.request("workspace/symbol", {"query": "later"})
        assert (found["containerName"], found["location"]["uri"]) == ("😀", path.as_uri())
        assert found["location"]["range"]["start"] == {"line": 3, "character": 30}
        assert peer.leave() == 0


def test_names_of_open_files() -> None:
    """Steps of all open files are found by letters of their name."""
    other = "file:///nowhere/other.loom.yaml"
    with Local() as peer:
        peer.initialize()
        peer.open(URI, "name: one\nsteps:\n  - {id: classify, type: llm_call, prompt: hi}\n")
        peer.open(other, "name: two\nsteps:\n  - {id: clarify, type: llm_call, prompt: hi}\n")
        found = peer.request("workspace/symbol", {"query": "clfy"})
        assert sorted((s["name"], s["containerName"], s["location"]["uri"]) for s in found) == [
            ("clarify", "two", other),
            ("classify", "one", URI),
        ]
        assert found[0]["location"]["range"]["start"] == {"line": 2, "character": 9}
        assert peer.request("workspace/symbol", {"query": "nothing"}) == []
        assert peer.leave() == 0
