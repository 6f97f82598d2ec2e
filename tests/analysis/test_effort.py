"""The worst case in numbers, and the formulas of the waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.effort import Effort, effort
from agentloom.backoff import BACKOFF_BASE, BACKOFF_MAX, JITTER, MAX_RETRIES, Backoff
from agentloom.model.config import Config, Retry
from agentloom.text import Source
from tests.analysis.checking import check


def one(step: str, head: str = "") -> Effort:
    """Return the effort of the only step of a workflow."""
    return effort(check(f"name: w\n{head}steps:\n  - {{id: a, {step}}}\n")).efforts["a"]


def test_the_defaults_are_those_of_the_model() -> None:
    """The formulas and the format speak of the same numbers."""
    retry = Retry()
    assert (Config().max_retries, retry.backoff_base, retry.backoff_max, retry.jitter) == (
        MAX_RETRIES,
        BACKOFF_BASE,
        BACKOFF_MAX,
        JITTER,
    )


def test_the_documented_waits() -> None:
    """With the defaults a step waits about 2, 4 and 8 seconds; jitter is a quarter either way and comes after the cut."""
    backoff = Backoff()
    assert [backoff.nominal(n) for n in (1, 2, 3, 5, 6, 7)] == [2, 4, 8, 32, 60, 60]
    assert backoff.bounds(1) == (1.5, 2.5)
    assert backoff.bounds(9) == (45, 75)
    assert [backoff.delay(2, at) for at in (0, 0.5, 1)] == [3, 4, 5]
    assert Backoff(jitter=False).bounds(3) == (8, 8)


def test_what_a_provider_asks_for() -> None:
    """The longer of Retry-After and the backoff counts, up to the maximum."""
    backoff = Backoff(jitter=False)
    assert [backoff.delay(2, retry_after=asked) for asked in (None, 1, 10, 1000)] == [4, 4, 10, 60]


@pytest.mark.parametrize("backoff", [Backoff(-1), Backoff(2, -5), Backoff(0), Backoff(1e300, 1e300), Backoff(1e-300)])
def test_odd_numbers_give_numbers(backoff: Backoff) -> None:
    """No value of the file makes the formulas raise or overflow."""
    for retry in (1, 2, 1000, 10**6):
        low, high = backoff.bounds(retry)
        assert 0 <= low <= high < float("inf")
    assert 0 <= backoff.longest_total(10**6) < float("inf")


@given(st.integers(0, 60), st.floats(0, 20), st.floats(0, 1000), st.booleans())
def test_the_sum_is_that_of_the_waits(retries: int, base: float, most: float, jitter: bool) -> None:
    """The quick sum is the sum of the longest waits."""
    backoff = Backoff(base, most, jitter)
    slow = sum(backoff.bounds(retry)[1] for retry in range(1, retries + 1))
    assert backoff.longest_total(retries) == pytest.approx(slow, rel=1e-6, abs=1e-6)


CALL = "type: llm_call, prompt: hi"

ATTEMPTS = [
    (CALL, "", 4, "default", 17.5),
    (CALL, "config: {max_retries: 1}\n", 2, "config", 2.5),
    (f"{CALL}, retry: {{max_retries: 0}}", "", 1, "retry", 0),
    (f"{CALL}, retry: {{jitter: false}}", "", 4, "default", 14),
    (f"{CALL}, retry: {{max_retries: 2, backoff_base: 3, backoff_max: 5, jitter: false}}", "", 3, "retry", 8),
    ("type: router, default: b", "", 1, "type", 0),
    ("type: router, default: b, timeout: 1", "", 4, "default", 17.5),
    ("type: approval_gate", "", 1, "type", 0),
    (f"{CALL}, retry: {{max_retries: no}}", "", 4, "default", 17.5),
    (f"{CALL}, retry: 7", "config: 8\n", 4, "default", 17.5),
]


@pytest.mark.parametrize(("step", "head", "attempts", "origin", "waits"), ATTEMPTS)
def test_attempts_and_waits(step: str, head: str, attempts: int, origin: str, waits: float) -> None:
    """A step's own `retry` counts, then `config.max_retries`, then the default; routers and gates have nothing to retry."""
    found = one(step, head)
    assert (found.attempts, found.origin, found.waits) == (attempts, origin, waits)


LIMITS = [
    (CALL, None, None),
    (f"{CALL}, timeout: 9", 9, "timeout"),
    (f"{CALL}, timeout: 0", None, None),
    ("type: tool, tool_name: http_request, tool_args: {url: x}", 30, "tool"),
    ("type: tool, tool_name: http_request, tool_args: {url: x, timeout: 5}, timeout: 9", 5, "tool"),
    ("type: tool, tool_name: shell_command, tool_args: {command: x, timeout: 0}", None, None),
    ("type: tool, tool_name: file_read, tool_args: {path: x}", 0, "instant"),
    ("type: tool, tool_name: mine", None, None),
    ("type: router, default: b", 0, "instant"),
    ("type: agent, agent: x, input: hi", 3, "max_latency_ms"),
    ("type: agent, agent: x, input: hi, timeout: 2", 2, "timeout"),
]


@pytest.mark.parametrize(("step", "limit", "by"), LIMITS)
def test_how_long_an_attempt_may_take(step: str, limit: float | None, by: str | None) -> None:
    """The shortest limit counts: the step's, the tool's, the agent's."""
    head = "agents: {x: {system_prompt: hi, constraints: {max_latency_ms: 3000}}}\n"
    found = one(step, head)
    assert (found.limit, found.limited_by) == (limit, by)


NESTED = """\
name: w
steps:
  - id: sub
    type: subworkflow
    retry: {max_retries: 1, jitter: false}
    workflow_inline:
      name: child
      config: {max_retries: 0}
      steps:
        - {id: quick, type: llm_call, prompt: hi, timeout: 5}
        - id: slow
          type: llm_call
          depends_on: [quick]
          prompt: hi
          timeout: 10
          retry: {max_retries: 2, jitter: false}
        - {id: beside, type: llm_call, depends_on: [quick], prompt: hi, timeout: 1}
"""


def test_retries_multiply_below() -> None:
    """Two retries in the child and one in the parent make up to six attempts; the child's time is its longest way, layer by layer."""
    worst = effort(check(NESTED))
    found = worst.efforts["sub"]
    assert (found.attempts, found.inside, found.path) == (2, 6, ("sub", "slow"))
    assert (found.limit, found.limited_by) == (5 + 3 * 10 + 2 + 4, "child")
    assert found.total == 2 * 41 + 2
    assert worst.total == found.total
    assert worst.legs == (("sub", 84.0),)
    assert (found.waits, found.waiting, worst.waits) == (2, 2 + 2 * (2 + 4), 14)


def test_waits_below_end_with_what_ends_the_attempt() -> None:
    """A `timeout` of the step, of the child or of the run leaves no time for longer waits."""
    step = "  - id: sub\n    type: subworkflow\n"
    for text, waits in (
        (NESTED.replace(step, f"{step}    timeout: 4\n"), 2 + 2 * 4),
        (NESTED.replace("config: {max_retries: 0}", "config: {max_retries: 0, timeout: 5}"), 2 + 2 * 5),
        (NESTED.replace("steps:\n", "config: {timeout: 7}\nsteps:\n", 1), 7),
    ):
        assert effort(check(text)).waits == waits


def test_a_workflow_is_as_slow_as_its_layers() -> None:
    """Each layer waits for its slowest step; what has no limit is named."""
    text = (
        "name: w\nconfig: {max_retries: 0}\nsteps:\n  - {id: a, type: llm_call, prompt: hi, timeout: 3}\n"
        "  - {id: b, type: llm_call, prompt: hi, timeout: 4}\n  - {id: c, type: llm_call, prompt: hi, depends_on: [a], timeout: 5}\n"
    )
    worst = effort(check(text))
    assert (worst.legs, worst.total, worst.unlimited) == ((("b", 4.0), ("c", 5.0)), 9.0, ())
    worst = effort(check(text.replace(", timeout: 4", "")))
    assert (worst.total, worst.unlimited) == (None, ("b",))
    worst = effort(check(text.replace("{max_retries: 0}", "{max_retries: 0, timeout: 7}")))
    assert worst.total == 7


def test_too_many_for_the_places() -> None:
    """With fewer places than steps a layer takes longer."""
    steps = "".join(f"  - {{id: s{n}, type: llm_call, prompt: hi, timeout: 10}}\n" for n in range(4))
    worst = effort(check(f"name: w\nconfig: {{max_retries: 0, max_concurrent_steps: 2}}\nsteps:\n{steps}"))
    assert worst.total == 10 + 15


def test_files_that_each_run_the_next_twice(tmp_path: Path) -> None:
    """Thirty files in a row, each run by two steps of the one before: a thousand million ways down, and each file is looked at once."""
    for number in range(30):
        steps = "".join(f"  - {{id: {name}, type: subworkflow, workflow_path: f{number + 1}.yaml}}\n" for name in "ab")
        (tmp_path / f"f{number}.yaml").write_text(f"name: f\nsteps:\n{steps}", encoding="utf-8")
    (tmp_path / "f30.yaml").write_text("name: f\nsteps:\n  - {id: a, type: llm_call, prompt: hi}\n", encoding="utf-8")
    path = tmp_path / "f0.yaml"
    document = analyze(Source(str(path), path.read_text(encoding="utf-8")), Context())
    assert {found.code for found in document.diagnostics} <= {"AL508"}
    assert effort(document).efforts["a"].inside == 4**31
