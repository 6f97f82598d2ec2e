"""Folding, selections and links over the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.peer import FULL, Local

URI = "file:///nowhere/flow.loom.yaml"
TEXT = 'name: w\r\nsteps:\r\n  # one\r\n  # two\r\n  - id: a\r\n    type: llm_call\r\n    prompt: "😀é {state.x}"\r\n'


def asked(peer: Local, method: str, uri: str = URI, **more: Any) -> Any:
    return peer.request(f"textDocument/{method}", {"textDocument": {"uri": uri}, **more})


def test_folds_are_lines() -> None:
    """Whole lines, without characters; comments say that they are some; a limit is kept."""
    with Local() as peer:
        peer.initialize()
        peer.open(URI, TEXT)
        assert asked(peer, "foldingRange") == [
            {"startLine": 1, "endLine": 6},
            {"startLine": 2, "endLine": 3, "kind": "comment"},
            {"startLine": 4, "endLine": 6},
        ]
        assert asked(peer, "foldingRange", "file:///unknown.yaml") is None
        assert peer.leave() == 0
    with Local() as peer:
        peer.initialize({**FULL, "textDocument": {"foldingRange": {"rangeLimit": 1, "lineFoldingOnly": True}}})
        peer.open(URI, TEXT)
        assert len(asked(peer, "foldingRange")) == 1
        assert peer.leave() == 0


@pytest.mark.parametrize(("encoding", "start"), [("utf-8", 20), ("utf-16", 17), ("utf-32", 16)])
def test_selections_grow_in_every_encoding(encoding: str, start: int) -> None:
    """Several cursors at once, each with its own answer, from the inside out; past the end, the whole text."""
    with Local() as peer:
        peer.initialize({**FULL, "general": {"positionEncodings": [encoding]}})
        peer.open(URI, TEXT)
        inside, far = {"line": 6, "character": start + 3}, {"line": 99, "character": 99}
        one, two = asked(peer, "selectionRange", positions=[inside, far])
        assert one["range"] == {
            "start": {"line": 6, "character": start + 1},
            "end": {"line": 6, "character": start + 6},
        }
        assert one["parent"]["range"]["end"]["character"] == start + 8
        assert two["range"]["end"] == {"line": 7, "character": 0}
        assert asked(peer, "selectionRange", positions=[]) == []
        assert peer.leave() == 0


@pytest.mark.parametrize("folder", ["my%20flows", "my flows", "%6Dy%20flows"])
def test_case_links_in_folders_with_blanks(tmp_path: Path, folder: str) -> None:
    """Editor case: `%20` in a folder, or links that open nothing. The file is found, and its URI begins as the client's does."""
    home = tmp_path / "my flows"
    home.mkdir()
    (home / "réponses #1.json").write_text("{}")
    root = f"{tmp_path.as_uri()}/{folder}"
    with Local() as peer:
        peer.initialize({**FULL, "textDocument": {"documentLink": {"tooltipSupport": True}}}, folder=root)
        uri = f"{root}/w.loom.yaml"
        peer.open(uri, "config:\n  provider: mock\n  responses_file: 'réponses #1.json'\n# https://a.test/x\n")
        file, address = asked(peer, "documentLink", uri)
        assert file["target"] == f"{root}/r%C3%A9ponses%20%231.json"
        assert file["tooltip"] == "Open the recording"
        assert file["range"] == {"start": {"line": 2, "character": 19}, "end": {"line": 2, "character": 35}}
        assert address == {
            "range": {"start": {"line": 3, "character": 2}, "end": {"line": 3, "character": 18}},
            "target": "https://a.test/x",
        }
        assert peer.leave() == 0
