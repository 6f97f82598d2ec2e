"""`agentloom run --until` and `--run-id`: a part of a workflow, under a name of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call

FLOW = """\
name: parts
config: {provider: mock, model: m}
steps:
  - {id: last, type: llm_call, depends_on: [left, route], prompt: hi}
  - {id: left, type: llm_call, depends_on: [first], prompt: hi, output: left}
  - {id: first, type: llm_call, prompt: hi}
  - {id: beside, type: llm_call, prompt: hi}
  - id: route
    type: router
    depends_on: [left]
    conditions:
      - {expression: "state.left != ''", target: last}
    default: other
  - {id: other, type: llm_call, depends_on: [route], prompt: hi}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a workflow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTLOOM_CHECKPOINT_DIR", raising=False)
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    return tmp_path


def test_a_step_and_what_it_waits_for(here: Path, call: Call) -> None:
    """Nothing beside it or behind it runs, nor is it told of; a router that leads out of what runs is no fault."""
    done = call("run", "flow.yaml", "--until", "route", "--events", "events.jsonl", "--json")
    assert (done.code, json.loads(done.out)["status"]) == (0, "success")
    events = [json.loads(line) for line in (here / "events.jsonl").read_text().splitlines()]
    assert (events[0]["steps"], events[0]["layers"]) == (3, 3)
    assert [event["step"] for event in events if event["event"] == "step_finished"] == ["first", "left", "route"]
    assert set(json.loads(done.out)["step_results"]) == {"first", "left", "route"}


@pytest.mark.parametrize(("step", "words"), [("lefd", "did you mean `left`?"), ("zzz", "step `zzz` is not defined")])
def test_a_step_that_is_not_there(here: Path, call: Call, step: str, words: str) -> None:
    """Wrong usage, with the name that was meant."""
    done = call("run", "flow.yaml", "--until", step)
    assert done.code == 2
    assert words in done.err


def test_a_resume_goes_on_to_the_end(here: Path, call: Call) -> None:
    """What ran keeps its results; the rest of the workflow follows."""
    assert call("run", "flow.yaml", "--until", "left", "--checkpoint", "--run-id", "mine").code == 0
    done = call("resume", "mine", "--events", "events.jsonl", "--json")
    assert done.code == 0
    started = [json.loads(line) for line in (here / "events.jsonl").read_text().splitlines()]
    assert {event["step"] for event in started if event["event"] == "step_started"} == {"beside", "route", "last"}
    assert {name: step["status"] for name, step in json.loads(done.out)["step_results"].items()} == {
        "first": "success",
        "beside": "success",
        "left": "success",
        "route": "success",
        "last": "success",
        "other": "skipped",
    }


def test_a_name_of_ones_own(here: Path, call: Call) -> None:
    """It stands in the result and names the checkpoint; one that is taken, or can't be a name, is refused before anything runs."""
    done = call("run", "flow.yaml", "--run-id", "a-b.c_1", "--checkpoint", "--json")
    assert json.loads(done.out)["run_id"] == "a-b.c_1"
    kept = here / ".agentloom" / "checkpoints" / "a-b.c_1.json"
    before = kept.read_bytes()
    again = call("run", "flow.yaml", "--run-id", "a-b.c_1", "--checkpoint", "--events", "events.jsonl")
    assert (again.code, kept.read_bytes()) == (2, before)
    assert "there is a run `a-b.c_1`" in again.err
    assert call("run", "flow.yaml", "--run-id", "../x", "--events", "events.jsonl").code == 2
    events = here / "events.jsonl"
    assert not events.exists() or not events.read_text()


def test_the_last_event_names_the_checkpoint(here: Path, call: Call) -> None:
    """The file that was written; null where nothing is kept."""
    for more, file in (
        (["--checkpoint", "--checkpoint-dir", "kept", "--run-id", "mine"], "kept/mine.json"),
        ([], None),
    ):
        done = call("run", "flow.yaml", "--events", "-", *more)
        last = json.loads(done.out.splitlines()[-1])
        assert (last["event"], last["checkpoint"]) == ("run_finished", file)
        assert file is None or (here / file).exists()
