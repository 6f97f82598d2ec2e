"""Sums count the whole life of a run, however it was cut off; and of two processes that want to go on with it one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import journal_of, load_run, redacted_in
from agentloom.core.kinds import Attempt, Services
from agentloom.core.results import StepResult
from agentloom.core.runner import Op
from agentloom.durable.journal import RunIsBusy
from agentloom.errors import ProviderError, StepError
from agentloom.providers.base import Request, Response, Usage
from agentloom.steps import table
from tests.engine.kept import (
    NO,
    Killed,
    asked,
    die,
    gateway_for,
    kill,
    leave,
    locked_for,
    priced,
    resume,
    resumed,
    run,
)
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow, sub
from tests.engine.world import run as world_run


@pytest.fixture
def store(tmp_path: Path) -> FileCheckpointer:
    return FileCheckpointer(tmp_path / "kept")


class Loop:
    """Stands for a step that calls a model several times in one attempt: each call costs 0.25 and two tokens, then something happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *happens: Any) -> None:
        self.happens = list(happens)
        self.calls = 0
        executor = table.BY_TYPE["tool"]
        monkeypatch.setitem(table.BY_TYPE, "tool", _with_run(executor, self.run))

    async def run(self, op: Op, services: Services, attempt: Attempt) -> StepResult:
        """Make a call, and let the next thing happen; end well when nothing is left."""
        while self.happens:
            self.calls += 1
            attempt.spend(0.25, Usage(1, 1, 2))
            happening = self.happens.pop(0)
            if isinstance(happening, BaseException):
                raise happening
            if happening is not None:
                await anyio.sleep(happening)
        return StepResult(op.step.id, "success", output="done")


def _with_run(executor: Any, run: Any) -> Any:
    return type(executor)(type=executor.type, reads=executor.reads, run=run, kind=executor.kind)


LOOP = flow({"id": "a", "type": "tool", "tool_name": "x", "retry": {"backoff_base": 1, "jitter": False}})


# --- money and tokens


def test_a_call_inside_an_attempt_that_was_killed_counts(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its money was spent, and the resume doesn't find it in any outcome: the journal has a line for each call."""
    loop = Loop(monkeypatch, None, Killed(), None)
    kill(lambda: run(store, LOOP))
    assert loop.calls == 2
    assert load_run(store, "r").total_cost_usd == 0.5
    result, _ = resumed(store)
    assert (loop.calls, result.status) == (3, "success")
    assert (result.total_cost_usd, result.total_tokens) == (0.75, 6)
    saved = store.read("r")
    assert (saved.total_cost_usd, saved.total_tokens) == (0.75, 6)


def test_attempts_that_failed_ended_and_were_killed_count_once(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the line of a call and in that of its attempt is the same money; over three lives."""
    again = StepError("again", transient=True)
    Loop(monkeypatch, None, again, None, Killed(), Killed(), None, None)
    kill(lambda: run(store, LOOP))
    assert load_run(store, "r").total_cost_usd == 1.0
    kill(lambda: resume(store))
    assert load_run(store, "r").total_cost_usd == 1.25
    result, _ = resumed(store)
    assert (result.total_cost_usd, result.total_tokens) == (1.75, 14)
    again_result, _ = resumed(store)
    assert (again_result.total_cost_usd, again_result.total_tokens) == (1.75, 14)


def test_the_spend_of_a_cancelled_attempt_counts_for_the_budget(
    store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CK-1, RS-1: Ctrl-C in the middle of an attempt; the resume is over the limit at once."""
    Loop(monkeypatch, None, 100.0, None)

    async def main() -> None:
        with anyio.move_on_after(5):
            await run(store, {**LOOP, "config": {**LOOP["config"], "budget_usd": 0.5}})

    run_virtual(main)
    saved = load_run(store, "r")
    assert (saved.status, saved.total_cost_usd, saved.total_tokens) == ("cancelled", 0.5, 4)
    result, _ = resumed(store)
    assert (result.status, result.total_cost_usd, result.total_tokens) == ("budget_exceeded", 0.5, 4)


def test_an_attempt_of_a_child_that_timed_out_counts_in_its_step(store: FileCheckpointer) -> None:
    """SW-7: what its steps had spent is in the cost of the step, as it is in the run's."""

    async def slow(request: Request, on_delta: object) -> str:
        await anyio.sleep(100)
        return ""

    retry = {"max_retries": 1, "backoff_base": 1}
    data = flow(sub("s", steps=[ask("i"), ask("j", "i")], timeout=10, retry=retry))
    world = world_run(data, {"s.j": slow})
    step = world.result.step_results["s"]
    assert (step.status, step.attempts) == ("timeout", 2)
    assert (step.cost_usd, step.token_usage.total_tokens) == (1.0, 14)
    assert (world.result.total_cost_usd, world.result.total_tokens) == (1.0, 14)


@pytest.mark.parametrize("how", ["killed", "cancelled"])
def test_a_childs_own_budget_goes_on_from_what_it_has_spent(store: FileCheckpointer, how: str) -> None:
    """RS-1: in a child, too; its step costs what all of its lives cost."""
    child = {"config": {"budget_usd": 0.9}}
    data = flow(sub("s", steps=[ask("i"), ask("j", "i"), ask("k", "j")], child=child))

    async def slow(request: Request, on_delta: object) -> str:
        await anyio.sleep(100)
        return ""

    answers = {"s.i": priced(0.5), "s.j": die if how == "killed" else slow}
    if how == "killed":
        kill(lambda: run(store, data, answers))
    else:

        async def main() -> None:
            with anyio.move_on_after(5):
                await run(store, data, answers)

        run_virtual(main)
    result, provider = resumed(store, {name: priced(0.5) for name in ("s.j", "s.k")})
    assert asked(provider) == ["s.j"]
    assert result.status == "failed"
    assert result.step_results["s"].error == "workflow `kid`: Budget exceeded: spent $1.0000 of $0.9000 limit"
    assert result.step_results["s"].cost_usd == 1.0
    assert (result.total_cost_usd, result.total_tokens) == (1.0, 4)


def test_the_next_attempt_of_a_child_has_its_whole_budget_again(store: FileCheckpointer) -> None:
    """An attempt runs the child from its first step, on a resume as before."""
    tries: list[str] = []

    async def flop_then_die(request: Request, on_delta: object) -> Response:
        tries.append(request.step_id)
        if len(tries) == 1:
            raise ProviderError("busy", status_code=503)
        raise Killed

    child = {"config": {"budget_usd": 1.2, "max_retries": 0}}
    data = flow(sub("s", steps=[ask("i"), ask("j", "i")], child=child))
    kill(lambda: run(store, data, {"s.i": priced(0.5), "s.j": flop_then_die}))
    assert load_run(store, "r").total_cost_usd == 1.0
    result, provider = resumed(store, {name: priced(0.5) for name in ("s.i", "s.j")})
    assert (result.status, asked(provider)) == ("success", ["s.j"])
    assert (result.total_cost_usd, result.step_results["s"].cost_usd) == (1.5, 1.0)


def test_the_tokens_of_a_resumed_run_are_those_of_all_its_lives(store: FileCheckpointer) -> None:
    """Seven tokens a call, three calls in three lives."""
    data = flow(ask("a"), ask("b", "a"), ask("c", "b"))
    run_virtual(lambda: run(store, data, {"b": NO}))
    kill(lambda: resume(store, {"c": die}))
    result, _ = resumed(store)
    assert (result.total_tokens, result.total_cost_usd) == (21, 1.5)


# --- two at once

CHAIN = flow(ask("a"), ask("b", "a"), ask("c", "b"), ask("d", "c"))


async def go_on(store: FileCheckpointer, data: Any, answers: Mapping[str, Any] | None = None) -> tuple[Any, Script]:
    provider = Script(answers)
    engine = await WorkflowEngine.from_checkpoint(data, store, provider_gateway=gateway_for(provider))
    return await engine.run(), provider


@pytest.mark.parametrize("first", ["ended", "killed"])
def test_a_journal_that_another_resume_left_is_not_overwritten(store: FileCheckpointer, first: str) -> None:
    """Two resumes read the run; one works and is killed, then the other begins: it must not lose the first one's work."""
    leave(store, CHAIN, first, "b")
    one, two = load_run(store, "r"), load_run(store, "r")
    kill(lambda: go_on(store, one, {"d": die}))
    left = journal_of(store, "r").read_bytes()
    with pytest.raises(RunIsBusy, match="resumed by another process meanwhile"):
        run_virtual(lambda: go_on(store, two))
    assert journal_of(store, "r").read_bytes() == left
    result, provider = resumed(store)
    assert (result.status, asked(provider)) == ("success", ["d"])


@pytest.mark.parametrize("first", ["ended", "killed"])
def test_a_run_that_went_further_meanwhile_is_left_alone(store: FileCheckpointer, first: str) -> None:
    """One has read the run long ago; since then it ended, was resumed again, and killed in that life."""
    leave(store, CHAIN, first, "b")
    stale = load_run(store, "r")
    resumed(store, {"c": NO})
    kill(lambda: resume(store, {"d": die}))
    left = journal_of(store, "r").read_bytes()
    with pytest.raises(RunIsBusy):
        run_virtual(lambda: go_on(store, stale))
    assert journal_of(store, "r").read_bytes() == left
    result, provider = resumed(store)
    assert (result.status, asked(provider)) == ("success", ["d"])


def test_a_run_that_ended_meanwhile_is_told_of(store: FileCheckpointer) -> None:
    """Its journal is gone; nothing is begun in its place."""
    kill(lambda: run(store, CHAIN, {"b": die}))
    stale = load_run(store, "r")
    resumed(store)
    with pytest.raises(RunIsBusy):
        run_virtual(lambda: go_on(store, stale))
    assert sorted(path.name for path in store.folder.iterdir()) == ["r.json"]


# --- what a resume brings along is kept


def test_a_budget_raised_for_an_interrupted_run_is_still_raised_after_the_next_kill(store: FileCheckpointer) -> None:
    """CK-2: the workflow as it ran, overrides included, also where no checkpoint was written in between."""
    data = {**CHAIN, "config": {**CHAIN["config"], "budget_usd": 0.6}}
    kill(lambda: run(store, data, {"b": die}))
    kill(lambda: resume(store, {"c": die}, {"n": 7}, budget_usd=5))
    saved = load_run(store, "r")
    assert saved.workflow_definition["config"]["budget_usd"] == 5
    assert saved.state["n"] == 7
    result, _ = resumed(store)
    assert result.status == "success"


def test_a_decision_that_was_taken_holds_though_the_run_was_killed_before_the_gate(store: FileCheckpointer) -> None:
    """Whoever decided was told so; nobody is asked again."""
    data = flow({"id": "g", "type": "approval_gate", "output": "verdict"}, ask("z", "g"), ask("n"))
    run_virtual(lambda: run(store, data, {"n": NO}))

    async def decide(answers: Mapping[str, Any]) -> None:
        provider = Script(answers)
        engine = await WorkflowEngine.from_checkpoint(
            load_run(store, "r"), store, gateway_for(provider), approval_decisions={"g": "approved"}
        )
        await engine.run()

    kill(lambda: decide({"z": die}))
    path = journal_of(store, "r")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])  # killed before the gate, as far as the journal knows
    assert json.loads(lines[0])["decisions"] == {"g": "approved"}
    result, _ = resumed(store)
    assert (result.status, result.final_state["verdict"]) == ("success", "approved")


# --- secrets in the journal


def test_redacted_values_of_the_journal_are_named(store: FileCheckpointer) -> None:
    """RD-4: those that steps of an interrupted run gave stand in no state yet, and are read redacted all the same."""
    secret = {"token": {"redact": True}, "pin": {"redact": True}, "given": {"redact": True}}
    data = flow(
        ask("a", output="token"),
        ask("b", output="given"),
        sub("s", steps=[ask("i", output="pin"), ask("j", "i")], output="child"),
        state_schema=secret,
    )
    answers = {"a": "sesame", "b": "open", "s.i": "1234", "s.j": die}
    kill(lambda: run(store, {**data, "config": {**data["config"], "max_concurrent_steps": 1}}, answers))
    saved = load_run(store, "r")
    assert redacted_in(store, saved, {"given": "open"}) == ["token", "pin"]
    assert redacted_in(store, saved, {"given": "open", "token": "sesame", "pin": "1234"}) == []


def test_redacted_values_that_stand_in_no_state_key_are_named(store: FileCheckpointer) -> None:
    """RD-4: of a step without `output`, whose result has a secret key."""
    data = flow(sub("s", steps=[ask("i", output="pin")]), ask("z", "s"), state_schema={"pin": {"redact": True}})
    run_virtual(lambda: run(store, data, {"z": NO}))
    assert "steps.s.output.pin" in redacted_in(store, load_run(store, "r"), {})


def test_a_child_whose_attempt_failed_begins_anew_though_a_checkpoint_had_some_of_its_steps(
    store: FileCheckpointer,
) -> None:
    """RT-1: what a checkpoint holds of the steps inside counts for the attempt that was cut short, and for no other."""

    async def slow(request: Request, on_delta: object) -> str:
        await anyio.sleep(100)
        return ""

    async def main() -> None:
        with anyio.move_on_after(5):
            await run(store, data, {"s.j": slow})

    busy = ProviderError("busy", status_code=503)
    child = {"config": {"max_retries": 0, "budget_usd": 0.9}}
    data = flow(sub("s", steps=[ask("i"), ask("j", "i")], child=child, retry={"max_retries": 1}))
    run_virtual(main)
    assert set(load_run(store, "r").inside) == {"s.i"}
    kill(lambda: resume(store, {"s.j": busy, "s.i": die}))
    result, provider = resumed(store, {"s.i": priced(0.25), "s.j": priced(0.25)})
    assert asked(provider) == ["s.i", "s.j"]
    assert (result.status, result.step_results["s"].cost_usd) == ("success", 0.5)


def test_who_was_just_started_by_a_run_that_was_killed_holds_nobody_up(store: FileCheckpointer) -> None:
    """A copy of the lock lives on for a moment in a process that was being started: the owner is gone, so that is waited for."""
    kill(lambda: run(store, CHAIN, {"b": die}))
    path = journal_of(store, "r")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(json.dumps({**json.loads(first), "pid": gone.pid}).encode() + b"\n" + b"".join(rest))
    with locked_for(store, 0.3):
        assert resumed(store)[0].status == "success"


def test_unfinished_files_of_killed_processes_are_cleared_away(store: FileCheckpointer) -> None:
    """A process that is killed while it writes a checkpoint leaves a file beside it."""
    run_virtual(lambda: run(store, CHAIN, {"b": NO}))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f".r.json.{gone.pid}.ab.tmp", f".r.s.json.{gone.pid}.ab.tmp"]
    others = [f".rr.json.{gone.pid}.ab.tmp", f".r.json.{os.getpid()}.ab.tmp", ".r.json.tmp", ".r.json.x.y.tmp"]
    for name in names + others:
        (store.folder / name).write_text("half of it")
    resumed(store)
    assert sorted(path.name for path in store.folder.iterdir()) == sorted([*others, "r.json"])
