"""Code actions over the wire: kinds, what waits for a resolve, what can't be done, and edits in the client's units."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom_lsp.convert import Encoding, Position
from agentloom_lsp.documents import Change, Document
from tests.analysis.checking import A, H
from tests.lsp.peer import FULL, Local, Refused

URI = "file:///nowhere/actions.loom.yaml"
ABLE: dict[str, Any] = copy.deepcopy(FULL)
ABLE["textDocument"]["codeAction"].update(
    {
        "isPreferredSupport": True,
        "disabledSupport": True,
        "dataSupport": True,
        "resolveSupport": {"properties": ["edit"]},
    }
)
ABLE["workspace"]["workspaceEdit"] = {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]}
TWICE = A.replace("id: a", "id: b") + "    depends_on: [a, a]\n"


@pytest.fixture
def able() -> Iterator[Local]:
    with Local() as peer:
        peer.initialize(ABLE)
        yield peer
        assert peer.leave() == 0


def actions(peer: Local, line: int, character: int, uri: str = URI, **context: Any) -> list[dict[str, Any]]:
    """Return what may be done at a place."""
    place = {"line": line, "character": character}
    found: list[dict[str, Any]] | None = peer.request(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": uri},
            "range": {"start": place, "end": place},
            "context": {"diagnostics": [], **context},
        },
    )
    assert found is not None
    return found


def applied(text: str, edit: dict[str, Any], encoding: str = "utf-16", uri: str = URI) -> str:
    """Return a text after an edit of its document, as a client carries it out."""
    document = Document(URI, "yaml", 1, text)
    changes = [
        Change(piece["newText"], *(Position(**piece["range"][end]) for end in ("start", "end")))
        for change in edit["documentChanges"]
        if change.get("textDocument", {}).get("uri") == uri
        for piece in change["edits"]
    ]
    changes.sort(key=lambda change: change.start or Position(0, 0), reverse=True)
    document.apply(changes, 2, Encoding(encoding))
    return document.source.text


def test_costly_actions_wait(able: Local) -> None:
    """What checks the text again comes without an edit, and is worked out when it is chosen."""
    text = H + A + TWICE + TWICE.replace("id: b", "id: c")
    able.open(URI, text)
    found = {action["title"]: action for action in actions(able, 8, 20)}
    everything = found["Fix everything that is safe to fix"]
    assert "edit" not in everything
    resolved = able.request("codeAction/resolve", everything)
    assert applied(text, resolved["edit"]) == text.replace("[a, a]", "[a]")
    alike = found["Fix all 2 AL205 in this file"]
    assert (alike["kind"], "edit" in alike, len(alike["diagnostics"])) == ("quickfix", False, 1)
    assert applied(text, able.request("codeAction/resolve", alike)["edit"]) == text.replace("[a, a]", "[a]")
    able.change(URI, "# new\n", 0, 0, 0, 0)
    with pytest.raises(Refused) as caught:
        able.request("codeAction/resolve", alike)
    assert caught.value.code == -32801


@pytest.mark.parametrize("data", [None, 7, {}, {"uri": "file:///x"}, {"uri": URI, "version": 1, "kind": "fix"}, []])
def test_nonsense_to_resolve(able: Local, data: Any) -> None:
    """An action that was never offered is refused, and the server goes on."""
    able.open(URI, H + A + TWICE)
    with pytest.raises(Refused):
        able.request("codeAction/resolve", {"title": "x", "data": data})
    assert actions(able, 8, 20)


def test_clients_that_resolve_nothing_get_everything_at_once() -> None:
    """The edits are there from the beginning."""
    with Local() as peer:
        said = peer.initialize(FULL)
        assert said["capabilities"]["codeActionProvider"]["resolveProvider"] is False
        text = H + A + TWICE + TWICE.replace("id: b", "id: c")
        peer.open(URI, text)
        for action in actions(peer, 8, 20):
            assert "edit" in action
            assert "disabled" not in action
        assert peer.leave() == 0


def test_kinds_are_a_hierarchy(able: Local) -> None:
    """`only` takes kinds and what lies below them; the answer says which kinds there are."""
    able.open(URI, H + A + TWICE)
    for only, wanted in [
        (["quickfix"], {"quickfix"}),
        (["source"], {"source.fixAll.agentloom"}),
        (["source.fixAll"], {"source.fixAll.agentloom"}),
        (["source.fixAll.agentloom"], {"source.fixAll.agentloom"}),
        (["source.fixAll.other", "source.organizeImports", "quick"], set()),
        (["quickfix", "source"], {"quickfix", "source.fixAll.agentloom"}),
    ]:
        assert {action["kind"] for action in actions(able, 8, 20, only=only)} == wanted


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_suppressing_over_the_wire(encoding: str) -> None:
    """The comment lands where it should in a file with a byte order mark, CRLF and emoji, and the finding goes."""
    text = ("\ufeff# 😀\n" + H + "  - {id: a, type: llm_call, prompt: '😀é', retry: {backoff_base: 1}}\n").replace(
        "\n", "\r\n"
    )
    with Local() as peer:
        peer.initialize({**ABLE, "general": {"positionEncodings": [encoding]}})
        peer.open(URI, text)
        (report,) = peer.published(URI, 1)
        found = actions(peer, 3, report["range"]["start"]["character"])
        here, everywhere = [action for action in found if action["title"].startswith("Suppress ")]
        assert here["title"] == "Suppress AL501 (backoff-not-growing) here"
        assert here["diagnostics"] == [report]
        assert applied(text, here["edit"], encoding) == text.replace("  - {", "  # agentloom: ignore[AL501]\r\n  - {")
        assert everywhere["title"] == "Suppress AL501 in this file"
        after = applied(text, everywhere["edit"], encoding)
        assert after == text.replace("😀\r\n", "😀\r\n# agentloom: ignore-file[AL501]\r\n", 1)
        assert peer.published(URI, peer.change(URI, after)) == []
        assert peer.leave() == 0


def test_errors_are_not_suppressed(able: Local) -> None:
    """No comment hides what the run would refuse, so none is offered."""
    able.open(URI, H + A + "    depends_on: [nope]\n")
    assert not [action for action in actions(able, 5, 18) if action["title"].startswith("Suppress")]


# --- refactorings

FLOW = """\
name: w
state:
  ticket: Lamp
steps:
  - id: a
    type: llm_call
    prompt: "😀 {state.ticket}"
    output: page
  - id: b
    type: llm_call
    depends_on: [a]
    prompt: "{state.page}"
    output: sum
  - id: c
    type: llm_call
    depends_on: [b]
    prompt: "{state.sum}"
"""


def test_extracting_over_the_wire(tmp_path: Path, able: Local) -> None:
    """A new file is made first, then both are edited; opened as they are then, neither has a finding."""
    home = tmp_path / "my flows"
    home.mkdir()
    uri = (home / "w.loom.yaml").as_uri()
    able.open(uri, FLOW)
    found = {action["title"]: action for action in actions(able, 9, 4, uri=uri, only=["refactor"])}
    assert set(found) == {
        "Add a retry block to `b`",
        "Extract `b` to a subworkflow file",
        "Extract `b` to a subworkflow in place",
    }
    extracting = found["Extract `b` to a subworkflow file"]
    assert extracting["kind"] == "refactor.extract"
    changes = able.request("codeAction/resolve", extracting)["edit"]["documentChanges"]
    create, fill, edit = changes
    child = (home / "b_part.loom.yaml").as_uri()
    assert (create["kind"], create["uri"], create["options"]["overwrite"]) == ("create", child, False)
    assert fill["textDocument"] == {"uri": child, "version": None}
    assert edit["textDocument"] == {"uri": uri, "version": 1}
    able.open(child, fill["edits"][0]["newText"])
    assert able.published(child, 1) == []
    after = applied(FLOW, {"documentChanges": [edit]}, uri=uri)
    assert "workflow_path: b_part.loom.yaml" in after
    assert able.published(uri, able.change(uri, after)) == []
    line = after[: after.index("id: b_part")].count("\n")
    (inlining,) = actions(able, line, 4, uri=uri, only=["refactor.inline"])
    assert inlining["title"] == "Inline the subworkflow `b_part`"
    (edit,) = able.request("codeAction/resolve", inlining)["edit"]["documentChanges"]
    back = applied(after, {"documentChanges": [edit]}, uri=uri)
    assert back == FLOW.replace("output: sum", "output: b_part.sum").replace("{state.sum}", "{state.b_part.sum}")


def test_reasons_over_the_wire(able: Local) -> None:
    """What can't be done is shown with its reason where somebody asked for it, and left out of a light bulb."""
    able.open(URI, FLOW)
    span = {"start": {"line": 4, "character": 0}, "end": {"line": 14, "character": 0}}
    request = {
        "textDocument": {"uri": URI},
        "range": span,
        "context": {"diagnostics": [], "only": ["refactor.extract"]},
    }
    able.open(URI + "2", FLOW.replace("output: page", "output: page\n    nope: 1"))
    request["textDocument"] = {"uri": URI + "2"}
    found = able.request("textDocument/codeAction", request)
    assert found
    assert {action["disabled"]["reason"] for action in found} == {"the file has errors; mend them first"}
    request["context"] = {"diagnostics": [], "only": ["refactor.extract"], "triggerKind": 2}
    for action in able.request("textDocument/codeAction", request):
        assert "disabled" not in action
        with pytest.raises(Refused) as caught:
            able.request("codeAction/resolve", action)
        assert (caught.value.code, str(caught.value)) == (-32803, "the file has errors; mend them first")


def test_a_light_bulb(able: Local) -> None:
    """An editor that asks by itself is told of refactorings for a selection only: else the bulb would burn on every line."""
    able.open(URI, FLOW)
    assert actions(able, 9, 4, triggerKind=2) == []
    assert {action["kind"] for action in actions(able, 9, 4, triggerKind=1)} == {"refactor.rewrite", "refactor.extract"}
    span = {"start": {"line": 9, "character": 0}, "end": {"line": 14, "character": 0}}
    request = {"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": [], "triggerKind": 2}}
    assert able.request("textDocument/codeAction", request)


def test_clients_that_make_no_files() -> None:
    """They are offered a workflow in place only."""
    with Local() as peer:
        peer.initialize(FULL)
        peer.open(URI, FLOW)
        found = [action["title"] for action in actions(peer, 9, 4, only=["refactor.extract"])]
        assert found == ["Extract `b` to a subworkflow in place"]
        assert actions(peer, 9, 4, only=["refactor"], triggerKind=2) == []
        assert peer.leave() == 0
