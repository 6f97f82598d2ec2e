"""What a client sees of the server: freshness, workspace, odd clients. The server is the real one, in a thread over a socket."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.protocol import default_converter

from agentloom.analysis import analyze as analysis
from agentloom.analysis.analyze import AnalysisCache, analyze
from agentloom.analysis.document import WorkflowDocument
from agentloom.text import LineTable, Source
from agentloom_lsp import handshake
from agentloom_lsp.client import Client, read_client
from agentloom_lsp.convert import Encoding, Places, Position
from agentloom_lsp.dispatch import run_session
from agentloom_lsp.documents import Change, Document
from agentloom_lsp.handshake import shake_hands
from agentloom_lsp.notifications import NOTIFICATIONS
from agentloom_lsp.requests import REQUESTS
from agentloom_lsp.transport import Channel
from tests.lsp.asking import STANDARD
from tests.lsp.peer import FULL, PULLING, ROOT, Local, Refused

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
GOOD = H + A
BAD = GOOD + "    depends_on: [zz]\n"
TWICE = A.replace("id: a", "id: b") + "    depends_on: [a, a]  # why\n"
DUBIOUS = GOOD + TWICE
WORD = (5, 17, 5, 19)
"""Where `zz` stands in BAD."""
URI = "file:///nowhere/flow.loom.yaml"


@pytest.fixture
def peer() -> Iterator[Local]:
    """A client that can do everything and gets diagnostics pushed, already introduced."""
    with Local() as peer:
        peer.initialize()
        yield peer
        assert peer.leave() == 0


@pytest.fixture
def puller() -> Iterator[Local]:
    """A client that asks for diagnostics."""
    with Local() as peer:
        peer.initialize(PULLING)
        yield peer
        assert peer.leave() == 0


def codes(reports: list[dict[str, Any]]) -> list[str]:
    return [report["code"] for report in reports]


def start_of(report: dict[str, Any]) -> tuple[int, int]:
    start = report["range"]["start"]
    return start["line"], start["character"]


# --- freshness


def test_the_last_fixed_finding_goes(peer: Local) -> None:
    """Editor case: the last fixed finding stays until the file is closed. An empty list is sent."""
    peer.open(URI, BAD)
    assert codes(peer.published(URI, 1)) == ["AL202"]
    version = peer.change(URI, "", 5, 0, 6, 0)
    assert peer.published(URI, version) == []


def test_unparseable_takes_the_old_diagnostics_along(peer: Local) -> None:
    """Editor case: file becomes unparseable and old squiggles stay at old places."""
    peer.open(URI, BAD)
    assert start_of(peer.published(URI, 1)[0]) == WORD[:2]
    version = peer.change(URI, "- [\n", 0, 0, 0, 0)
    reports = peer.published(URI, version)
    assert "AL001" in codes(reports)
    assert all(start_of(report) != WORD[:2] for report in reports)


def test_twenty_quick_edits_and_a_close(peer: Local) -> None:
    """Open, twenty quick edits, close: nothing stale is published, the last version's diagnostics are, then they are taken back."""
    peer.open(URI, GOOD)
    assert peer.published(URI, 1) == []
    for number in range(20):
        version = peer.change(URI, f"    depends_on: [x{number}]\n", 5, 0, 5 if number == 0 else 6, 0)
    reports = peer.published(URI, version)
    assert next(report["message"] for report in reports if report["code"] == "AL202").startswith("step `x19`")
    peer.close_document(URI)
    assert peer.published(URI) == []
    assert len(peer.publishes(URI)) <= 4
    assert sorted(peer.publishes(URI)) == peer.publishes(URI)


def test_answers_do_not_wait_for_a_pause() -> None:
    """Editor case: 20 keystrokes queue seconds of work. A hover meanwhile is answered at once, about the text as it is by then.

    The pause that diagnostics wait for is a minute here; 500 steps, twenty edits, a hover after each.
    """
    text = H + "".join(A.replace("id: a", f"id: s{number}") for number in range(500))
    with Local() as peer:
        peer.initialize(initializationOptions={"debounce": 60_000})
        peer.open(URI, text)
        assert peer.published(URI, 1) == []
        for number in range(20):
            peer.change(URI, "x", 2, 8, 2, 8)
            place = {"textDocument": {"uri": URI}, "position": {"line": 2, "character": 8}}
            assert f"`{'x' * (number + 1)}s0`" in str(peer.request("textDocument/hover", place)["contents"])
        assert peer.publishes(URI) == [1]
        assert peer.leave() == 0


def test_closing_takes_diagnostics_back(peer: Local) -> None:
    """A closed document has no diagnostics, also when it is closed before it was ever checked."""
    peer.open(URI, BAD)
    peer.close_document(URI)
    while peer.published(URI):
        pass
    peer.open(URI, GOOD, version=1)
    assert peer.published(URI) == []


def test_a_workflow_stays_one_while_it_is_edited(peer: Local) -> None:
    """A file known by its looks only still gets its diagnostics when an edit takes the looks away."""
    uri = "file:///nowhere/plain.yaml"
    peer.open(uri, GOOD)
    assert peer.published(uri, 1) == []
    version = peer.change(uri, "stepz:\n", 1, 0, 2, 0)
    assert "AL102" in codes(peer.published(uri, version))


SILENT = {
    "compose": "services:\n  web:\n    image: nginx\n    depends_on: [db]\n  db:\n    image: postgres\n",
    "github-actions": "name: ci\non: [push]\njobs:\n  test:\n    steps:\n      - id: a\n        run: make\n        type: x\n",
    "azure-pipelines": "trigger: [main]\nsteps:\n  - script: make\n    displayName: x\n",
    "woodpecker": "steps:\n  - name: build\n    image: debian\n    commands: [make]\n",
    "kubernetes": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n    - name: a\n      image: b\n",
    "kubernetes-list": "apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: Pod\n",
    "broken": "a: [\n\t- x: y: z\n",
    "empty": "",
}


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT.keys())
def test_silence_in_files_of_others(peer: Local, text: str) -> None:
    """Not one diagnostic in a compose file, a CI file, a Kubernetes manifest, or YAML that is no good to anyone."""
    uri = "file:///nowhere/other.yaml"
    peer.open(uri, text)
    assert peer.published(uri, 1) == []


def test_other_languages_are_not_ours(peer: Local) -> None:
    """A document in another language that happens to look like a workflow is left alone; one that is named so isn't."""
    peer.open("file:///nowhere/a.md", BAD, language="markdown")
    assert peer.published("file:///nowhere/a.md") == []
    peer.open("untitled:Untitled-1", BAD, language="agentloom")
    assert codes(peer.published("untitled:Untitled-1")) == ["AL202"]
    peer.open("file:///nowhere/b.loom.yaml", BAD, language="text")
    assert codes(peer.published("file:///nowhere/b.loom.yaml")) == ["AL202"]


# --- what a diagnostic carries


def test_a_diagnostic_carries_all_it_knows(peer: Local) -> None:
    """Code, page, severity, source, the fixes as data, and related places with this document's own URI."""
    peer.open(URI, H + A + A)
    (report,) = peer.published(URI, 1)
    assert (report["code"], report["severity"], report["source"]) == ("AL201", 1, "agentloom")
    assert report["codeDescription"]["href"].endswith("/docs/rules/AL201.md")
    assert report["data"]["name"] == "duplicate-step-id"
    (related,) = report["relatedInformation"]
    assert related["location"]["uri"] == URI
    assert related["location"]["range"]["start"] == {"line": 2, "character": 8}


def test_a_client_gets_only_what_it_understands() -> None:
    """A client that names no capabilities gets plain diagnostics."""
    with Local() as peer:
        peer.initialize({})
        peer.open(URI, H + A + A)
        (report,) = peer.published(URI, 1)
        assert set(report) == {"range", "severity", "code", "source", "message"}
        assert peer.leave() == 0


def test_fixes_are_code_actions(peer: Local) -> None:
    """The fix of a diagnostic under the cursor, as an edit of this version of this document."""
    peer.open(URI, H + A + A.replace("id: a", "id: bb") + "    depends_on: [aa]\n")
    (report,) = peer.published(URI, 1)
    place = {"line": 8, "character": 18}
    actions = actions_at(peer, place, place)
    fixes = [action for action in actions if action["kind"] == "quickfix"]
    assert fixes[0]["diagnostics"] == [report]
    assert fixes[0]["isPreferred"] is report["data"]["fixes"][0]["safe"]
    (change,) = fixes[0]["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    assert change["edits"] == report["data"]["fixes"][0]["edits"]
    assert not actions_at(peer, {"line": 0, "character": 0}, {"line": 0, "character": 0}, only=["quickfix"])
    assert all(a["kind"] == "quickfix" for a in actions_at(peer, place, place, only=["quickfix"]))
    assert not actions_at(peer, place, place, only=["source.organizeImports"])


def test_all_safe_fixes_at_once(peer: Local) -> None:
    """`source.fixAll` brings every safe fix, and the result has none of the faults."""
    peer.open(URI, DUBIOUS + TWICE.replace("id: b", "id: c"))
    assert codes(peer.published(URI, 1)) == ["AL205", "AL205"]
    whole = {"line": 99, "character": 0}
    (action,) = actions_at(peer, whole, whole, only=["source.fixAll"])
    assert action["kind"] == "source.fixAll.agentloom"
    (change,) = action["edit"]["documentChanges"]
    for edit in sorted(change["edits"], key=lambda e: e["range"]["start"]["line"], reverse=True):
        start, end = edit["range"]["start"], edit["range"]["end"]
        version = peer.change(URI, edit["newText"], start["line"], start["character"], end["line"], end["character"])
    assert peer.published(URI, version) == []


def actions_at(peer: Local, start: Any, end: Any, only: list[str] | None = None) -> list[dict[str, Any]]:
    context: dict[str, Any] = {"diagnostics": [], **({"only": only} if only else {})}
    params = {"textDocument": {"uri": URI}, "range": {"start": start, "end": end}, "context": context}
    found: list[dict[str, Any]] = peer.request("textDocument/codeAction", params)
    return found


def test_what_is_needless_is_tagged(peer: Local) -> None:
    """A dependency that another one implies is shown faded."""
    peer.open(
        URI,
        GOOD
        + A.replace("id: a", "id: b")
        + "    depends_on: [a]\n"
        + A.replace("id: a", "id: c")
        + "    depends_on: [a, b]\n",
    )
    (report,) = peer.published(URI, 1)
    assert (report["code"], report["severity"], report["tags"]) == ("AL206", 4, [1])


# --- workspace and URIs


def test_the_settings_nearest_to_the_file_win(tmp_path: Path) -> None:
    """Editor case: second root's settings used for the first. Two folders, each with its own `agentloom.toml`."""
    for name, settings in (("one", 'ignore = ["AL205"]\n'), ("two", 'severity = {AL205 = "error"}\n'), ("three", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agentloom.toml").write_text(settings)
    with Local() as peer:
        peer.initialize(workspaceFolders=[{"uri": (tmp_path / n).as_uri(), "name": n} for n in ("one", "two", "three")])
        found = {}
        for name in ("one", "two", "three"):
            uri = (tmp_path / name / "w.yaml").as_uri()
            peer.open(uri, DUBIOUS)
            found[name] = [report["severity"] for report in peer.published(uri, 1)]
        assert found == {"one": [], "two": [1], "three": [2]}
        assert peer.leave() == 0


def test_changed_settings_are_used_at_once(tmp_path: Path, peer: Local) -> None:
    """The client tells that `agentloom.toml` changed, appeared or went: open documents are checked again."""
    uri, settings = (tmp_path / "w.yaml").as_uri(), tmp_path / "agentloom.toml"
    peer.open(uri, DUBIOUS)
    assert codes(peer.published(uri)) == ["AL205"]
    for text, expected in (('ignore = ["AL2"]\n', []), ("", ["AL205"])):
        settings.write_text(text)
        change = {"uri": settings.as_uri(), "type": 2}
        peer.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
        assert codes(peer.published(uri)) == expected


def test_a_client_that_watches_nothing_tells_by_saving(tmp_path: Path) -> None:
    """Without watched files, saving a document reads the settings again."""
    uri, settings = (tmp_path / "w.yaml").as_uri(), tmp_path / "agentloom.toml"
    with Local() as peer:
        peer.initialize({})
        peer.open(uri, DUBIOUS)
        assert codes(peer.published(uri)) == ["AL205"]
        settings.write_text('ignore = ["AL205"]\n')
        peer.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        assert peer.published(uri) == []
        assert peer.leave() == 0


def test_folders_with_blanks(tmp_path: Path) -> None:
    """Editor case: `%20` in a folder. Settings are found, siblings are read, and the client's spelling comes back."""
    folder = tmp_path / "my flows"
    folder.mkdir()
    (folder / "agentloom.toml").write_text('severity = {AL205 = "hint"}\n')
    (folder / "child.loom.yaml").write_text(GOOD.replace("prompt", "promt"))
    uri = f"{tmp_path.as_uri()}/my%20flows/w.loom.yaml"
    parent = DUBIOUS + "  - id: s\n    type: subworkflow\n    workflow_path: child.loom.yaml\n"
    with Local() as peer:
        peer.initialize(folder=f"{tmp_path.as_uri()}/my%20flows")
        peer.open(uri, parent)
        reports = {report["code"]: report for report in peer.published(uri, 1)}
        assert reports["AL205"]["severity"] == 4
        (related, *_) = reports["AL702"]["relatedInformation"]
        assert related["location"]["uri"] == f"{tmp_path.as_uri()}/my%20flows/child.loom.yaml"
        assert related["location"]["range"]["start"] == {"line": 4, "character": 4}
        assert peer.leave() == 0


@pytest.mark.parametrize(
    ("opened", "asked"),
    [
        ("file:///c%3A/flows/w.loom.yaml", "file:///c:/flows/w.loom.yaml"),
        ("file:///C:/flows/w.loom.yaml", "file:///c%3A/flows/w.loom.yaml"),
        ("file:///tmp/my%20flows/../w.loom.yaml", "file:///tmp/w.loom.yaml"),
    ],
)
def test_two_spellings_are_one_document(peer: Local, opened: str, asked: str) -> None:
    """Editor case: open with one form, edit and close with the other; the form it was opened with comes back."""
    peer.open(opened, BAD)
    assert codes(peer.published(opened, 1)) == ["AL202"]
    peer.versions[asked] = 1
    version = peer.change(asked, "", 5, 0, 6, 0)
    assert peer.published(opened, version) == []
    peer.close_document(asked)
    peer.published(opened)
    assert {m["params"]["uri"] for m in peer.seen if m.get("method") == "textDocument/publishDiagnostics"} == {opened}


def comes_and_goes(peer: Local, used: Path, user: str, text: str, word: tuple[int, int, int, int]) -> None:
    """Edit the file that a workflow uses (a word of it becomes wrong), close it, remove it and make it again: the workflow is checked each time."""
    peer.open(used.as_uri(), text)
    peer.published(user)
    peer.change(used.as_uri(), "promt", *word)
    assert codes(peer.published(user)) == ["AL702"]
    peer.close_document(used.as_uri())
    assert peer.published(user) == []
    used.unlink()
    peer.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": used.as_uri(), "type": 3}]})
    assert codes(peer.published(user)) == ["AL701"]
    used.write_text(text)
    peer.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": used.as_uri(), "type": 1}]})
    assert peer.published(user) == []


def test_open_files_are_read_as_they_are_in_the_editor(tmp_path: Path, peer: Local) -> None:
    """A subworkflow that is edited, saved or not, closed, made or removed: who uses it is checked again."""
    child, parent = tmp_path / "child.loom.yaml", tmp_path / "parent.loom.yaml"
    child.write_text(GOOD)
    peer.open(parent.as_uri(), H + "  - id: s\n    type: subworkflow\n    workflow_path: child.loom.yaml\n")
    assert peer.published(parent.as_uri()) == []
    comes_and_goes(peer, child, parent.as_uri(), GOOD, (4, 4, 4, 10))


def test_agent_files_are_read_as_they_are_in_the_editor(tmp_path: Path, peer: Local) -> None:
    """As subworkflows are: edited, closed, removed, made, each time the workflow is checked again."""
    agent, flow = tmp_path / "a.agent.yaml", tmp_path / "w.loom.yaml"
    text = "system_prompt: You help.\n"
    agent.write_text(text)
    peer.open(flow.as_uri(), H + "  - id: s\n    type: agent\n    agent: ./a.agent.yaml\n    input: hi\n")
    assert peer.published(flow.as_uri()) == []
    comes_and_goes(peer, agent, flow.as_uri(), text, (0, 7, 0, 13))


def test_files_that_read_each_other_come_to_rest(tmp_path: Path, peer: Local) -> None:
    """Two workflows that run each other, both open: checked a few times, not for ever."""
    one, other = tmp_path / "one.loom.yaml", tmp_path / "two.loom.yaml"
    text = H + "  - id: s\n    type: subworkflow\n    workflow_path: {}\n"
    for path, target in ((one, "two.loom.yaml"), (other, "one.loom.yaml")):
        path.write_text(text.format(target))
    for path in (one, other):
        peer.open(path.as_uri(), path.read_text())
    assert "AL703" in codes(peer.published(one.as_uri()))
    for uri in (one.as_uri(), other.as_uri()):
        peer.open(f"{uri}.end.loom.yaml", GOOD)
        peer.published(f"{uri}.end.loom.yaml")
        assert len(peer.publishes(uri)) <= 6


# --- pulling


def pull(peer: Local, uri: str = URI, previous: str | None = None) -> dict[str, Any]:
    params = {"textDocument": {"uri": uri}, **({"previousResultId": previous} if previous else {})}
    found: dict[str, Any] = peer.request("textDocument/diagnostic", params)
    return found


def test_pulled_diagnostics(puller: Local) -> None:
    """Full the first time, unchanged with the same result id, full again after a change that matters; nothing is pushed."""
    puller.open(URI, BAD)
    first = pull(puller)
    assert (first["kind"], codes(first["items"])) == ("full", ["AL202"])
    assert pull(puller, previous=first["resultId"]) == {"kind": "unchanged", "resultId": first["resultId"]}
    puller.change(URI, "# a comment\n", 6, 0, 6, 0)
    assert pull(puller, previous=first["resultId"])["kind"] == "unchanged"
    puller.change(URI, "yy", *WORD)
    second = pull(puller, previous=first["resultId"])
    assert "`yy`" in second["items"][0]["message"]
    puller.change(URI, "", 5, 0, 6, 0)
    assert pull(puller, previous=second["resultId"])["items"] == []
    puller.close_document(URI)
    assert pull(puller) == {"kind": "full", "items": []}
    assert puller.publishes(URI) == []


def test_a_pull_during_typing_gets_the_newest_version(puller: Local) -> None:
    """Each change is followed by a question, as some editors do; every answer is for a version not older than it."""
    puller.open(URI, BAD)
    numbers = []
    for number in range(10):
        puller.change(URI, f"    depends_on: [x{number}]\n", 5, 0, 6, 0)
        numbers.append(puller.start("textDocument/diagnostic", {"textDocument": {"uri": URI}}))
    for number, asked in enumerate(numbers):
        (report,) = puller.answer(asked)["items"]
        assert int(report["message"].split("`")[1][1:]) >= number


def test_workspace_diagnostics(tmp_path: Path) -> None:
    """All files of ours in the folder, open ones as in the editor; then only what changed; then those that are gone, emptied."""
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "node_modules").mkdir()
    for name, text in {
        "a.loom.yaml": BAD,
        "sub/b.yml": GOOD,
        "open.yaml": GOOD,
        "compose.yaml": SILENT["compose"],
        ".hidden/c.loom.yaml": BAD,
        "node_modules/d.loom.yaml": BAD,
    }.items():
        (tmp_path / name).write_text(text)
    with Local() as peer:
        peer.initialize(PULLING, folder=tmp_path)
        opened = (tmp_path / "open.yaml").as_uri()
        peer.open(opened, BAD, version=7)

        def ask(*previous: dict[str, Any]) -> dict[str, dict[str, Any]]:
            ids = [{"uri": item["uri"], "value": item["resultId"]} for item in previous]
            answer = peer.request("workspace/diagnostic", {"previousResultIds": ids})
            return {item["uri"].rsplit("/", 1)[-1]: item for item in answer["items"]}

        first = ask()
        assert {name: codes(item["items"]) for name, item in first.items()} == {
            "a.loom.yaml": ["AL202"],
            "b.yml": [],
            "open.yaml": ["AL202"],
        }
        assert (first["open.yaml"]["version"], first["b.yml"]["version"]) == (7, None)
        assert {item["kind"] for item in ask(*first.values()).values()} == {"unchanged"}
        (tmp_path / "a.loom.yaml").write_text(GOOD)
        (tmp_path / "sub" / "b.yml").unlink()
        second = ask(*first.values())
        assert (second["a.loom.yaml"]["kind"], second["a.loom.yaml"]["items"]) == ("full", [])
        assert second["open.yaml"]["kind"] == "unchanged"
        assert (second["b.yml"]["kind"], second["b.yml"]["items"]) == ("full", [])
        peer.notify(
            "workspace/didChangeWorkspaceFolders",
            {"event": {"added": [], "removed": [{"uri": tmp_path.as_uri(), "name": ""}]}},
        )
        assert set(ask()) == {"open.yaml"}
        assert peer.leave() == 0


def test_a_client_that_pulls_is_told_to_ask_again(tmp_path: Path, puller: Local) -> None:
    """When something else than the document changed, a client that pulls hears of it."""
    puller.answers["workspace/diagnostic/refresh"] = None
    child, parent = tmp_path / "child.loom.yaml", (tmp_path / "parent.loom.yaml").as_uri()
    puller.open(parent, H + "  - id: s\n    type: subworkflow\n    workflow_path: child.loom.yaml\n")
    assert codes(pull(puller, parent)["items"]) == ["AL701"]
    child.write_text(GOOD)
    puller.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": child.as_uri(), "type": 1}]})
    puller.until(lambda message: message.get("method") == "workspace/diagnostic/refresh")
    assert pull(puller, parent)["items"] == []


# --- odd clients


@pytest.mark.parametrize("answer", [None, [None], [], [3], [{"debounce": "soon"}], {"debounce": -1}, "no", [[]]])
def test_nonsense_as_configuration_means_the_defaults(answer: Any) -> None:
    """A client that answers null, or anything but a configuration, to `workspace/configuration`."""
    with Local() as peer:
        peer.answers["workspace/configuration"] = answer
        peer.initialize()
        peer.until(lambda message: message.get("method") == "workspace/configuration")
        peer.open(URI, BAD)
        assert codes(peer.published(URI)) == ["AL202"]
        assert peer.leave() == 0


def test_a_refused_registration_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    """Editor case: a client's MethodNotFound answer to a server request ends the server. Ignored, logged once."""
    with Local() as peer:
        peer.answers.clear()
        peer.initialize()
        peer.open(URI, BAD)
        peer.published(URI)
        peer.change(URI, "", 5, 0, 6, 0)
        assert peer.published(URI, 2) == []
        said = [m["params"]["message"] for m in peer.seen if m.get("method") == "window/logMessage"]
        assert len([words for words in said if "client/registerCapability" in words]) == 1
        assert peer.leave() == 0
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "capabilities", [{}, None, [], {"general": None, "textDocument": 3, "workspace": {"configuration": "x"}}]
)
def test_a_client_without_capabilities(capabilities: Any) -> None:
    """Editor case: panic, or features lost, when client capabilities omit a block. Works, registered statically."""
    with Local() as peer:
        said = peer.initialize(capabilities)["capabilities"]
        assert said["textDocumentSync"]["change"] == 2
        assert said["positionEncoding"] == "utf-16"
        peer.open(URI, BAD)
        assert codes(peer.published(URI)) == ["AL202"]
        assert not [message for message in peer.seen if "method" in message and "id" in message]
        assert peer.leave() == 0


def test_requests_about_nothing(peer: Local) -> None:
    """Past the end, about documents that aren't open, about no such thing: an empty answer or a proper error."""
    peer.open(URI, BAD)
    far = {"line": 10**9, "character": 10**9}
    assert actions_at(peer, far, far, only=["quickfix"]) == []
    unknown = {
        "textDocument": {"uri": "file:///unknown.yaml"},
        "range": {"start": far, "end": far},
        "context": {"diagnostics": []},
    }
    assert peer.request("textDocument/codeAction", unknown) is None
    for method, params, code in (
        ("textDocument/nonsense", {}, -32601),
        ("textDocument/codeAction", {"textDocument": 3}, -32602),
        ("textDocument/codeAction", None, -32602),
        (
            "textDocument/rename",
            {"textDocument": {"uri": URI}, "position": {"line": 3, "character": 8}, "newName": None},
            -32602,
        ),
        ("initialize", {"capabilities": {}}, -32600),
    ):
        with pytest.raises(Refused) as caught:
            peer.request(method, params)
        assert caught.value.code == code


def test_broken_messages_are_survived(peer: Local) -> None:
    """No JSON, no object, no version, half a header: answered where there is somebody to answer, and passed over."""
    for body in (b"{", b"[1, 2]", b'"x"', b'{"id": 7, "method": "shutdown"}', b"\xff\xfe", b"[" * 100_000):
        peer.raw(b"Content-Length: %d\r\nContent-Type: x\r\n\r\n" % len(body) + body)
        peer.until(lambda message: "error" in message)
    peer.raw(b"X-Nonsense: 1\r\n\r\n")
    peer.notify("$/unknown", {"x": 1})
    peer.notify("textDocument/didChange", {"textDocument": {}})
    peer.notify("textDocument/didChange", {"textDocument": {"uri": "file:///unknown.yaml"}, "contentChanges": []})
    peer.notify("$/cancelRequest", {"id": 4711})
    peer.open(URI, BAD)
    assert codes(peer.published(URI)) == ["AL202"]


def test_an_edit_without_a_version_is_not_lost(peer: Local) -> None:
    """A client that leaves the version out still gets its edit carried out."""
    peer.open(URI, BAD)
    assert codes(peer.published(URI)) == ["AL202"]
    change = {"range": {"start": {"line": 5, "character": 0}, "end": {"line": 6, "character": 0}}, "text": ""}
    peer.notify("textDocument/didChange", {"textDocument": {"uri": URI, "version": None}, "contentChanges": [change]})
    assert peer.published(URI) == []


def test_a_failing_feature_answers_empty(peer: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that raises: an empty answer, one line in the client's log, and the server goes on."""
    monkeypatch.setattr("agentloom_lsp.features.actions.offers", lambda *arguments: 1 / 0)
    peer.open(URI, BAD)
    for _ in range(3):
        assert actions_at(peer, {"line": 0, "character": 0}, {"line": 0, "character": 0}) is None
    said = [m["params"]["message"] for m in peer.seen if m.get("method") == "window/logMessage"]
    assert len([words for words in said if "`textDocument/codeAction` failed with ZeroDivisionError" in words]) == 1
    monkeypatch.undo()
    assert actions_at(peer, {"line": 5, "character": 18}, {"line": 5, "character": 18})


def test_a_failing_check_is_one_diagnostic(caplog: pytest.LogCaptureFixture) -> None:
    """When the check itself breaks down, the file says so, the log has the reason, and other files are served."""

    def door(source: Source, *rest: Any) -> WorkflowDocument:
        if "boom" in source.text:
            raise RuntimeError("boom")
        return analyze(source, *rest)

    def serve(channel: Channel) -> int:
        client = shake_hands(channel.receive, channel.send)
        assert client
        return run_session(channel, client, door, AnalysisCache)

    with Local(serve) as peer:
        peer.initialize()
        peer.open(URI, BAD.replace("hi", "boom 😀"))
        (report,) = peer.published(URI, 1)
        assert (report["code"], report["range"]["end"]) == ("AL900", {"line": 0, "character": 7})
        assert actions_at(peer, {"line": 0, "character": 0}, {"line": 0, "character": 0}) is None
        version = peer.change(URI, "hi", 4, 12, 4, 19)
        assert codes(peer.published(URI, version)) == ["AL202"]
        assert peer.leave() == 0
    assert "RuntimeError: boom" in caplog.text


def test_a_failing_rule_is_one_diagnostic(peer: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editor case: a background panic kills the process with no message. The rule's crash is reported, the others run."""

    def crash(document: WorkflowDocument) -> Iterator[Any]:
        yield from ()
        raise RuntimeError("boom")

    rule = analysis.DOCUMENT_RULES[0]._replace(check=crash)
    monkeypatch.setattr(analysis, "DOCUMENT_RULES", (rule, *analysis.DOCUMENT_RULES))
    monkeypatch.setattr(analysis, "RAISE_CRASHES", False)
    peer.open(URI, BAD)
    assert sorted(codes(peer.published(URI, 1))) == ["AL202", "AL900"]
    monkeypatch.undo()
    version = peer.change(URI, "", 5, 0, 6, 0)
    assert peer.published(URI, version) == []


def test_before_and_after(peer: Local) -> None:
    """After `shutdown` requests are refused."""
    other = Local()
    with other:
        with pytest.raises(Refused) as caught:
            other.request("textDocument/hover", {})
        assert caught.value.code == -32002
        other.notify("textDocument/didOpen", {})
        other.initialize()
        other.request("shutdown")
        with pytest.raises(Refused) as caught:
            other.request("workspace/diagnostic", {"previousResultIds": []})
        assert caught.value.code == -32600
        assert other.hang_up() == 0


def test_a_client_that_just_leaves() -> None:
    """No shutdown: the exit code says so, before the introduction and after it."""
    with Local() as peer:
        assert peer.hang_up() == 1
    with Local() as peer:
        peer.initialize()
        peer.open(URI, BAD)
        assert peer.hang_up() == 1


def test_a_cancelled_request_is_answered_as_such(puller: Local) -> None:
    """A request that waits for a pause in the typing can be cancelled."""
    puller.open(URI, BAD)
    pull(puller)
    puller.change(URI, "yy", *WORD)
    number = puller.start("textDocument/diagnostic", {"textDocument": {"uri": URI}})
    puller.notify("$/cancelRequest", {"id": number})
    with pytest.raises(Refused) as caught:
        puller.answer(number)
    assert caught.value.code == -32800
    assert "`yy`" in pull(puller)["items"][0]["message"]


def test_the_first_answer_names_what_there_is() -> None:
    """The handshake's list of abilities is the one that the handlers make, so that neither can be forgotten."""
    params = {"capabilities": {**FULL, "notebookDocument": None}}
    converter = default_converter()
    client = converter.structure(params["capabilities"], types.ClientCapabilities)
    known = {request.method for request in STANDARD}
    methods = {*NOTIFICATIONS, *known}
    legend = {types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: types.SemanticTokensLegend([], [])}
    built = ServerCapabilitiesBuilder(client, methods, legend, [], types.TextDocumentSyncKind.Incremental).build()
    from_handlers = {name for name, value in converter.unstructure(built).items() if value is not None}
    from_handlers.add("experimental")  # of the methods that the protocol doesn't know
    assert set(handshake.capabilities(read_client(params))) == from_handlers
    assert set(handshake.capabilities(Client())) < from_handlers
    ours = {request.method.removeprefix("agentloom/") for request in REQUESTS if request.method not in known}
    assert {*ours, "runEvent"} == set(handshake.OF_OUR_OWN)


def test_a_file_that_was_looked_for_appears(tmp_path: Path, peer: Local) -> None:
    """A missing recording is reported until it is there."""
    uri, recording = (tmp_path / "w.loom.yaml").as_uri(), tmp_path / "answers.json"
    peer.open(uri, "config:\n  provider: mock\n  responses_file: answers.json\n" + GOOD)
    assert codes(peer.published(uri)) == ["AL701"]
    recording.write_text("[]")
    peer.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": recording.as_uri(), "type": 1}]})
    assert peer.published(uri) == []


# --- positions, and the other ways to the same verdict


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_fixes_behind_emoji_keep_the_file_whole(encoding: str) -> None:
    """Editor case: an autofix corrupts the file when a block text holds multi-byte text."""
    text = (
        H
        + "  - id: a\n    type: llm_call\n    prompt: |\n      ✓ 😀 {state.x}\n"
        + ("    depends_on: []\n  - {id: b, type: llm_call, prompt: '😀✓', depends_on: [a, a], output: é}\n")
    )
    with Local() as peer:
        peer.initialize({**FULL, "general": {"positionEncodings": [encoding]}})
        peer.open(URI, text)
        (report,) = [report for report in peer.published(URI, 1) if report["code"] == "AL205"]
        document = Document(URI, "yaml", 1, text)
        edits = report["data"]["fixes"][0]["edits"]
        changes = [
            Change(edit["newText"], *(Position(**edit["range"][end]) for end in ("start", "end"))) for edit in edits
        ]
        document.apply(reversed(changes), 2, Encoding(encoding))
        assert document.source.text == text.replace("[a, a]", "[a]")
        assert peer.leave() == 0


@pytest.mark.parametrize("text", ["", "# hi\n", "---\n", "\ufeff", "\n\n\n", "- a\n", "x"])
def test_ranges_lie_inside_the_document(peer: Local, text: str) -> None:
    """Editor case: an empty or comment-only file gets a diagnostic past its end. The range is inside, alike for all of them."""
    peer.open(URI, text)
    (report,) = peer.published(URI, 1)
    places = Places(LineTable(text), Encoding.UTF16)
    for end in ("start", "end"):
        place = Position(**report["range"][end])
        assert places.position(places.offset(*place)) == place
    assert report["code"] == "AL008"


def test_the_command_line_says_the_same(tmp_path: Path, peer: Local) -> None:
    """Editor case: server and CLI find different config. The same file under the same settings, word for word."""
    inner = tmp_path / "a b" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "agentloom.toml").write_text('ignore = ["AL205"]\n')
    (tmp_path / "a b" / "pyproject.toml").write_text('[tool.agentloom.severity]\nAL205 = "information"\n')
    (inner / "pyproject.toml").write_text("[project]\nname = 'nothing of ours'\n")
    path = inner / "w.yaml"
    path.write_text(DUBIOUS + "  - {id: c, type: llm_call, prompt: '😀', depends_on: [zz]}\n")
    peer.open(path.as_uri(), path.read_text())
    ours = [
        (r["code"], r["severity"], r["message"], r["codeDescription"]["href"], *Position(**r["range"]["start"]))
        for r in peer.published(path.as_uri())
    ]
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "validate", "--format", "json", "--severity", "hint", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    words = {"error": 1, "warning": 2, "information": 3, "hint": 4}
    theirs = [
        (d["code"], words[d["severity"]], d["message"], d["url"], d["line"] - 1, d["column"] - 1)
        for d in json.loads(done.stdout)["diagnostics"]
    ]
    emoji = next(at for at, told in enumerate(theirs) if told[0] == "AL202")
    theirs[emoji] = (*theirs[emoji][:5], theirs[emoji][5] + 1)  # the command line counts code points
    assert ours == theirs
    assert [(code, severity) for code, severity, *_ in ours] == [("AL205", 3), ("AL202", 1)]
