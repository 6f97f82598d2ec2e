"""Renaming over the wire: edits with versions, reasons as errors, other files, clients that can less."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.checking import A, H
from tests.lsp.peer import FULL, Local, Process, Refused

URI = "file:///x/w.loom.yaml"
TEXT = (
    "# 😀\r\n"
    + (H + A).replace("\n", "\r\n")
    + '  - {id: b, type: llm_call, depends_on: ["a"], prompt: "😀 {state.steps.a.output}"}\r\n'
)
REQUEST_FAILED = -32803
PREPARING: dict[str, Any] = {**FULL, "textDocument": {**FULL["textDocument"], "rename": {"prepareSupport": True}}}


def at(uri: str, line: int, character: int, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}, **more}


def edited(text: str, edits: list[dict[str, Any]], ends: str = "\n") -> str:
    """Carry out edits as an editor whose positions count UTF-16."""
    lines = [line.encode("utf-16-le") for line in text.split(ends)]
    for edit in sorted(
        edits, key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True
    ):
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == end["line"]
        line = lines[start["line"]]
        new = edit["newText"].encode("utf-16-le")
        lines[start["line"]] = line[: 2 * start["character"]] + new + line[2 * end["character"] :]
    return ends.join(line.decode("utf-16-le") for line in lines)


def test_a_step_is_renamed() -> None:
    """What is prepared, the edits with the version of the text, and the text afterwards."""
    with Process() as peer:
        assert peer.initialize(PREPARING)["capabilities"]["renameProvider"] == {"prepareProvider": True}
        peer.open(URI, TEXT, version=5)
        place = TEXT.split("\r\n")[6].index('"a"') + 1
        found = peer.request("textDocument/prepareRename", at(URI, 6, place))
        assert found["placeholder"] == "a"
        assert found["range"]["start"] == {"line": 6, "character": place}
        answer = peer.request("textDocument/rename", at(URI, 6, place + 1, newName="step_one"))
        (change,) = answer["documentChanges"]
        assert change["textDocument"] == {"uri": URI, "version": 5}
        becomes = (
            TEXT.replace("id: a", "id: step_one").replace('"a"', '"step_one"').replace("steps.a", "steps.step_one")
        )
        assert edited(TEXT, change["edits"], "\r\n") == becomes
        assert peer.leave() == 0


def test_a_client_that_knows_no_versions() -> None:
    """The older form of edits; and renaming without being prepared."""
    with Local() as peer:
        assert peer.initialize({})["capabilities"]["renameProvider"] is True
        peer.open(URI, TEXT)
        answer = peer.request("textDocument/rename", at(URI, 3, 8, newName="c"))
        assert len(answer["changes"][URI]) == 3
        assert peer.leave() == 0


@pytest.mark.parametrize(
    ("line", "character", "word", "reason"),
    [
        (3, 8, "a b", "can't be read back by templates"),
        (3, 8, "b", "a step `b` is there already (line 7)"),
        (3, 8, "on", "isn't a text to every reader of YAML"),
        (3, 8, "", "the new name is empty"),
        (0, 0, "c", "nothing that can be renamed stands here"),
        (99, 99, "c", "nothing that can be renamed stands here"),
    ],
)
def test_reasons_are_errors(line: int, character: int, word: str, reason: str) -> None:
    """A request that can't be granted fails with its reason, and the server goes on."""
    with Local() as peer:
        peer.initialize(PREPARING)
        peer.open(URI, TEXT)
        with pytest.raises(Refused, match=re.escape(reason)) as refused:
            peer.request("textDocument/rename", at(URI, line, character, newName=word))
        assert refused.value.code == REQUEST_FAILED
        if "nothing" in reason:
            with pytest.raises(Refused, match="nothing that can be renamed"):
                peer.request("textDocument/prepareRename", at(URI, line, character))
        assert peer.request("textDocument/prepareRename", at(URI, 3, 8))["placeholder"] == "a"
        peer.open("file:///x/compose.yaml", "services: {}\n")
        assert peer.request("textDocument/rename", at("file:///x/compose.yaml", 0, 0, newName="c")) is None
        assert peer.leave() == 0


def test_other_files_and_recordings(tmp_path: Path) -> None:
    """Closed files get edits without a version, recordings too; open ones as they are in the editor."""
    child = H + A.replace("hi", '"{state.k}"') + "    output: done\n"
    parent = (
        "config: {provider: mock, responses_file: r.json}\n"
        + H
        + "  - id: s\n    type: subworkflow\n    isolated_state: true\n"
        "    workflow_path: c.loom.yaml\n    input: {k: 1}\n    return_keys: [done]\n"
    )
    replies = '{"_version": 2, "s.a": {"content": "é"}}'
    for name, text in (("c.loom.yaml", child), ("p.loom.yaml", parent), ("r.json", replies)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    child_uri, parent_uri, replies_uri = ((tmp_path / n).as_uri() for n in ("c.loom.yaml", "p.loom.yaml", "r.json"))
    with Local() as peer:
        peer.initialize(PREPARING, folder=tmp_path)
        peer.open(child_uri, "\n" + child, version=3)
        changes = peer.request("textDocument/rename", at(child_uri, 6, 12, newName="result"))["documentChanges"]
        assert [(c["textDocument"]["uri"], c["textDocument"]["version"]) for c in changes] == [
            (child_uri, 3),
            (parent_uri, None),
        ]
        assert edited(parent, changes[1]["edits"]) == parent.replace("done", "result")
        changes = peer.request("textDocument/rename", at(child_uri, 3, 8, newName="first"))["documentChanges"]
        assert {c["textDocument"]["uri"]: c["textDocument"]["version"] for c in changes} == {
            child_uri: 3,
            replies_uri: None,
        }
        assert edited(replies, changes[1]["edits"]) == replies.replace("s.a", "s.first")
        assert peer.leave() == 0


def test_a_closed_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Its first line begins behind the mark, which editors don't show."""
    child = "state: {k: 1}\n" + H + A
    parent = "state: {k: 1}\n" + H + "  - {id: s, type: subworkflow, workflow_path: c.loom.yaml}\n"
    (tmp_path / "c.loom.yaml").write_text(child, encoding="utf-8-sig")
    with Local() as peer:
        peer.initialize(PREPARING, folder=tmp_path)
        uri, child_uri = (tmp_path / "p.loom.yaml").as_uri(), (tmp_path / "c.loom.yaml").as_uri()
        peer.open(uri, parent)
        changes = peer.request("textDocument/rename", at(uri, 0, 8, newName="key"))["documentChanges"]
        assert [change["textDocument"]["uri"] for change in changes] == [uri, child_uri]
        assert edited(child, changes[1]["edits"]) == child.replace("k: 1", "key: 1")
        found = peer.request("textDocument/references", at(uri, 0, 8, context={"includeDeclaration": True}))
        assert [place["range"]["start"] for place in found] == [{"line": 0, "character": 8}] * 2
        assert peer.leave() == 0


def test_files_that_move(tmp_path: Path) -> None:
    """The editor asks before it renames a file, and changes the paths that name it."""
    parent = H + "  - {id: s, type: subworkflow, workflow_path: './c.loom.yaml'}\n"
    (tmp_path / "c.loom.yaml").write_text(H + A)
    (tmp_path / "p.loom.yaml").write_text(parent)
    asking = {**FULL, "workspace": {**FULL["workspace"], "fileOperations": {"willRename": True, "didDelete": True}}}
    with Local() as peer:
        said = peer.initialize(asking, folder=tmp_path)["capabilities"]["workspace"]["fileOperations"]
        assert sorted(said) == ["didDelete", "willRename"]
        kinds = [told["pattern"]["matches"] for told in said["willRename"]["filters"]]
        assert kinds == ["file", "folder"]
        old, new = (tmp_path / "c.loom.yaml").as_uri(), (tmp_path / "my parts" / "d.loom.yaml").as_uri()
        answer = peer.request("workspace/willRenameFiles", {"files": [{"oldUri": old, "newUri": new}]})
        (change,) = answer["documentChanges"]
        assert change["textDocument"] == {"uri": (tmp_path / "p.loom.yaml").as_uri(), "version": None}
        assert edited(parent, change["edits"]) == parent.replace("./c.", "./my parts/d.")
        assert peer.request("workspace/willRenameFiles", {"files": [{"oldUri": new, "newUri": old}]}) is None
        assert peer.leave() == 0
