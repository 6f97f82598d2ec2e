"""The workspace around the documents: folders, settings, files that come and go, diagnostics of everything, progress."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.peer import FULL, PULLING, ROOT, Local, Refused

H = "name: w\nsteps:\n"
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
GOOD = H + A
BAD = GOOD + "    depends_on: [zz]\n"
DUBIOUS = GOOD + A.replace("id: a", "id: b") + "    depends_on: [a, a]\n"
CHILD = H + "  - id: s\n    type: subworkflow\n    workflow_path: {}\n"
REGISTER = "client/registerCapability"


def with_(base: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return capabilities with more in some of their groups."""
    return {**base, **{name: {**base.get(name, {}), **value} for name, value in more.items()}}


def codes(reports: list[dict[str, Any]]) -> list[Any]:
    return [report.get("code") for report in reports]


def put(path: Path, text: str) -> None:
    """Write a file in one go, so that nobody sees half of it."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def places(reports: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return start, end and message of each."""
    return [
        (*(tuple(report["range"][end].values()) for end in ("start", "end")), report["message"]) for report in reports
    ]


def changed(peer: Local, *paths: Path, type_: int = 2) -> None:
    changes = [{"uri": path.as_uri(), "type": type_} for path in paths]
    peer.notify("workspace/didChangeWatchedFiles", {"changes": changes})


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Local]:
    """A client that gets diagnostics pushed, and has the test's folder open."""
    with Local() as peer:
        peer.initialize(folder=tmp_path)
        yield peer
        assert peer.leave() == 0


# --- folders and settings


def test_two_folders_two_settings_one_verdict(tmp_path: Path) -> None:
    """Editor cases: the second root's settings used for the first; server and command line find different ones.

    Two folders with different settings, and a folder in one of them with its own: for every file the server says what
    `agentloom validate` says, word for word.
    """
    for name, settings in {
        "one": 'ignore = ["AL205"]\n',
        "one/deep": 'severity = {AL205 = "error"}\n',
        "two": 'severity = {AL205 = "information"}\n',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "agentloom.toml").write_text(settings)
        (tmp_path / name / "w.loom.yaml").write_text(DUBIOUS)
        (tmp_path / name / "v.loom.yaml").write_text(BAD)
    files = sorted(tmp_path.rglob("*.loom.yaml"))
    with Local() as peer:
        peer.initialize(workspaceFolders=[{"uri": (tmp_path / name).as_uri(), "name": name} for name in ("one", "two")])
        ours = []
        for path in files:
            peer.open(path.as_uri(), path.read_text())
            for report in peer.published(path.as_uri(), 1):
                start = report["range"]["start"]
                ours.append(
                    (
                        str(path),
                        report["code"],
                        report["severity"],
                        report["message"],
                        start["line"],
                        start["character"],
                    )
                )
        assert peer.leave() == 0
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "validate", "--format", "json", "--severity", "hint", *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    words = {"error": 1, "warning": 2, "information": 3, "hint": 4}
    theirs = [
        (d["path"], d["code"], words[d["severity"]], d["message"], d["line"] - 1, d["column"] - 1)
        for d in json.loads(done.stdout)["diagnostics"]
    ]
    assert sorted(ours) == sorted(theirs)
    assert [severity for _, code, severity, *_ in sorted(ours) if code == "AL205"] == [1, 3]


def test_settings_problems_stand_in_the_settings_file(tmp_path: Path, peer: Local) -> None:
    """A wrong code, an unknown key, broken TOML: told in the file itself, at the word; taken back when it is repaired."""
    path = tmp_path / "agentloom.toml"
    peer.open((tmp_path / "w.loom.yaml").as_uri(), DUBIOUS)
    peer.published((tmp_path / "w.loom.yaml").as_uri())
    for text, expected in (
        ('ignore = ["AL205", "foo"]\n', [((0, 20), (0, 23), "`foo` in `ignore`")]),
        ("# é 😀\nseveritee = 3\n", [((1, 0), (1, 9), "did you mean `severity`?")]),
        ("ignore = [\n", [((0, 9), (0, 10), "not valid TOML")]),
        ("", []),
        ("tools = 3\n", [((0, 0), (0, 5), "must be a list")]),
    ):
        put(path, text)
        changed(peer, path)
        found = places(peer.published(path.as_uri()))
        assert [place[:2] for place in found] == [place[:2] for place in expected]
        assert all(words in said for (*_, said), (*_, words) in zip(found, expected, strict=True))
        assert not [said for *_, said in found if str(path) in said]
    path.unlink()
    changed(peer, path, type_=3)
    assert peer.published(path.as_uri()) == []


def test_settings_are_looked_at_before_anything_is_open(tmp_path: Path) -> None:
    """The settings of the folder itself, and those of a folder that is added later."""
    other = tmp_path / "other"
    other.mkdir()
    for folder in (tmp_path, other):
        (folder / "pyproject.toml").write_text('[tool.agentloom]\nignore = ["AL999"]\n')
    with Local() as peer:
        peer.initialize(workspaceFolders=[])
        event = {"added": [{"uri": folder.as_uri(), "name": "x"} for folder in (tmp_path, other)], "removed": []}
        peer.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        for folder in (tmp_path, other):
            (report,) = peer.published((folder / "pyproject.toml").as_uri())
            assert report["range"]["start"] == {"line": 1, "character": 11}
        assert peer.leave() == 0


def test_a_settings_file_that_is_open_keeps_its_diagnostics(tmp_path: Path, peer: Local) -> None:
    """Some editors send `agentloom.toml` too: opening and closing it takes nothing back."""
    path = tmp_path / "agentloom.toml"
    path.write_text('ignore = ["foo"]\n')
    changed(peer, path, type_=1)
    (report,) = peer.published(path.as_uri())
    peer.open(path.as_uri(), path.read_text(), language="toml")
    assert peer.published(path.as_uri(), 1) == [report]
    peer.close_document(path.as_uri())
    assert peer.published(path.as_uri()) == [report]


def test_settings_above_the_folder_are_watched(tmp_path: Path) -> None:
    """The folder is part of a project: its settings, and what a file asks for outside, are watched where they are."""
    folder = tmp_path / "flows"
    folder.mkdir()
    (tmp_path / "agentloom.toml").write_text("ignore = ['AL205']\n")
    capabilities = with_(
        FULL, workspace={"didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True}}
    )
    with Local() as peer:
        peer.initialize(capabilities, folder=folder)
        uri = (folder / "w.loom.yaml").as_uri()
        peer.open(uri, CHILD.format("../shared/child.loom.yaml") + A + "config: {responses_file: answers.txt}\n")
        patterns: dict[tuple[str, str], None] = {}

        def registered(message: dict[str, Any]) -> bool:
            if message.get("method") == REGISTER:
                for registration in message["params"]["registrations"]:
                    for watcher in (registration["registerOptions"] or {}).get("watchers", ()):
                        if isinstance(watcher["globPattern"], dict):
                            patterns[watcher["globPattern"]["baseUri"], watcher["globPattern"]["pattern"]] = None
            return len(patterns) >= 3

        for message in peer.seen:
            registered(message)
        if len(patterns) < 3:
            peer.until(registered)
        assert set(patterns) == {
            (tmp_path.as_uri(), "agentloom.toml"),
            ((tmp_path / "shared").as_uri(), "child.loom.yaml"),
            (folder.as_uri(), "answers.txt"),
        }
        assert peer.leave() == 0


# --- files that come and go


@pytest.mark.parametrize("how", ["watched", "created and deleted", "renamed", "folder"])
def test_files_that_come_and_go(tmp_path: Path, peer: Local, how: str) -> None:
    """A child appears and disappears, by itself or with its folder, told in any of the ways there are."""
    inner = tmp_path / "parts"
    child, parent = inner / "child.loom.yaml", (tmp_path / "w.loom.yaml").as_uri()
    peer.open(parent, CHILD.format("parts/child.loom.yaml"))
    assert codes(peer.published(parent)) == ["AL701"]
    inner.mkdir()
    child.write_text(GOOD)
    files = [{"uri": child.as_uri()}]
    if how == "created and deleted":
        peer.notify("workspace/didCreateFiles", {"files": files})
    elif how == "renamed":
        peer.notify(
            "workspace/didRenameFiles", {"files": [{"oldUri": f"{child.as_uri()}.old", "newUri": child.as_uri()}]}
        )
    else:
        changed(peer, child if how == "watched" else inner, type_=1)
    assert peer.published(parent) == []
    child.unlink()
    inner.rmdir()
    if how == "created and deleted":
        peer.notify("workspace/didDeleteFiles", {"files": files})
    elif how == "renamed":
        peer.notify(
            "workspace/didRenameFiles", {"files": [{"oldUri": child.as_uri(), "newUri": f"{child.as_uri()}.new"}]}
        )
    else:
        changed(peer, child if how == "watched" else inner, type_=3)
    assert codes(peer.published(parent)) == ["AL701"]


def test_neighbours_that_are_only_open_are_offered(tmp_path: Path, peer: Local) -> None:
    """Did-you-mean among the files beside: one that isn't saved yet counts, and one that appears is offered from then on."""
    parent = (tmp_path / "w.loom.yaml").as_uri()
    peer.open(parent, CHILD.format("chidl.loom.yaml"))
    assert "did you mean" not in peer.published(parent)[0]["message"]
    (tmp_path / "child.loom.yaml").write_text(GOOD)
    changed(peer, tmp_path / "child.loom.yaml", type_=1)
    assert "did you mean `child.loom.yaml`?" in peer.published(parent)[0]["message"]


def test_odd_events_are_survived(tmp_path: Path, peer: Local) -> None:
    """Events without files, with nonsense for files, and lists that are none."""
    for params in (
        {"changes": [{}, 3, {"uri": None}]},
        {"changes": None},
        None,
        {"changes": [{"uri": "::", "type": 9}]},
    ):
        peer.notify("workspace/didChangeWatchedFiles", params)
    for params in ({"event": {"added": [{}, 3], "removed": None}}, {"event": None}):
        peer.notify("workspace/didChangeWorkspaceFolders", params)
    peer.notify("workspace/didRenameFiles", {"files": [{"oldUri": 3}]})
    peer.notify("window/workDoneProgress/cancel", {"token": "unknown"})
    uri = (tmp_path / "w.loom.yaml").as_uri()
    peer.open(uri, BAD)
    assert codes(peer.published(uri)) == ["AL202"]


# --- configuration


def test_configuration_that_is_sent(tmp_path: Path) -> None:
    """A client that can't be asked sends its settings; what is of the wrong type is said once."""
    with Local() as peer:
        peer.initialize({})
        for _ in range(2):
            peer.notify("workspace/didChangeConfiguration", {"settings": {"agentloom": {"debounce": "soon"}}})
        peer.notify("workspace/didChangeConfiguration", {"settings": None})
        peer.notify("workspace/didChangeConfiguration", None)
        uri = (tmp_path / "w.loom.yaml").as_uri()
        peer.open(uri, BAD)
        assert codes(peer.published(uri)) == ["AL202"]
        said = [m["params"]["message"] for m in peer.seen if m.get("method") == "window/logMessage"]
        assert said == ["agentloom: the setting `agentloom.debounce` must be a number of milliseconds"]
        assert peer.leave() == 0


def test_configuration_that_is_asked_for_again() -> None:
    """A change without its contents: the client is asked."""
    with Local() as peer:
        peer.initialize()
        peer.until(lambda message: message.get("method") == "workspace/configuration")
        peer.notify("workspace/didChangeConfiguration", {"settings": None})
        asked = peer.until(lambda message: message.get("method") == "workspace/configuration")
        assert asked["params"] == {"items": [{"section": "agentloom"}]}
        assert peer.leave() == 0


# --- diagnostics of everything


def many(folder: Path, number: int) -> None:
    for count in range(number):
        (folder / f"w{count:03}.loom.yaml").write_text(BAD if count % 2 else GOOD)


def poll(peer: Local, *known: dict[str, Any], **more: Any) -> int:
    ids = [{"uri": item["uri"], "value": item["resultId"]} for item in known]
    return peer.start("workspace/diagnostic", {"previousResultIds": ids, "partialResultToken": "part", **more})


def parts(peer: Local, number: int) -> list[dict[str, Any]]:
    """Return everything that a question was answered, ahead and at the end."""
    last = peer.answer(number)["items"]
    sent = [
        m["params"]["value"]["items"]
        for m in peer.seen
        if m.get("method") == "$/progress" and m["params"]["token"] == "part"
    ]
    peer.seen.clear()
    return [item for items in (*sent, last) for item in items]


@pytest.fixture
def puller(tmp_path: Path) -> Iterator[Local]:
    """A client that asks for diagnostics, and has the test's folder open."""
    with Local() as peer:
        peer.answers["workspace/diagnostic/refresh"] = None
        peer.initialize(PULLING, folder=tmp_path)
        yield peer
        assert peer.leave() == 0


def test_answers_in_parts(tmp_path: Path, puller: Local) -> None:
    """Many files: reports come while others are still being checked, each once."""
    many(tmp_path, 250)
    items = parts(puller, poll(puller))
    assert len(items) == len({item["uri"] for item in items}) == 250
    assert sum(len(item["items"]) for item in items) == 125


def test_a_question_stands_until_something_changes(tmp_path: Path, puller: Local) -> None:
    """Editors ask again as soon as they are answered. What hasn't changed isn't answered; a change is, with what it changed."""
    many(tmp_path, 4)
    first = parts(puller, poll(puller))
    number = poll(puller, *first)
    path = tmp_path / "w001.loom.yaml"
    puller.open("untitled:1", "x: y\n")
    puller.request("textDocument/diagnostic", {"textDocument": {"uri": "untitled:1"}})
    assert not [message for message in puller.seen if message.get("id") == number], "answered without a change"
    put(path, GOOD)
    changed(puller, path)
    (item,) = parts(puller, number)
    assert (item["uri"], item["kind"], item["items"]) == (path.as_uri(), "full", [])
    known = [item, *(old for old in first if old["uri"] != item["uri"])]
    number = poll(puller, *known)
    path.unlink()
    changed(puller, path, type_=3)
    (item,) = parts(puller, number)
    assert (item["uri"], item["items"]) == (path.as_uri(), [])
    puller.open(path.as_uri(), BAD)
    assert [item["version"] for item in parts(puller, poll(puller, *known[1:]))] == [1]


def test_a_standing_question_costs_nothing(tmp_path: Path, puller: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing changes, no file is looked at; edits that change no finding wake it, and are no answer."""
    many(tmp_path, 3)
    first = parts(puller, poll(puller))
    walks: list[int] = []
    real: Callable[[Any], Any] = __import__("agentloom_lsp.workspace", fromlist=["Workspace"]).Workspace.candidates
    monkeypatch.setattr("agentloom_lsp.workspace.Workspace.candidates", lambda *rest: walks.append(1) or real(*rest))
    number = poll(puller, *first)
    puller.open("untitled:1", GOOD)
    about = {"textDocument": {"uri": "untitled:1"}}
    puller.request("textDocument/diagnostic", about)
    for _ in range(20):
        puller.change("untitled:1", "# typed\n", 0, 0, 0, 0)
        puller.request("textDocument/diagnostic", about)
    assert len(walks) <= 3
    (item,) = parts(puller, number)
    assert (item["uri"], item["items"]) == ("untitled:1", [])


def test_one_question_stands_at_a_time(tmp_path: Path, puller: Local) -> None:
    """A second one sends the first home, a cancelled one is refused, and none keeps the server from leaving."""
    many(tmp_path, 2)
    first = parts(puller, poll(puller))
    one = poll(puller, *first)
    two = poll(puller, *first)
    assert puller.answer(one) == {"items": []}
    puller.notify("$/cancelRequest", {"id": two})
    with pytest.raises(Refused) as caught:
        puller.answer(two)
    assert caught.value.code == -32800
    poll(puller, *first)


def test_an_empty_workspace_is_answered_once(tmp_path: Path, puller: Local) -> None:
    """Nothing to report: the first question is answered, so that the client knows; the next stands until there is something."""
    assert parts(puller, poll(puller)) == []
    number = poll(puller)
    path = tmp_path / "new.loom.yaml"
    put(path, BAD)
    changed(puller, path, type_=1)
    assert [item["uri"] for item in parts(puller, number)] == [path.as_uri()]


# --- progress, and the command


PROGRESSING = with_(PULLING, window={"workDoneProgress": True})


def told(peer: Local, token: Any) -> list[dict[str, Any]]:
    return [
        m["params"]["value"] for m in peer.seen if m.get("method") == "$/progress" and m["params"]["token"] == token
    ]


def test_progress_of_the_first_scan(tmp_path: Path) -> None:
    """A client that can show progress is asked for a place to, once; a later question shows none."""
    many(tmp_path, 120)
    with Local() as peer:
        peer.answers["window/workDoneProgress/create"] = None
        peer.initialize(PROGRESSING, folder=tmp_path)
        peer.request("workspace/diagnostic", {"previousResultIds": []})
        (token,) = [m["params"]["token"] for m in peer.seen if m.get("method") == "window/workDoneProgress/create"]
        values = told(peer, token)
        if values:  # the place may come when all is done already
            assert (values[0]["kind"], values[0]["cancellable"], values[-1]["kind"]) == ("begin", True, "end")
            shares = [value["percentage"] for value in values if value["kind"] == "report"]
            assert shares == sorted(set(shares))
        peer.request("workspace/diagnostic", {"previousResultIds": []})
        assert len([m for m in peer.seen if m.get("method") == "window/workDoneProgress/create"]) == 1
        assert peer.leave() == 0


def test_no_progress_where_it_is_not_wanted(tmp_path: Path, puller: Local) -> None:
    """A client that shows none isn't asked; its own token is used whatever it can."""
    many(tmp_path, 30)
    puller.request("workspace/diagnostic", {"previousResultIds": [], "workDoneToken": 7})
    assert not [m for m in puller.seen if m.get("method") == "window/workDoneProgress/create"]
    assert [value["kind"] for value in told(puller, 7) if value["kind"] != "report"] == ["begin", "end"]


def test_a_scan_can_be_called_off(tmp_path: Path) -> None:
    """The user presses cancel: the answer has what was found until then, and takes nothing back."""
    many(tmp_path, 300)
    with Local() as peer:
        peer.initialize(PROGRESSING, folder=tmp_path)
        known = [{"uri": (tmp_path / "w299.loom.yaml").as_uri(), "value": "x"}]
        number = peer.start("workspace/diagnostic", {"previousResultIds": known, "workDoneToken": "mine"})
        peer.until(lambda m: m.get("method") == "$/progress" and m["params"]["token"] == "mine")
        peer.notify("window/workDoneProgress/cancel", {"token": "mine"})
        items = peer.answer(number)["items"]
        assert len(items) < 300
        assert not [item for item in items if not item.get("resultId")]
        assert told(peer, "mine")[-1]["kind"] == "end"
        assert peer.leave() == 0


def test_validate_workspace(tmp_path: Path, peer: Local) -> None:
    """The command checks everything, says how much was found, and publishes it; repaired and removed files are taken back."""
    many(tmp_path, 4)
    (tmp_path / "dubious.loom.yaml").write_text(DUBIOUS)
    opened = (tmp_path / "w000.loom.yaml").as_uri()
    peer.open(opened, BAD)
    assert codes(peer.published(opened)) == ["AL202"]
    command = {"command": "agentloom.validateWorkspace", "arguments": []}
    answer = peer.request("workspace/executeCommand", command)
    assert answer == {"files": 5, "error": 3, "warning": 1, "information": 0, "hint": 0, "cancelled": False}
    (shown,) = [m["params"] for m in peer.seen if m.get("method") == "window/showMessage"]
    assert shown == {"type": 1, "message": "5 files checked: 3 errors, 1 warning"}
    one, other = tmp_path / "w001.loom.yaml", tmp_path / "w003.loom.yaml"
    for path in (one, other):
        assert len(peer.publishes(path.as_uri())) == 1
    put(one, GOOD)
    other.unlink()
    changed(peer, one, other)
    assert peer.published(one.as_uri()) == []
    assert peer.published(other.as_uri()) == []
    assert len(peer.publishes(opened)) == 1


@pytest.mark.parametrize("command", ["agentloom.nonsense", ""])
def test_an_unknown_command(peer: Local, command: str) -> None:
    """Refused as what it is."""
    with pytest.raises(Refused) as caught:
        peer.request("workspace/executeCommand", {"command": command})
    assert caught.value.code == -32602
