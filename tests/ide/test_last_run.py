"""What the last run left in a text: hints, hovers, and where it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agentloom.ide.hints import hints
from agentloom.ide.hover import hover_at
from agentloom.ide.last_run import LastRun, StepRun, failures, steps_in, texts_of
from agentloom.ide.prose.form import plain
from agentloom.ide.prose.last_run import took
from agentloom.text import Span
from tests.analysis.checking import check

TEXT = """\
name: w
state: {given: 1}
steps:
  - {id: a, type: llm_call, prompt: hi, output: first}
  - id: sub
    type: subworkflow
    workflow_inline:
      name: inner
      steps:
        - {id: deep, type: llm_call, prompt: "{state.first}", output: within}
  - {id: b, type: llm_call, prompt: "{state.first.x[0]} {state.given}", depends_on: [a]}
"""


def last(*steps: StepRun, text: str = TEXT, state: Mapping[str, Any] | None = None) -> LastRun:
    """Return a run of a text with these steps."""
    texts = texts_of(check(text))
    return LastRun(
        "r1", "failed", {step.path: step._replace(text=texts.get(step.path, "")) for step in steps}, state or {}
    )


def shown(run: LastRun, text: str = TEXT) -> list[str]:
    return [hint.label for hint in hints(check(text), Span(0, len(text)), ("run",), None, run)]


def hover(run: LastRun, words: str, text: str = TEXT) -> str:
    found = hover_at(check(text), text.index(words) + len(words) - 1, None, None, run)
    assert found is not None
    return plain(found.prose)


@pytest.mark.parametrize(
    ("step", "label"),
    [
        (StepRun("a", "success", duration=0.0004), "✓ 0 ms"),
        (StepRun("a", "success", duration=0.9996, cost=0.01234), "✓ 1 s · $0.0123"),
        (StepRun("a", "success", duration=61.0), "✓ 61 s"),
        (StepRun("a", "failed", duration=1.25, cost=0.5), "✗ failed after 1.2 s · $0.5000"),
        (StepRun("a", "failed"), "✗ failed"),
        (StepRun("a", "timeout", duration=30), "✗ out of time after 30 s"),
        (StepRun("a", "skipped"), "– skipped"),
        (StepRun("a", "paused"), "‖ waits"),
        (StepRun("a", "running"), "… running"),
        (StepRun("a", "cancelled"), "✗ cancelled"),
        (StepRun("a", "interrupted"), "✗ interrupted"),
    ],
)
def test_labels(step: StepRun, label: str) -> None:
    """Every way in which a step can end, in a few characters."""
    assert shown(last(step)) == [label]


def test_hints_stand_behind_names() -> None:
    """Also in workflows written in place; a step that the run didn't reach has none, and one that is no more is passed over."""
    run = last(
        StepRun("a", "success"), StepRun("sub.deep", "failed"), StepRun("sub", "failed"), StepRun("gone", "success")
    )
    found = hints(check(TEXT), Span(0, len(TEXT)), ("run",), None, run)
    assert [TEXT[: hint.offset].split()[-1] for hint in found] == ["a", "sub", "deep"]
    assert hints(check(TEXT), Span(0, len(TEXT)), ("layer",), None, run)
    assert [hint for hint in hints(check(TEXT), Span(0, len(TEXT)), ("layer",), None, run) if hint.kind == "run"] == []


def test_where_it_failed() -> None:
    """The innermost step, with its message; nothing once its text is another, and nothing for a step that was only skipped."""
    run = last(
        StepRun("a", "success"),
        StepRun("sub", "failed", error="outer"),
        StepRun("sub.deep", "timeout", error="late"),
        StepRun("b", "skipped", error="x"),
    )
    ((span, step),) = failures(check(TEXT), run)
    assert (TEXT[span.start : span.end], step.error) == ("deep", "late")
    moved = "# one more line\n" + TEXT
    ((span, _),) = failures(check(moved), run)
    assert moved[span.start : span.end] == "deep"
    edited = TEXT.replace("output: within", "output: inside")
    assert list(failures(check(edited), run)) == []  # the text of the step around it is another, too
    other = TEXT.replace("given: 1", "given: 2")
    assert len(list(failures(check(other), run))) == 1


def test_paths_of_steps() -> None:
    """As events call them."""
    assert [placed.path for placed in steps_in(check(TEXT))] == ["a", "sub", "sub.deep", "b"]


def test_a_step_under_the_cursor() -> None:
    """How it went, by whom, what it gave back, and whether it has changed since."""
    step = StepRun(
        "a",
        "success",
        duration=2,
        cost=0.25,
        tokens=1234,
        model="m",
        provider="p",
        output={"x": [1]},
        warnings=("odd",),
    )
    said = hover(last(step), "{id: a")
    assert "In run `r1` it succeeded in 2 s, 1,234 tokens, $0.2500, by `m` of `p`." in said
    assert 'It gave back: `{"x": [1]}`' in said
    assert "Warning: `odd`" in said
    assert "edited since" not in said
    edited = TEXT.replace("prompt: hi", "prompt: ho")
    assert "The step was edited since." in hover(last(step), "{id: a", edited)
    failed = StepRun("sub.deep", "failed", duration=1, error="Provider said\nno")
    said = hover(last(failed), "{id: deep")
    assert "it failed after 1 s." in said
    assert "    Provider said\n    no" in said
    assert "In run" not in hover(last(failed), "{id: a")


def test_values_under_the_cursor() -> None:
    """What the state held at that path, long ones on lines of their own; nothing is said about what it didn't hold."""
    run = last(state={"first": {"x": ["é" * 100]}, "given": "", "within": "not ours"})
    assert hover(run, "state.first.x[0").endswith(f"After the last run:\n\n    {'é' * 100}")
    assert 'After the last run: `{"x"' not in hover(run, "state.given")
    assert hover(run, "state.given").endswith("After the last run an empty text.")
    assert "After the last run" in hover(run, "output: first")
    assert "After the last run" not in hover(run, "output: within")  # the state of the workflow inside is another
    assert "After the last run" not in hover(last(state={}), "state.given")


def test_times() -> None:
    """Milliseconds below a second."""
    assert [took(seconds) for seconds in (0, 0.0126, 0.9994, 0.9996, 75.4)] == [
        "0 ms",
        "13 ms",
        "999 ms",
        "1 s",
        "75.4 s",
    ]
