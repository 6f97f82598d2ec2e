"""Definition, references and highlights over the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.analysis.checking import A, H
from tests.lsp.peer import FULL, Local, Process

URI = "file:///x/w.loom.yaml"
TWO = "# 😀\n" + H + A + '  - {id: b, type: llm_call, depends_on: [a], prompt: "😀 {state.steps.a.output}"}\n'
LISTED = TWO.splitlines()[6].index("[a]") + 1
LINKS: dict[str, Any] = {**FULL, "textDocument": {**FULL["textDocument"], "definition": {"linkSupport": True}}}


def at(uri: str, line: int, character: int, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}, **more}


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def test_definition_references_highlights() -> None:
    """Ranges count the client's units; a client without links gets plain locations."""
    with Process() as peer:
        peer.initialize()
        peer.open(URI, TWO)
        place = TWO.splitlines()[6].index("steps.a") + 7  # one more than in code points: the emoji
        assert peer.request("textDocument/definition", at(URI, 6, place)) == [{"uri": URI, "range": span(3, 8, 9)}]
        context = {"includeDeclaration": False}
        found = peer.request("textDocument/references", at(URI, 3, 8, context=context))
        assert [answer["range"] for answer in found] == [span(6, LISTED, LISTED + 1), span(6, place, place + 1)]
        lit = peer.request("textDocument/documentHighlight", at(URI, 6, LISTED + 1))
        assert [(light["range"]["start"]["line"], light["kind"]) for light in lit] == [(3, 3), (6, 2), (6, 2)]
        assert peer.leave() == 0


def test_links_tell_where_from_and_the_whole_of_where_to() -> None:
    """A client that takes links is told the range of the name, and that of the whole step."""
    with Local() as peer:
        peer.initialize(LINKS)
        peer.open(URI, TWO)
        (link,) = peer.request("textDocument/definition", at(URI, 6, LISTED + 1))
        assert link == {
            "originSelectionRange": span(6, LISTED, LISTED + 1),
            "targetUri": URI,
            "targetRange": {"start": {"line": 3, "character": 4}, "end": {"line": 5, "character": 14}},
            "targetSelectionRange": span(3, 8, 9),
        }
        assert peer.leave() == 0


@pytest.mark.parametrize("folder", ["flows", "my flows"])
def test_other_files(tmp_path: Path, folder: str) -> None:
    """Closed files are found, open ones as they are in the editor; a path opens its file."""
    home = tmp_path / folder
    home.mkdir()
    child = H + A.replace("hi", "'{state.k}'")
    parent = "state: {k: 1}\n" + H + "  - id: s\n    type: subworkflow\n    workflow_path: c.loom.yaml\n"
    (home / "c.loom.yaml").write_text(child)
    (home / "p.loom.yaml").write_text(parent)
    with Local() as peer:
        peer.initialize(folder=tmp_path)
        parent_uri, child_uri = (home / "p.loom.yaml").as_uri(), (home / "c.loom.yaml").as_uri()
        peer.open(child_uri, "# one line more\n" + child)
        assert peer.request("textDocument/definition", at(child_uri, 5, 20)) == [
            {"uri": parent_uri, "range": span(0, 8, 9)}
        ]
        peer.open(parent_uri, "\n" + parent)
        found = peer.request("textDocument/references", at(parent_uri, 1, 8, context={"includeDeclaration": True}))
        assert [(place["uri"], place["range"]["start"]["line"]) for place in found] == [(parent_uri, 1), (child_uri, 5)]
        (opened,) = peer.request("textDocument/definition", at(parent_uri, 6, 22))
        assert opened == {"uri": child_uri, "range": span(0, 0, 0)}
        assert peer.leave() == 0


def test_odd_places_give_nothing() -> None:
    """Past the end, in a file that isn't ours, in one that was never opened."""
    with Local() as peer:
        peer.initialize()
        peer.open(URI, TWO)
        peer.open("file:///x/compose.yaml", "services: {}\n")
        for uri, line in ((URI, 99), (URI, 0), ("file:///x/compose.yaml", 0), ("file:///x/none.yaml", 0)):
            context = {"includeDeclaration": True}
            assert not peer.request("textDocument/definition", at(uri, line, 99))
            assert not peer.request("textDocument/references", at(uri, line, 99, context=context))
            assert not peer.request("textDocument/documentHighlight", at(uri, line, 99))
        assert peer.leave() == 0
