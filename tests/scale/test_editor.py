"""Runs from the editor that live in a database: the server over real pipes, its commands, lenses and the list of runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.place import place_of
from tests.cli.conftest import environment
from tests.durable.crew import Workers
from tests.durable.workshop import build
from tests.lsp.editor import Editor

GATE = """\
name: flow
config: {provider: mock, max_retries: 0}
steps:
  - {id: ask, type: approval_gate, output: verdict}
  - {id: after, type: llm_call, depends_on: [ask], prompt: "{state.verdict}", output: said}
"""


def until(found: Callable[[], Any]) -> Any:
    """Return what is found as soon as it is something."""
    pause = threading.Event()
    while not (value := found()):
        pause.wait(0.1)
    return value


def decide(editor: Editor, place: str) -> str:
    """Run the gated workflow, approve it by its lens, look at it, and return its id."""
    uri = editor.show("flow.loom.yaml", GATE)
    run_id = editor.run(uri=uri)
    assert editor.ended(run_id)["status"] == "paused", editor.messages()
    titles = until(lambda: [title for title in editor.titles(uri) if "Approve" in title])
    assert titles == [f"✓ Approve {run_id[:6]} at ask"]
    editor.seen.clear()
    started = editor.press(uri, "✓ Approve")
    assert (started["runId"], started["folder"]) == (run_id, place)
    assert editor.ended(run_id)["status"] == "success", editor.messages()
    until(lambda: not [title for title in editor.titles(uri) if "Approve" in title])
    listed = editor.request("agentloom/runs", {"uri": uri})
    assert listed["problems"] == []
    (row,) = listed["runs"]
    assert [row[key] for key in ("runId", "status", "folder", "uri", "stepsDone", "steps", "resumable")] == [
        run_id, "success", place, uri, 2, 2, False,
    ]  # fmt: skip
    details = editor.request("agentloom/run", {"runId": run_id, "folder": row["folder"]})
    assert (details["state"]["verdict"], details["checkpoint"]) == ("approved", None)
    assert details["results"]["after"]["status"] == "success"
    assert not (editor.folder / ".agentloom").exists(), "nothing is kept in files"
    return run_id


def test_a_file_of_the_workspace(tmp_path: Path) -> None:
    """The setting names it, relative to the first folder; the command line knows the same runs."""
    with Editor(tmp_path, options={"run": {"database": "sqlite:///runs.db"}}) as editor:
        run_id = decide(editor, f"sqlite:///{tmp_path / 'runs.db'}")
        assert editor.leave() == 0
    listed = subprocess.run(
        [sys.executable, "-m", "agentloom", "runs", "--brief", "--on", "sqlite:///runs.db"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [run["run_id"] for run in json.loads(listed.stdout)] == [run_id]


@pytest.fixture
def workers(tmp_path: Path, new_postgres: Callable[[], str]) -> Iterator[Workers]:
    """Workers whose steps take long, on a new database of the server."""
    found = Workers(new_postgres().replace("postgres@", "postgres:hush-hush@"), tmp_path, 600)
    try:
        yield found
    finally:
        found.end()


def test_a_server_that_the_environment_names(tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """AGENTLOOM_ON of the language server: gates, cancelling, runs that others asked for. Its password is told nowhere."""
    monkeypatch.setenv("AGENTLOOM_ON", workers.url)
    workers.ready(workers.start())
    place = workers.url.replace(":hush-hush", "")
    with Editor(tmp_path) as editor:
        decide(editor, place)
        many = build(tmp_path, layers=1, wide=1)
        uri = editor.show(many.name, many.read_text())
        run_id = editor.run(uri=uri)
        editor.begins(run_id, "s0_0")
        for child in editor.children():
            with suppress(FileNotFoundError):  # one that has ended, or a system without `/proc`
                assert "hush" not in Path(f"/proc/{child}/cmdline").read_text()
        assert editor.command("cancel", runId=run_id) == {"cancelled": [run_id]}
        assert editor.ended(run_id)["status"] == "cancelled"
        other = subprocess.run(
            [sys.executable, "-m", "agentloom", "run", many.name, "--detach", "--run-id", "other"],
            cwd=tmp_path, env=workers.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert other.returncode == 0, other.stderr
        with closing(Archive(place_of(workers.url))) as archive:
            until(lambda: archive.status("other~1").status == "PENDING")
            assert editor.command("cancel", runId="other") == {"cancelled": ["other"]}
            assert archive.find("other").data.status == "cancelled"
        found = until(lambda: [title for title in editor.titles(uri) if "Resume other" in title])
        assert found == ["⏵ Resume other (cancelled)"]
        assert "hush" not in json.dumps(editor.seen)
        assert editor.leave() == 0
    assert os.environ["AGENTLOOM_ON"] == workers.url


def test_a_database_that_cannot_be_used(tmp_path: Path) -> None:
    """The list says why, and so does a run that was to begin there; without the password."""
    wrong = "postgresql://ann:hush-hush@127.0.0.1:1/loom"
    with Editor(tmp_path, options={"run": {"database": wrong}}) as editor:
        uri = editor.show("flow.loom.yaml", GATE)
        (problem,) = editor.request("agentloom/runs", {})["problems"]
        assert "`postgresql://ann@127.0.0.1:1/loom` can't be used" in problem
        run_id = editor.run(uri=uri)
        assert editor.ended(run_id)["status"] == "refused"
        assert "can't be used" in editor.messages()[-1]
        assert "hush" not in json.dumps(editor.seen)
        assert editor.leave() == 0
