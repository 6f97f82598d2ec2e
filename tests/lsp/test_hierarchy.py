"""The call hierarchy over the wire: items that find themselves again, through files that nobody opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lsp.peer import Local

MAIN = "name: main\nsteps:\n  - {id: é😀, type: tool}\n  - {id: s, type: subworkflow, depends_on: ['é😀'], workflow_path: child.loom.yaml}\n"
CHILD = "name: child\nsteps:\n  - {id: x, type: tool}\n  - {id: y, type: tool, depends_on: [x]}\n"


def names(calls: list[dict[str, Any]], end: str) -> list[str]:
    return [call[end]["name"] for call in calls]


def test_down_into_a_closed_file_and_back(tmp_path: Path) -> None:
    """From a step to the one it needs and to the file that it runs, and up again from there."""
    main, child = tmp_path / "main.loom.yaml", tmp_path / "child.loom.yaml"
    main.write_text(MAIN)
    child.write_text(CHILD)
    with Local() as peer:
        peer.initialize(folder=tmp_path)
        peer.open(main.as_uri(), MAIN)
        place = {"textDocument": {"uri": main.as_uri()}, "position": {"line": 3, "character": 9}}
        (item,) = peer.request("textDocument/prepareCallHierarchy", place)
        assert (item["name"], item["detail"], item["uri"]) == ("s", "subworkflow", main.as_uri())
        assert item["selectionRange"]["start"] == {"line": 3, "character": 9}
        need, run = peer.request("callHierarchy/outgoingCalls", {"item": item})
        assert need["to"]["name"] == "é😀"
        start = MAIN.splitlines()[3].index("é😀")
        assert need["fromRanges"] == [
            {"start": {"line": 3, "character": start}, "end": {"line": 3, "character": start + 3}}
        ]
        assert (run["to"]["name"], run["to"]["uri"]) == ("child", child.as_uri())
        (end,) = peer.request("callHierarchy/outgoingCalls", {"item": run["to"]})
        assert end["to"]["name"] == "y"
        assert names(peer.request("callHierarchy/outgoingCalls", {"item": end["to"]}), "to") == ["x"]
        above = peer.request("callHierarchy/incomingCalls", {"item": run["to"]})
        assert (names(above, "from"), above[0]["fromRanges"][0]["start"]["line"]) == (["s"], 3)
        assert names(peer.request("callHierarchy/incomingCalls", {"item": need["to"]}), "from") == ["s"]
        # the text is edited, then the step is gone
        peer.change(main.as_uri(), "# more\n", 0, 0, 0, 0)
        moved = peer.request("callHierarchy/outgoingCalls", {"item": item})[0]
        assert moved["fromRanges"][0]["start"]["line"] == 4
        peer.change(main.as_uri(), "name: main\n")
        assert peer.request("callHierarchy/outgoingCalls", {"item": item}) == []
        assert peer.leave() == 0


def test_nothing_there() -> None:
    """Places without a step, documents that aren't open, items without their data."""
    uri = "file:///nowhere/w.loom.yaml"
    with Local() as peer:
        peer.initialize()
        peer.open(uri, "name: w\nconfig: {}\n")
        place = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 1}}
        assert peer.request("textDocument/prepareCallHierarchy", place) is None
        spot = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
        item = {"name": "x", "kind": 12, "uri": "file:///gone.loom.yaml", "range": spot, "selectionRange": spot}
        for data in (None, 3, {}, {"kind": "step", "trail": 3}):
            assert peer.request("callHierarchy/incomingCalls", {"item": {**item, "data": data}}) is None
        gone = {**item, "data": {"kind": "step", "trail": ["x"]}}
        assert peer.request("callHierarchy/outgoingCalls", {"item": gone}) == []
        assert peer.leave() == 0
