"""Hover over the wire: ranges in the client's units, the form that it takes, and places that have nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.peer import FULL, Local

URI = "file:///nowhere/flow.loom.yaml"
TEXT = "\ufeff# é\r\nname: w\r\nsteps:\r\n  - {id: a, type: llm_call, prompt: '😀é {state.x}', output: x}\r\n"
MARKDOWN = {**FULL, "textDocument": {"hover": {"contentFormat": ["markdown", "plaintext"]}}}


def ask(peer: Local, line: int, character: int, uri: str = URI) -> Any:
    position = {"line": line, "character": character}
    return peer.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_ranges_in_the_units_of_the_client(encoding: str, width: int) -> None:
    """Behind a byte order mark, CRLF, a comment and an emoji."""
    with Local() as peer:
        said = peer.initialize({**MARKDOWN, "general": {"positionEncodings": [encoding]}})
        assert said["capabilities"]["hoverProvider"] is True
        peer.open(URI, TEXT)
        start = TEXT.splitlines()[3].index("😀") + width + len(" {state.")
        found = ask(peer, 3, start)
        assert found["range"] == {
            "start": {"line": 3, "character": start},
            "end": {"line": 3, "character": start + 1},
        }
        assert found["contents"]["kind"] == "markdown"
        assert found["contents"]["value"].startswith("State key `x`\n\nWritten by\n\n- `a`, layer 1 of 1")
        assert ask(peer, 0, 1) is None
        assert ask(peer, 99, 99) is None
        assert ask(peer, 0, 0, "file:///unknown.yaml") is None
        assert peer.leave() == 0


def test_plain_text_for_clients_that_take_no_more() -> None:
    """A client that says nothing about Markdown gets text."""
    with Local() as peer:
        peer.initialize({})
        peer.open(URI, TEXT)
        assert ask(peer, 1, 1)["contents"]["kind"] == "plaintext"
        assert peer.leave() == 0


def test_a_line_that_is_broken_for_the_moment() -> None:
    """While a quote is open, the line says what it said before."""
    with Local() as peer:
        peer.initialize({})
        peer.open(URI, "name: w\nsteps:\n  - id: a\n    type: llm_call\n    prompt: '{state.x}'\n")
        before = ask(peer, 4, 20)
        peer.change(URI, "", 4, 23, 4, 24)
        assert before["contents"]["value"].startswith("State key `x`")
        assert ask(peer, 4, 20) == before
        assert peer.leave() == 0
