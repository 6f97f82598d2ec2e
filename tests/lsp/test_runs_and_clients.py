"""Runs and what is around them: clients of every ability, several folders, settings, and a server that leaves in the middle."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import CAPABLE, CAPABLE_PULLING, Editor, LocalEditor, checkpoint
from tests.lsp.peer import FULL
from tests.lsp.test_running import GATE, MOCK, SLOW, TWO, tool

KEYS = "name: keyed\nsteps:\n  - {id: a, type: llm_call, prompt: hi, model: gpt-4o-mini}\n"
PIPED = MOCK + "steps:\n  - {id: it, type: tool, tool_name: read_pipe}\n"
READ_PIPE = """
@tool("read_pipe", "Wait until somebody writes.")
def read_pipe() -> str:
    with open("go") as pipe:
        return pipe.read()
"""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, and no folder of the tester's own."""
    monkeypatch.delenv("AGENTLOOM_CHECKPOINT_DIR", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def gone(number: int) -> bool:
    """Wait until a process that isn't ours has ended; tell whether it has."""
    try:
        descriptor = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 30)[0])
    finally:
        os.close(descriptor)


def slow_run(editor: Editor) -> tuple[str, int]:
    """Begin a run that takes long; return its id and the number of its process."""
    run_id = editor.run(uri=editor.show("slow.loom.yaml", SLOW))
    editor.begins(run_id, "long")
    (number,) = editor.children()
    return run_id, number


@pytest.mark.parametrize("way", ["shutdown", "hang up", "terminate", "orphan"])
def test_a_server_that_leaves_ends_its_runs(tmp_path: Path, way: str) -> None:
    """In order, because the editor hung up or was killed, or because somebody ends it: every run leaves a checkpoint, no process stays."""
    parent = subprocess.Popen(["sleep", "600"]) if way == "orphan" else None
    with Editor(tmp_path, parent=parent.pid if parent is not None else None) as editor:
        run_id, number = slow_run(editor)
        if way == "shutdown":
            assert editor.leave() == 0
        elif way == "hang up":
            assert editor.process.stdin is not None
            editor.process.stdin.close()
            assert editor.process.wait(30) == 1
        elif parent is not None:
            parent.kill()
            parent.wait()
            assert editor.process.wait(30) == 1
        else:
            editor.process.terminate()
            assert editor.process.wait(30) == 128 + signal.SIGTERM
        assert gone(number)
        assert checkpoint(tmp_path, run_id)["status"] == "cancelled"


def test_a_server_that_leaves_ends_what_does_not_want_to(tmp_path: Path) -> None:
    """A tool that blocks everything can't write a checkpoint; its process is ended all the same, and its journal stays."""
    with Editor(tmp_path) as editor:
        run_id = editor.run(uri=editor.show("hold.loom.yaml", tool("hold")))
        editor.begins(run_id, "it")
        (number,) = editor.children()
        assert editor.leave() == 0
        assert gone(number)
        assert (tmp_path / ".agentloom" / "checkpoints" / f"{run_id}.journal").exists()


def test_a_run_may_outlast_the_server(tmp_path: Path) -> None:
    """With `run.onShutdown: detach` it goes on to its end, though nobody listens any more."""
    os.mkfifo(tmp_path / "go")
    with Editor(tmp_path, options={"run": {"onShutdown": "detach"}}) as editor:
        with (tmp_path / "loom_tools.py").open("a") as file:
            file.write(READ_PIPE)
        text = PIPED + "  - {id: after, type: tool, tool_name: chat, depends_on: [it], output: said}\n"
        run_id = editor.run(uri=editor.show("piped.loom.yaml", text))
        editor.begins(run_id, "it")
        (number,) = editor.children()
        assert editor.leave() == 0
    with (tmp_path / "go").open("w") as pipe:
        pipe.write("on")
    assert gone(number)
    kept = checkpoint(tmp_path, run_id)
    assert kept["status"] == "success"
    assert kept["step_results"]["it"]["output"] == "on"


def test_a_client_without_abilities(tmp_path: Path) -> None:
    """No progress, no refreshes, no events: a message when it ends, and nothing that wasn't announced."""
    with LocalEditor(tmp_path, {}) as editor:
        uri = editor.show("flow.loom.yaml", TWO)
        editor.run(uri=uri)
        shown = editor.until(lambda m: m.get("method") == "window/showMessage")["params"]
        assert shown["type"] == 3
        assert shown["message"].startswith("`flow` is done: 2 steps, ")
        assert len(editor.hints(uri)) == 2
        editor.command("runWithMock", uri=editor.show("gate.loom.yaml", GATE))
        assert "waits at `ask`" in editor.until(lambda m: m.get("method") == "window/showMessage")["params"]["message"]
        asked = {m["method"] for m in editor.seen if "method" in m and "id" in m}
        assert asked == set()
        assert not any(str(m.get("method")).startswith("agentloom/") for m in editor.seen)
        assert editor.leave() == 0


def test_a_client_that_pulls(tmp_path: Path) -> None:
    """It is told to ask again, and finds where the run failed; an edit of the step takes that away."""
    with LocalEditor(tmp_path, CAPABLE_PULLING, tools=True) as editor:
        uri = editor.show("leave.loom.yaml", tool("leave"))
        about = {"textDocument": {"uri": uri}}
        before = editor.request("textDocument/diagnostic", about)
        assert [report for report in before["items"] if report["severity"] == 1] == []
        editor.seen.clear()
        editor.ended(editor.run(uri=uri))
        assert any(m.get("method") == "workspace/diagnostic/refresh" for m in editor.seen)
        after = editor.request("textDocument/diagnostic", {**about, "previousResultId": before["resultId"]})
        (report,) = [report for report in after["items"] if report["severity"] == 1]
        assert (report["code"], report["range"]["start"]) == ("run-failed", {"line": 3, "character": 9})
        whole = editor.request("workspace/diagnostic", {"previousResultIds": []})
        assert "run-failed" in json.dumps(whole)
        assert editor.command("validateWorkspace")["error"] == 0
        editor.change(uri, "that", 3, 9, 3, 11)
        after = editor.request("textDocument/diagnostic", about)
        assert [report for report in after["items"] if report["severity"] == 1] == []
        assert editor.leave() == 0


def test_a_missing_key_offers_the_mock(tmp_path: Path) -> None:
    """Before anything runs: the variable is named, and one press runs the workflow all the same."""
    with LocalEditor(tmp_path) as editor:
        editor.answers["window/showMessageRequest"] = {"title": "Run with mock"}
        answer = editor.command("run", uri=editor.show("keyed.loom.yaml", KEYS))
        assert (answer["runId"], answer["refused"], answer["variable"]) == (None, "missing-key", "OPENAI_API_KEY")
        begun = editor.until(lambda m: m.get("method") == "agentloom/runEvent")["params"]
        assert editor.ended(begun["runId"])["status"] == "success"
        (asked,) = [m["params"] for m in editor.seen if m.get("method") == "window/showMessageRequest"]
        assert "set OPENAI_API_KEY to use `openai`" in asked["message"]
        assert asked["actions"] == [{"title": "Run with mock"}]
        assert editor.leave() == 0


@pytest.mark.parametrize("answer", [None, {}, "nonsense", {"title": "Something else"}])
def test_a_missing_key_and_no_wish(tmp_path: Path, answer: Any) -> None:
    """Whatever the client answers, nothing runs that wasn't asked for."""
    with LocalEditor(tmp_path) as editor:
        editor.answers["window/showMessageRequest"] = answer
        assert editor.command("run", uri=editor.show("keyed.loom.yaml", KEYS))["runId"] is None
        assert editor.request("agentloom/runs", {})["runs"] == []
        assert editor.children() == []
        assert editor.leave() == 0


def test_a_missing_key_without_offers(tmp_path: Path) -> None:
    """A client that can't let its user choose shows the message."""
    with LocalEditor(tmp_path, FULL) as editor:
        editor.command("run", uri=editor.show("keyed.loom.yaml", KEYS))
        (said,) = editor.messages()
        assert said.endswith("set OPENAI_API_KEY to use `openai`; or run it with the mock")
        assert editor.leave() == 0


def test_several_folders(tmp_path: Path) -> None:
    """Each run works in the folder around its file, and is kept there; the list has all, also one that a terminal kept beside its file."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two, one / "below"):
        folder.mkdir()
    with LocalEditor(one) as editor:
        event = {"added": [{"uri": two.as_uri(), "name": "two"}], "removed": []}
        editor.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        uris = [editor.show("below/a.loom.yaml", TWO), (two / "b.loom.yaml").as_uri()]
        editor.open(uris[1], TWO)
        runs = [editor.run(uri=uri) for uri in uris]
        for run_id, folder in zip(runs, (one, two), strict=True):
            editor.ended(run_id)
            assert checkpoint(folder, run_id)["status"] == "success"
        kept = one / ".agentloom" / "checkpoints" / f"{runs[0]}.json"
        beside = one / "below" / ".agentloom" / "checkpoints" / "terminal.json"
        beside.parent.mkdir(parents=True)
        beside.write_text(
            kept.read_text().replace(runs[0], "terminal").replace('"status":"success"', '"status":"failed"')
        )
        found = {run["runId"]: run["uri"] for run in editor.request("agentloom/runs", {})["runs"]}
        assert found == {runs[0]: uris[0], runs[1]: uris[1], "terminal": uris[0]}
        assert "⏵ Resume termin (failed)" in editor.titles(uris[0])
        (beside.parent / "torn.json").write_text("{")
        (problem,) = editor.request("agentloom/runs", {})["problems"]
        assert "torn.json" in problem
        assert editor.leave() == 0


def test_the_folder_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`AGENTLOOM_CHECKPOINT_DIR` holds for runs from the editor, too."""
    store = tmp_path / "kept"
    monkeypatch.setenv("AGENTLOOM_CHECKPOINT_DIR", str(store))
    with LocalEditor(tmp_path) as editor:
        uri = editor.show("gate.loom.yaml", GATE)
        run_id = editor.run(uri=uri)
        editor.ended(run_id)
        assert (store / f"{run_id}.json").exists()
        editor.seen.clear()
        editor.press(uri, "✓ Approve")
        assert editor.ended(run_id)["status"] == "success"
        assert editor.leave() == 0


def test_switches(tmp_path: Path) -> None:
    """Lenses and hints of runs can be switched off, each kind by itself, and the client asks again."""
    with LocalEditor(tmp_path, options={"hints": {"run": False}, "lenses": {"steps": False}}) as editor:
        uri = editor.show("flow.loom.yaml", TWO)
        assert [lens["title"] for lens in editor.lenses(uri)] == ["▶ Run", "▶ Run with mock"]
        editor.ended(editor.run(uri=uri))
        assert editor.hints(uri) == []
        editor.seen.clear()
        settings = {"agentloom": {"lenses": {"workflow": False, "steps": False}}}
        editor.notify("workspace/didChangeConfiguration", {"settings": settings})
        editor.until(lambda m: m.get("method") == "workspace/codeLens/refresh")
        assert editor.lenses(uri) == []
        editor.notify(
            "workspace/didChangeConfiguration",
            {"settings": {"agentloom": {"lenses": {"workflow": False, "steps": True}, "hints": {"run": True}}}},
        )
        editor.until(lambda m: m.get("method") == "workspace/codeLens/refresh")
        assert [lens["title"] for lens in editor.lenses(uri)] == ["▶ Run up to here"] * 2
        assert len(editor.hints(uri)) == 2
        assert editor.leave() == 0


def test_a_run_of_the_terminal_appears(tmp_path: Path) -> None:
    """A checkpoint that somebody else wrote is offered as soon as the client tells of it."""
    with LocalEditor(tmp_path) as editor:
        uri = editor.show("gate.loom.yaml", GATE)
        run_id = editor.run(uri=uri)
        editor.ended(run_id)
        kept = tmp_path / ".agentloom" / "checkpoints" / f"{run_id}.json"
        other = kept.with_name("other.json")
        other.write_text(kept.read_text().replace(run_id, "other"))
        editor.seen.clear()
        editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": other.as_uri(), "type": 1}]})
        editor.until(lambda m: m.get("method") == "workspace/codeLens/refresh")
        assert "✓ Approve other at ask" in editor.titles(uri)
        assert editor.leave() == 0


def test_a_replay(tmp_path: Path) -> None:
    """The lens is there when a recording is, and answers from it."""
    (tmp_path / "recordings").mkdir()
    replies = {name: {"content": f"recorded {name}", "cost_usd": 0.25} for name in ("one", "two")}
    (tmp_path / "recordings" / "flow.json").write_text(json.dumps({"_version": 2, **replies}))
    with LocalEditor(tmp_path) as editor:
        assert "⟲ Replay" not in editor.titles(editor.show("other.loom.yaml", TWO))
        uri = editor.show("flow.loom.yaml", TWO.replace("mock", "openai"))
        run_id = editor.press(uri, "⟲ Replay")["runId"]
        ended = editor.ended(run_id)
        assert (ended["status"], ended["total_cost_usd"]) == ("success", 0.5)
        assert editor.results(run_id)["two"]["output"] == "recorded two"
        assert "step 2 of 2: two · $0.2500" in [value.get("message") for value in editor.progress()]
        assert editor.hints(uri)[1].endswith("· $0.2500")
        assert editor.leave() == 0


def test_a_file_that_names_no_run(tmp_path: Path) -> None:
    """Lenses are for workflows alone."""
    with LocalEditor(tmp_path, CAPABLE) as editor:
        agent = editor.show("a.agent.yaml", "name: a\nsystem_prompt: hi\n")
        assert editor.request("textDocument/codeLens", {"textDocument": {"uri": agent}}) == []
        other = editor.show("compose.yaml", "services: {}\n")
        assert editor.request("textDocument/codeLens", {"textDocument": {"uri": other}}) is None
        assert editor.leave() == 0
