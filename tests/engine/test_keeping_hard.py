"""What is kept under odd circumstances: secrets that are needed again, files of any size and content, clocks, stores that fail."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import CheckpointData, FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import journal_of, load_run, redacted_in
from agentloom.errors import CheckpointSchemaError
from agentloom.providers.base import Request, Response, Usage
from tests.engine.kept import (
    NO,
    Killed,
    asked,
    die,
    ended,
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
from tests.engine.world import Script, ask, flow, route, sub, use
from tests.engine.world import run as world_run


@pytest.fixture
def store(tmp_path: Path) -> FileCheckpointer:
    return FileCheckpointer(tmp_path / "kept")


# --- secrets

TOKEN = flow(
    ask("a", output="token"),
    ask("b", "a", prompt="b {state.token} {steps.a.output}"),
    state_schema={"token": {"redact": True}},
)


@pytest.mark.parametrize("how", ["failed", "killed"])
def test_a_secret_that_a_step_gave_is_put_back(store: FileCheckpointer, how: str) -> None:
    """RD-4: also where the journal holds it, and under `steps`."""
    leave(store, TOKEN, how, "b", {"a": "sesame"})
    result, provider = resumed(store, {}, {"token": "sesame"})
    assert result.status == "success"
    assert provider.prompts() == {"b": "b sesame sesame"}


TALK = flow(ask("a", conversation="chat"), ask("b", "a", conversation="chat"), state_schema={"chat": {"redact": True}})


@pytest.mark.parametrize("how", ["failed", "killed"])
def test_a_secret_conversation_is_put_back_whole(store: FileCheckpointer, how: str) -> None:
    """RD-4: whatever was given counts, though it has other keys and fewer turns; nothing of it is asked for again."""
    leave(store, TALK, how, "b", {"a": "hush"})
    given = {"chat": {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "hush"}]}}
    assert [name for name in redacted_in(store, load_run(store, "r"), given) if name.startswith("chat")] == []
    result, provider = resumed(store, {}, given)
    assert result.status == "success"
    assert [message.content for message in provider.requests[0].messages] == ["a", "hush", "b"]


@pytest.mark.parametrize("how", ["failed", "killed"])
def test_a_secret_conversation_that_is_not_given_again_says_so(store: FileCheckpointer, how: str) -> None:
    """RD-4: no talk of a `token_budget` that nobody has written."""
    leave(store, TALK, how, "b", {"a": "hush"})
    result, provider = resumed(store, {})
    assert provider.requests == []
    assert result.step_results["b"].error == "conversation `chat` is redacted; give it again with `--state`"
    assert result.step_results["b"].error_classification == "permanent"


@pytest.mark.parametrize("given", [{}, {"x": {}}])
def test_an_empty_value_of_the_beginning_is_not_taken_for_a_secret_one(store: FileCheckpointer, given: Any) -> None:
    """It looks the same with secrets and without."""
    data = flow(ask("a", output="x.y"), ask("b", "a", prompt="{state.x}"), state_schema={"x": {"redact": True}})
    kill(lambda: run(store, {**data, "state": {"x": {}}}, {"a": "sesame", "b": die}))
    _, provider = resumed(store, {}, given)
    assert "REDACTED" in provider.prompts()["b"]


@pytest.mark.parametrize("how", ["failed", "killed"])
def test_a_routers_decision_is_known_although_it_is_secret(store: FileCheckpointer, how: str) -> None:
    """Or no branch would be taken, and the run would end well without having done anything."""
    way = {**route("r", x="True", default="y"), "output": "choice"}
    data = flow(way, ask("x", "r"), ask("y", "r"), ask("z", "x"), state_schema={"choice": {"redact": True}})
    leave(store, data, how, "x")
    result, provider = resumed(store)
    assert result.status == "success"
    assert asked(provider) == ["x", "z"]


@pytest.mark.parametrize("output", [None, "out", "deep.out"])
def test_what_a_child_calls_secret_is_secret_in_its_parent(store: FileCheckpointer, output: str | None) -> None:
    """Its final state is the step's output, and holds what its steps gave once more."""
    secret = {"pw": {"redact": True}, "user.pin": {"redact": True}}
    inner = sub("t", steps=[ask("i", output="pw"), ask("j", "i", output="user.pin")], child={"state_schema": secret})
    data = flow(sub("s", steps=[inner], **({} if output is None else {"output": output})), ask("e", "s"))
    seen: list[str] = []

    async def look(request: Request, on_delta: object) -> str:
        seen.append(journal_of(store, "r").read_text())
        return "e"

    result = ended(data, store, {"s.t.i": "geheim", "s.t.j": "1234567", "e": look})
    assert result.status == "success"
    for text in (json.dumps(result.to_dict()), store.path("r").read_text(), *seen):
        assert "geheim" not in text
        assert "1234567" not in text
    assert seen


# --- files


def test_what_is_kept_is_read_again_whatever_its_size(store: FileCheckpointer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other files are refused beyond a limit; what a run has paid for isn't."""
    monkeypatch.setattr("agentloom.files.MOST_BYTES", 10_000)
    data = flow(ask("a", output="x"), ask("b", "a"), ask("c", "b"))
    kill(lambda: run(store, data, {"a": "x" * 10_001, "b": die}))
    assert load_run(store, "r").status == "interrupted"
    result, provider = resumed(store, {"c": NO})
    assert (result.status, asked(provider)) == ("failed", ["b", "c"])
    assert store.path("r").stat().st_size > 10_000
    assert resumed(store)[0].status == "success"


def test_any_tool_can_read_halves_of_surrogate_pairs(store: FileCheckpointer) -> None:
    async def half(request: Request, on_delta: object) -> str:
        return "\ud800 ü"

    lines: list[bytes] = []

    async def look(request: Request, on_delta: object) -> str:
        lines.extend(journal_of(store, "r").read_bytes().splitlines())
        raise Killed

    kill(lambda: run(store, flow(ask("a", output="x"), ask("b", "a")), {"a": half, "b": look}))
    outputs = [json.loads(line.decode("utf-8")).get("result", {}).get("output") for line in lines]
    assert "\ud800 ü" in outputs
    result, _ = resumed(store)
    assert result.step_results["a"].output == "\ud800 ü"
    assert json.loads(store.path("r").read_bytes().decode("utf-8"))["state"]["x"] == "\ud800 ü"


@pytest.mark.parametrize(
    "odd",
    [
        {"duration_ms": "x"},
        {"token_usage": 5},
        {"token_usage": {"total_tokens": "many"}},
        {"status": "odd"},
        {"cost_usd": [1]},
    ],
)
def test_a_result_that_is_none_stops_the_resume_and_changes_nothing(store: FileCheckpointer, odd: Any) -> None:
    data = flow(ask("a"), ask("b", "a"))
    ended(data, store, {"b": NO})
    good = json.loads(store.path("r").read_text())
    good["step_results"]["a"].update(odd)
    store.path("r").write_text(json.dumps(good))
    before = store.path("r").read_bytes()
    with pytest.raises(CheckpointSchemaError, match="step `a`"):
        resumed(store)
    assert [path.name for path in store.folder.iterdir()] == ["r.json"]
    assert store.path("r").read_bytes() == before


@pytest.mark.parametrize(
    "odd",
    [
        {"attempts": [1]},
        {"inside": 5},
        {"inside": {"a.x": {"status": "success", "cost_usd": "y"}}},
        {"completed_steps": 5},
        {"paused_since": {"g": "soon", "h": "2026-11-30T10:00:00"}},
    ],
)
def test_odd_extras_of_a_checkpoint_are_left_out(store: FileCheckpointer, odd: Any) -> None:
    ended(flow(ask("a"), ask("b", "a")), store, {"b": NO})
    good = json.loads(store.path("r").read_text())
    store.path("r").write_text(json.dumps({**good, **odd}))
    assert resumed(store)[0].status == "success"


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), 10**400, -1, "1"])
def test_a_spend_that_is_no_sum_is_refused(cost: Any) -> None:
    data = CheckpointData("t", "r", {}, {}, {}, "failed").to_dict()
    with pytest.raises(CheckpointSchemaError, match="total_cost_usd"):
        CheckpointData.from_dict({**data, "total_cost_usd": cost})


def test_odd_lines_of_a_journal_cost_only_themselves(store: FileCheckpointer) -> None:
    data = flow(ask("a"), ask("b", "a"), ask("c", "b"))
    kill(lambda: run(store, data, {"c": die}))
    odd: list[Any] = [
        {"kind": "outcome", "path": "b", "result": {"status": "success", "cost_usd": "much"}, "own_cost_usd": 10**400},
        {"kind": "outcome", "path": 5},
        {"kind": "news"},
        {"kind": "started", "path": "c", "n": None},
    ]
    with open(journal_of(store, "r"), "a") as file:
        file.writelines(json.dumps(line) + "\n" for line in odd)
    result, provider = resumed(store)
    assert (result.status, asked(provider)) == ("success", ["b", "c"])


# --- clocks and races


def test_a_clock_that_is_put_back_loses_nothing(store: FileCheckpointer) -> None:
    """Whether a journal goes on from a checkpoint is told by what it says it began from."""
    data = flow(ask("a"), ask("b", "a"), ask("c", "b"))
    ended(data, store, {"b": NO})
    saved = json.loads(store.path("r").read_text())
    store.path("r").write_text(json.dumps({**saved, "updated_at": "2999-01-01T00:00:00+00:00"}))
    kill(lambda: resume(store, {"c": die}))
    assert load_run(store, "r").status == "interrupted"
    assert asked(resumed(store)[1]) == ["c"]


def test_the_latest_run_is_the_one_that_was_written_last(store: FileCheckpointer) -> None:
    """A run that was killed was last updated when it last wrote, not when it began."""
    kill(lambda: run(store, flow(ask("a"), ask("b", "a")), {"b": die}))
    path = journal_of(store, "r")
    began = json.loads(path.read_bytes().splitlines()[0])["begun"]
    assert load_run(store, "r").updated_at >= began
    os.utime(path, (4_000_000_000, 4_000_000_000))
    assert load_run(store, "r").updated_at.startswith("2096-")


def test_a_gate_waits_since_it_began_to_although_the_resume_was_killed(store: FileCheckpointer) -> None:
    gate = {"id": "g", "type": "approval_gate", "timeout_seconds": 1000}
    data = flow(gate, ask("h"))
    ended(data, store, {"h": NO})
    since = store.read("r").paused_since
    assert set(since) == {"g"}
    kill(lambda: resume(store, {"h": die}))
    assert load_run(store, "r").paused_since == since
    kill(lambda: resume(store, {"h": die}))
    assert load_run(store, "r").paused_since == since


# --- the end


class Full(FileCheckpointer):
    """A store on which nothing can be saved."""

    def __init__(self, folder: Path, error: Exception) -> None:
        super().__init__(folder)
        self.error = error

    async def save(self, data: CheckpointData) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "no space left on device"),
        (RuntimeError("database gone"), "database gone"),
    ],
)
def test_a_checkpoint_that_cant_be_written_doesnt_cost_the_result(tmp_path: Path, error: Exception, words: str) -> None:
    """The journal stays, and a resume goes on from it."""
    store = Full(tmp_path / "kept", error)
    data = flow(ask("a", output="x"))
    result = ended(data, store, {})
    assert (result.status, result.error) == ("failed", f"the checkpoint can't be written: {words}")
    assert result.final_state["x"] == "a"
    again, provider = resumed(FileCheckpointer(store.folder))
    assert (again.status, asked(provider)) == ("success", [])


# --- money


def test_sums_are_those_of_people(store: FileCheckpointer) -> None:
    """Three times 0.1 is 0.3: the limit is reached, not passed (BU-2)."""
    data = flow(ask("a"), ask("b", "a"), ask("c", "b"), config={"budget_usd": 0.3})
    assert ended(data, store, {name: priced(0.1) for name in "abc"}).status == "success"


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_a_child_that_the_runs_budget_cut_short_goes_on(store: FileCheckpointer, how: str) -> None:
    """What finished in it is paid, and kept; a child over its own budget begins anew, since that fails its step."""
    data = flow(ask("z"), sub("s", "z", steps=[ask("i"), ask("j", "i")]), config={"budget_usd": 1.0})
    answers = {name: priced(0.6) for name in ("z", "s.i", "s.j")}
    if how == "ended":
        result = ended(data, store, answers)
        assert (result.status, result.total_cost_usd) == ("budget_exceeded", 1.2)
    else:
        kill(lambda: run(Full(store.folder, Killed()), data, answers))  # type: ignore[arg-type]
        assert load_run(store, "r").status == "interrupted"
    result, provider = resumed(store, answers, budget_usd=100)
    assert (result.status, asked(provider)) == ("success", ["s.j"])
    assert result.total_cost_usd == pytest.approx(1.8)


def test_a_child_over_its_own_budget_begins_anew(store: FileCheckpointer) -> None:
    child = {"config": {"budget_usd": 0.5}}
    data = flow(sub("s", steps=[ask("i"), ask("j", "i")], child=child))
    answers = {name: priced(0.6) for name in ("s.i", "s.j")}
    assert ended(data, store, answers).status == "failed"
    assert asked(resumed(store, answers)[1]) == ["s.i"]


def test_from_python_a_result_that_is_none_is_refused_too(store: FileCheckpointer) -> None:
    data = CheckpointData("t", "r", flow(ask("a")), {}, {"a": {"status": "success", "cost_usd": "x"}}, "failed")

    async def main() -> None:
        engine = await WorkflowEngine.from_checkpoint(data, store, provider_gateway=gateway_for(Script()))
        await engine.run()

    with pytest.raises(CheckpointSchemaError):
        run_virtual(main)


def test_an_attempt_that_was_cut_off_has_the_same_key_again(store: FileCheckpointer) -> None:
    """R8: it may have done what it was to do; also when the run was stopped, or the budget stopped the step beside it."""
    data = flow(ask("a"), ask("b"), config={"budget_usd": 0.5})
    keys: list[str] = []

    async def slow(request: Request, on_delta: object) -> str:
        keys.append(request.idempotency_key)
        await anyio.sleep(10)
        return "b"

    async def dear(request: Request, on_delta: object) -> Response:
        await anyio.sleep(1)
        return Response("a", "m", "mock", Usage(1, 1, 2), 0.6)

    assert ended(data, store, {"a": dear, "b": slow}).status == "budget_exceeded"
    assert resumed(store, {"b": slow}, budget_usd=100)[0].status == "success"
    assert len(keys) == 2
    assert keys[0] == keys[1] != ""


def test_whoever_lists_the_runs_keeps_nobody_from_going_on(store: FileCheckpointer) -> None:
    """To tell whether a run is under way its lock is taken for a moment; others try again."""
    kill(lambda: run(store, flow(ask("a"), ask("b", "a")), {"b": die}))
    with locked_for(store, 0.01):
        assert resumed(store)[0].status == "success"


def test_a_child_that_is_done_keeps_its_result_though_it_crossed_the_limit(store: FileCheckpointer) -> None:
    """BU-1: the step whose cost crosses the limit keeps its result, a subworkflow too; it isn't paid again."""
    data = flow(sub("s", steps=[ask("i"), ask("j", "i")]), ask("z", "s"), config={"budget_usd": 0.9})
    answers = {name: priced(0.5) for name in ("s.i", "s.j", "z")}
    result = ended(data, store, answers)
    assert (result.status, result.step_results["s"].status) == ("budget_exceeded", "success")
    result, provider = resumed(store, answers, budget_usd=2)
    assert (result.status, asked(provider)) == ("success", ["z"])


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3)])
def test_a_tool_that_wants_out_fails_its_step(error: BaseException) -> None:
    """It neither ends the run nor leaves its step without a result."""

    def leave() -> None:
        raise error

    steps = [use("a", "leave", retry={"max_retries": 1}), ask("b", "a"), ask("c")]
    world = world_run(flow(*steps), tools={"leave": leave})
    assert world.statuses == {"a": "failed", "b": "skipped", "c": "success"}
    assert len(world.tools.calls) == 2
