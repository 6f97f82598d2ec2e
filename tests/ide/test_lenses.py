"""Lenses: which there are, where they stand, and what they carry."""

from __future__ import annotations

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.ide.lenses import KeptRun, OngoingRun, Runs, lenses
from agentloom.text import Source
from tests.analysis.checking import check

TEXT = "# first\nname: w\nsteps:\n  - {id: a, type: llm_call, prompt: hi}\n  - id: 'b'\n    type: llm_call\n    prompt: hi\n"
NOTHING = Runs()


def titles(text: str, runs: Runs = NOTHING, steps: bool = True, workflow: bool = True) -> list[tuple[str, str]]:
    """Return each lens with the text that it stands above."""
    return [(text[lens.span.start : lens.span.end], lens.title) for lens in lenses(check(text), runs, steps, workflow)]


def test_what_can_always_be_done() -> None:
    """Above the name of the workflow, and above the id of each step, inside its quotes."""
    run, mock, step = "▶ Run", "▶ Run with mock", "▶ Run up to here"
    assert titles(TEXT) == [("name", run), ("name", mock), ("a", step), ("b", step)]
    assert titles(TEXT, steps=False) == [("name", run), ("name", mock)]
    assert titles(TEXT, workflow=False) == [("a", step), ("b", step)]
    assert titles(TEXT, steps=False, workflow=False) == []


def test_what_is_carried() -> None:
    """The document, and what tells one lens from another."""
    document = check(TEXT)
    found = {lens.title: (lens.command, lens.argument) for lens in lenses(document, NOTHING)}
    uri = {"uri": document.source.uri}
    assert found["▶ Run"] == ("agentloom.run", uri)
    assert found["▶ Run with mock"] == ("agentloom.runWithMock", uri)
    assert found["▶ Run up to here"] == ("agentloom.run", {**uri, "until": "b"})
    replay = lenses(document, Runs(recording="/r.json"))[2]
    assert (replay.title, replay.command, replay.argument) == (
        "⟲ Replay",
        "agentloom.replay",
        {**uri, "recording": "/r.json"},
    )


def test_runs() -> None:
    """Those that go on come first, with their progress; of those that were kept only the latest, a gate with both decisions."""
    kept = [
        KeptRun("0123456789ab", "paused", "gate", "/store"),
        KeptRun("abcdefabcdef", "budget_exceeded", None, "/store"),
        KeptRun("bbbbbbbbbbbb", "success", None, "/store"),
        KeptRun("cccccccccccc", "failed", None, "/store"),
    ]
    found = lenses(check(TEXT), Runs([OngoingRun("ffffffffffff", 1, 3), OngoingRun("eeeeeeeeeeee", 0, 0)], kept), False)
    assert [lens.title for lens in found] == [
        "■ Cancel ffffff (1 of 3)",
        "■ Cancel eeeeee",
        "▶ Run",
        "▶ Run with mock",
        "✓ Approve 012345 at gate",
        "✗ Reject 012345 at gate",
        "⏵ Resume abcdef (over budget)",
        "⏵ Resume bbbbbb (ended early)",
    ]
    assert found[0].argument == {"runId": "ffffffffffff"}
    assert found[4].argument["folder"] == "/store"
    assert {lens.command for lens in found[4:]} == {"agentloom.approve", "agentloom.reject", "agentloom.resume"}


@pytest.mark.parametrize("text", ["name: w\n", "", "{}\n", "name: w\nsteps: []\n", "- a\n"])
def test_what_has_no_steps_has_no_lenses(text: str) -> None:
    """There is nothing to run yet."""
    assert lenses(analyze(Source("<text>", text), Context(), kind="workflow"), NOTHING) == []


def test_texts_that_are_broken_keep_theirs() -> None:
    """Without a name above the first key; a step without an id has none, nor has the second of one name."""
    text = "steps:\n  - id: a\n    type: llm_call\n    prompt: hi\n  - type: tool\n  - {id: a, type: tool}\n  - id: b\n    pro\n"
    assert titles(text) == [
        ("steps", "▶ Run"), ("steps", "▶ Run with mock"), ("a", "▶ Run up to here"), ("b", "▶ Run up to here")
    ]  # fmt: skip
