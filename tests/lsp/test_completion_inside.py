"""Completion inside values over the wire: ranges in the client's units, edits elsewhere, what is told beside an item, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.peer import FULL, Local

URI = "file:///nowhere/flow.loom.yaml"
TEXT = (
    "\ufeff# é😀\r\nname: w\r\nsteps:\r\n"
    "  - {id: a, type: tool, tool_name: http_request, tool_args: {url: u}, output: report}\r\n"
    "  - id: b\r\n    type: llm_call\r\n    prompt: '😀é {state.'\r\n"
)
FIELDS = {"completionItem": {"documentationFormat": ["markdown"], "resolveSupport": {"properties": ["documentation"]}}}
RESOLVING = {**FULL, "textDocument": {**FULL["textDocument"], "completion": FIELDS}}


def ask(peer: Local, line: int, character: int, uri: str = URI) -> dict[str, dict[str, Any]]:
    position = {"line": line, "character": character}
    answer = peer.request("textDocument/completion", {"textDocument": {"uri": uri}, "position": position})
    return {item["label"]: item for item in answer["items"]}


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_a_path_behind_wide_characters(encoding: str, width: int) -> None:
    """The word is replaced where it stands, the missing dependency is added in its place with the file's line ends."""
    with Local() as peer:
        peer.initialize({**RESOLVING, "general": {"positionEncodings": [encoding]}})
        peer.open(URI, TEXT)
        start = len("    prompt: '") + width + len(" {state.")
        found = ask(peer, 6, start)
        edit = found["report"]["textEdit"]
        here = {"line": 6, "character": start}
        assert (edit["newText"], edit["range"]) == ("report}", {"start": here, "end": here})
        (extra,) = found["report"]["additionalTextEdits"]
        assert extra["newText"] == "\r\n    depends_on: [a]"
        assert extra["range"]["start"]["line"] == 5
        assert "documentation" not in found["report"]
        told = peer.request("completionItem/resolve", found["report"])["documentation"]
        assert told["value"].startswith("State key `report`\n\nWritten by\n\n- `a`, layer 1 of 1")
        assert {"report", "report.body", "steps"} <= set(found)
        assert peer.leave() == 0


def test_what_a_tool_takes_and_a_model_costs() -> None:
    """Worked out for the item that is looked at."""
    with Local() as peer:
        peer.initialize(RESOLVING)
        peer.open(
            URI, "config: {model: }\nname: w\nsteps:\n  - {id: a, type: tool, tool_name: file_read, tool_args: {}}\n"
        )
        tools = ask(peer, 3, len("  - {id: a, type: tool, tool_name: "))
        told = peer.request("completionItem/resolve", tools["file_write"])["documentation"]["value"]
        assert "`content` (text, needed): The text to write." in told
        arguments = ask(peer, 3, len("  - {id: a, type: tool, tool_name: file_read, tool_args: {"))
        assert list(arguments) == ["path", "encoding"]
        told = peer.request("completionItem/resolve", arguments["encoding"])["documentation"]["value"]
        assert "Default: `utf-8`." in told
        models = ask(peer, 0, len("config: {model: "))
        assert (
            "per million tokens" in peer.request("completionItem/resolve", models["gpt-4o"])["documentation"]["value"]
        )
        assert peer.leave() == 0


def test_files_of_the_folder(tmp_path: Path) -> None:
    """Read from disk, relative to the file; a folder asks again."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "child.loom.yaml").write_text("name: k\n")
    uri = (tmp_path / "flow.loom.yaml").as_uri()
    with Local() as peer:
        peer.initialize(RESOLVING, tmp_path)
        peer.open(uri, "name: w\nsteps:\n  - {id: s, type: subworkflow, workflow_path: }\n")
        found = ask(peer, 2, len("  - {id: s, type: subworkflow, workflow_path: "), uri)
        assert list(found) == ["child.loom.yaml", "parts/", "../"]
        assert found["parts/"]["textEdit"]["newText"] == "parts/"
        assert peer.leave() == 0
