"""`record --stale`: which replies of a recording fit no longer, and only those anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, Done, served_by
from tests.wire.server import WireServer

FLOW = """\
name: tea
config: {provider: openai, model: gpt-4o-mini}
state: {topic: tea}
steps:
  - {id: draft, type: llm_call, prompt: "Write about {state.topic}.", output: draft}
  - {id: title, type: llm_call, prompt: "A title on {state.topic}.", output: title}
  - {id: note, type: tool, tool_name: file_read, tool_args: {path: "note.txt"}, output: note}
  - {id: check, type: llm_call, depends_on: [draft, note], prompt: "Good? {state.draft} {state.note}", output: verdict}
"""


class Project:
    """A workflow and its recording."""

    def __init__(self, folder: Path, call: Call, server: WireServer) -> None:
        self.folder, self._call, self.server = folder, call, server
        self.env = served_by(server)
        (folder / "note.txt").write_text("x")
        self.write(FLOW)
        assert self.call("run", "--record", str(self.recording), "--record-tools").code == 0
        self.before = self.held()

    @property
    def recording(self) -> Path:
        return self.folder / "r.json"

    def write(self, text: str) -> None:
        (self.folder / "flow.loom.yaml").write_text(text, encoding="utf-8")

    def call(self, command: str, *arguments: str) -> Done:
        return self._call(command, str(self.folder / "flow.loom.yaml"), *arguments, **self.env)

    def stale(self, *arguments: str) -> Done:
        return self.call("record", "--stale", "-r", str(self.recording), *arguments)

    def statuses(self, *arguments: str) -> dict[str, tuple[str, str | None]]:
        done = self.stale("--json", *arguments)
        return {step["step"]: (step["status"], step["why"]) for step in json.loads(done.out)["steps"]}

    def held(self) -> dict[str, Any]:
        return dict(json.loads(self.recording.read_bytes()))

    def asked(self) -> list[str]:
        return [request.json["messages"][-1]["content"] for request in self.server.requests]


@pytest.fixture
def project(tmp_path: Path, call: Call, server: WireServer) -> Project:
    return Project(tmp_path, call, server)


def test_a_recording_that_fits(project: Project) -> None:
    """Nothing is stale, nothing is asked, and not one byte changes."""
    data, count = project.recording.read_bytes(), len(project.asked())
    listed = project.stale("--list")
    assert (listed.code, listed.out) == (0, f"{project.recording}: 4 steps, every one answered\n")
    assert project.stale().code == 0
    assert project.recording.read_bytes() == data
    assert len(project.asked()) == count


def test_only_what_is_stale_is_asked_again(project: Project) -> None:
    """A prompt changes: its step, and what reads a new reply, are recorded anew; the others keep every byte."""
    project.write(FLOW.replace("Write about", "Sing of"))
    assert project.statuses("--list") == {
        "draft": ("stale", "its prompt has changed"),
        "title": ("fresh", None),
        "check": ("fresh", None),
        "note": ("fresh", None),
    }
    listed = project.stale("--list")
    assert listed.code == 1
    assert "stale       draft  its prompt has changed" in listed.out
    count = len(project.asked())
    project.server.reply = "another reply"
    done = project.stale()
    assert done.code == 0, done.err
    assert project.asked()[count:] == ["Sing of tea.", "Good? another reply x"]
    assert "2 steps recorded anew, 2 kept" in done.out
    after = project.held()
    assert after["title"] == project.before["title"]
    assert after["_tools"] == project.before["_tools"]
    assert after["draft"][0]["content"] == "another reply"
    assert project.stale("--list").code == 0
    assert project.call("replay", "-r", str(project.recording)).code == 0


def test_a_step_that_is_not_recorded_yet_and_one_that_is_gone(project: Project) -> None:
    """Missing is recorded; what nobody asks for is told, and stays."""
    project.write(FLOW.replace("id: title", "id: heading"))
    found = project.statuses("--list")
    assert found["heading"] == ("missing", "it holds no reply to it")
    assert found["title"][0] == "unused"
    assert project.statuses()["heading"][0] == "recorded"
    assert sorted(project.held()) == ["_tools", "_version", "check", "draft", "heading", "title"]


def test_a_tool_that_is_called_otherwise(project: Project) -> None:
    """Its step is told, and the tool is run when it is recorded anew."""
    (project.folder / "other.txt").write_text("y")
    project.write(FLOW.replace("note.txt", "other.txt"))
    assert project.statuses("--list")["note"] == ("stale", "the tool `file_read` is called with other arguments")
    assert {name for name, (status, _) in project.statuses().items() if status == "recorded"} == {"note", "check"}
    assert project.held()["_tools"]["note"][0]["arguments"] == {"path": "other.txt"}
    assert project.stale("--list").code == 0


def test_bytes_that_stay(project: Project) -> None:
    """Entries in another layout keep it, unknown fields included."""
    text = project.recording.read_text()
    odd = json.dumps({**project.before["title"][0], "x-note": [1, 2]}, ensure_ascii=False)
    data = {**project.before, "title": "HERE"}
    project.recording.write_text(json.dumps(data, indent=4, ensure_ascii=False).replace('"HERE"', odd))
    assert odd in project.recording.read_text() != text
    project.write(FLOW.replace("Write about", "Sing of"))
    assert project.stale().code == 0
    assert odd in project.recording.read_text()


def test_a_recording_written_by_hand_answers_whatever_is_asked(project: Project) -> None:
    """Nothing says what it was recorded for: told as unverified, and not asked anew."""
    project.recording.write_text(
        json.dumps({"_version": 2, **{name: {"content": name} for name in ("draft", "title", "check")}})
    )
    found = project.statuses("--list")
    assert {found[name][0] for name in ("draft", "title", "check")} == {"unverified"}
    assert project.stale("--list").code == 0


def test_wrong_usage(project: Project) -> None:
    """Exit 2 with the cure."""
    for arguments, says in (
        (("-r", "r.json"), "`record` needs `--stale`; a whole run is recorded with `agentloom run FILE --record"),
        (("--stale", "--list", "-p", "openai"), "`--list` asks no provider"),
        (("--stale", "-p", "mock", "-r", str(project.recording)), "name a real one with `--provider`"),
    ):
        done = project.call("record", *arguments)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
    missing = project.call("record", "--stale", "-r", str(project.folder / "no.json"))
    assert missing.code == 1
    assert "does not exist" in missing.err
