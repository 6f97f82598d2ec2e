"""Completion over the wire: what clients that can do much, and clients that can do nothing, are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agentloom.text import LineTable
from agentloom_lsp.convert import Encoding, Places
from tests.ide.marked import cut
from tests.lsp.peer import FULL, Local

URI = "file:///work/flow.loom.yaml"
H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"

ABLE: dict[str, Any] = {
    "completionItem": {
        "snippetSupport": True,
        "documentationFormat": ["markdown", "plaintext"],
        "insertReplaceSupport": True,
        "insertTextModeSupport": {"valueSet": [1, 2]},
        "labelDetailsSupport": True,
        "resolveSupport": {"properties": ["documentation"]},
    },
    "completionItemKind": {"valueSet": list(range(1, 26))},
    "completionList": {"itemDefaults": ["editRange"]},
}


def capable(completion: Mapping[str, Any], encoding: str = "utf-16") -> dict[str, Any]:
    return {
        **FULL,
        "general": {"positionEncodings": [encoding], "markdown": {"parser": "marked", "version": "1.1.0"}},
        "textDocument": {**FULL["textDocument"], "completion": completion},
    }


@pytest.fixture
def able() -> Iterator[Local]:
    with Local() as peer:
        peer.initialize(capable(ABLE))
        yield peer


@pytest.fixture
def simple() -> Iterator[Local]:
    with Local() as peer:
        peer.initialize({})
        yield peer


def ask(peer: Local, marked: str, encoding: Encoding = Encoding.UTF16) -> Any:
    """Open a marked text and return what is offered at its mark."""
    text, offset = cut(marked)
    peer.open(URI, text)
    position = Places(LineTable(text), encoding).position(offset)
    return peer.request("textDocument/completion", {"textDocument": {"uri": URI}, "position": position._asdict()})


def found(answer: Any, label: str) -> Any:
    return next(item for item in answer["items"] if item["label"] == label)


def place(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def test_a_client_that_can_do_much(able: Local) -> None:
    """One range for all, the whole word; snippets; documentation later; what comes next is asked for."""
    answer = ask(able, H + A + "    re¦t\n")
    assert answer["isIncomplete"] is False
    assert answer["itemDefaults"]["editRange"] == place(5, 4, 7)
    retry = found(answer, "retry")
    assert retry["textEditText"] == "retry:\n  $0"
    assert (retry["insertTextFormat"], retry["insertTextMode"]) == (2, 2)
    assert retry["command"]["command"] == "editor.action.triggerSuggest"
    assert retry["labelDetails"] == {"description": retry["detail"]}
    assert "documentation" not in retry
    assert [item["sortText"] for item in answer["items"]] == sorted(item["sortText"] for item in answer["items"])


def test_documentation_comes_when_asked_for(able: Local) -> None:
    """The item comes back whole, with Markdown."""
    item = found(ask(able, H + A + "    ¦\n"), "temperature")
    resolved = able.request("completionItem/resolve", item)
    assert resolved["documentation"]["kind"] == "markdown"
    assert "0 to 2" in resolved["documentation"]["value"]
    assert {**resolved, "documentation": None} == {**item, "documentation": None}


def test_documentation_of_a_step_is_that_of_its_document(able: Local) -> None:
    """A step is explained as it is now; where its file is closed, nothing is said, and nothing breaks."""
    item = found(ask(able, H + A + A.replace("id: a", "id: b") + "    depends_on: [¦]\n"), "a")
    assert "`a`" in able.request("completionItem/resolve", item)["documentation"]["value"]
    able.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert "documentation" not in able.request("completionItem/resolve", item)
    assert able.request("completionItem/resolve", {"label": "x", "data": ["odd"]})["label"] == "x"


def test_lines_of_a_whole_step_are_indented_by_the_editor(able: Local) -> None:
    """Behind the dash the editor adds the line's own two columns to every further line."""
    step = found(ask(able, H + A + "  - ¦\n"), "llm_call step")
    assert step["textEditText"].splitlines()[:2] == ["id: ${1:step_2}", "  type: llm_call"]
    assert (step["insertTextFormat"], step["insertTextMode"], step["kind"]) == (2, 2, 15)


def test_blanks_that_some_editors_would_cut_off_are_kept(able: Local) -> None:
    """Neovim takes only the first word of what is no snippet; so text with blanks around it is one."""
    output = found(ask(able, H + A + "    ¦\n"), "output")
    assert (output["textEditText"], output["insertTextFormat"]) == ("output: $0", 2)
    tool = found(ask(able, H + "  - type:¦\n"), "tool")
    assert (tool["textEditText"], tool["insertTextFormat"]) == (" tool", 2)


def test_a_client_that_inserts_lines_but_knows_no_snippets() -> None:
    """Emacs without its package for snippets, for one: several lines, indented as they have to stand."""
    with Local() as peer:
        peer.initialize(capable({"completionItem": {"insertTextModeSupport": {"valueSet": [1]}}}))
        step = found(ask(peer, H + A + "  - ¦\n"), "llm_call step")
        assert step["textEdit"]["newText"].splitlines()[:2] == ["id: step_2", "    type: llm_call"]
        assert step["insertTextMode"] == 1


def test_a_client_that_can_do_nothing(simple: Local) -> None:
    """Plain text in plain edits, with all that is known at once; no command that it would have to know."""
    answer = ask(simple, H + A + "    ¦\n")
    assert "itemDefaults" not in answer
    item = found(answer, "temperature")
    assert item["textEdit"] == {"range": place(5, 4, 4), "newText": "temperature: "}
    assert isinstance(item["documentation"], str)
    assert "`" not in item["documentation"]
    assert not {"command", "insertTextFormat", "insertTextMode", "labelDetails"} & item.keys()
    assert found(answer, "retry")["textEdit"]["newText"] == "retry:"
    step = found(ask(simple, H + A + "  - ¦\n"), "llm_call step")
    assert step["textEdit"]["newText"] == "{id: step_2, type: llm_call, prompt: prompt, output: key}"
    inner = found(ask(simple, H + A + "    retry: ¦\n"), "max_retries")
    assert inner["textEdit"]["newText"] == " {max_retries: 3}"
    listed = found(ask(simple, H + A + "    attachments:¦\n"), "attachment")
    assert listed["textEdit"]["newText"] == " [{source: ./invoice.png}]"
    assert "workflow" not in [item["label"] for item in ask(simple, "¦")["items"]]
    assert all(item["kind"] <= 18 for item in ask(simple, H + "  - {type: ¦}\n")["items"])


@pytest.mark.parametrize("encoding", list(Encoding))
def test_ranges_behind_wide_characters(encoding: Encoding) -> None:
    """Characters are counted as the client counts them, on the line and above."""
    with Local() as peer:
        peer.initialize(capable({}, encoding.value))
        line = "  - {id: 😀é, prompt: 😀, type: r¦ou}\n"
        item = found(ask(peer, "# 😀\n" + H + line, encoding), "router")
        wider = {Encoding.UTF8: 3 + 1 + 3, Encoding.UTF16: 1 + 1, Encoding.UTF32: 0}  # than in code points
        end = line.index("¦") + wider[encoding] + len("ou")
        assert item["textEdit"]["range"] == place(3, end - len("rou"), end)


def test_nothing_for_files_that_are_none_of_ours(able: Local) -> None:
    """A compose file gets no answer, and one that isn't open neither."""
    able.open("file:///work/compose.yaml", "services:\n  web: {}\n")
    at = {"line": 0, "character": 0}
    uri = {"uri": "file:///work/compose.yaml"}
    assert able.request("textDocument/completion", {"textDocument": uri, "position": at}) is None
    other = {"uri": "file:///work/other.loom.yaml"}
    assert able.request("textDocument/completion", {"textDocument": other, "position": at}) is None


def test_a_place_past_the_end_is_the_end(able: Local) -> None:
    """Odd positions are held inside the text."""
    able.open(URI, "name: w\n")
    for line, character in ((99, 99), (1, 500), (0, 10_000)):
        at = {"line": line, "character": character}
        answer = able.request("textDocument/completion", {"textDocument": {"uri": URI}, "position": at})
        assert isinstance(answer["items"], list)


def test_line_ends_are_the_files_own(able: Local) -> None:
    """In a file with CRLF every inserted line break is one."""
    item = found(ask(able, (H + A + "    ¦\n").replace("\n", "\r\n")), "retry")
    assert item["textEditText"] == "retry:\r\n  $0"
