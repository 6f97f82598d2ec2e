"""Checkpoints, the journal and resume: what is kept, what a kill costs at any moment, and what runs again."""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import CheckpointData, FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import journal_of, load_run
from agentloom.core.loader import load_data
from agentloom.durable.journal import Journal, RunIsBusy, read_journal
from agentloom.durable.recorded import Spend
from agentloom.errors import CheckpointSchemaError, ProviderError, UsageError
from agentloom.providers.base import Request
from tests.engine.kept import NO, Killed, asked, gateway_for, kill, resume, run
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow, route, sub

CHAIN = flow(ask("a", output="x"), ask("b", "a", prompt="b {state.x}", output="y"), ask("c", "b"), state={"n": 1})


@pytest.fixture
def store(tmp_path: Path) -> FileCheckpointer:
    return FileCheckpointer(tmp_path / "kept")


def test_what_a_checkpoint_holds(store: FileCheckpointer) -> None:
    """CK-1, CK-2: written once, at the end, for its owner alone; the journal is gone then."""

    async def main() -> None:
        result, _ = await run(store, CHAIN)
        assert result.status == "success"
        assert os.listdir(store.folder) == ["r.json"]
        assert stat.S_IMODE(store.path("r").stat().st_mode) == 0o600
        data = json.loads(store.path("r").read_text(encoding="utf-8"))
        assert (data["workflow_name"], data["run_id"], data["status"]) == ("t", "r", "success")
        assert data["workflow_definition"]["steps"][1]["prompt"] == "b {state.x}"
        assert data["state"]["y"] == "b a"
        assert data["completed_steps"] == ["a", "b", "c"]
        assert data["step_results"]["a"]["token_usage"]["total_tokens"] == 7
        assert data["total_cost_usd"] == 1.5
        assert data["created_at"] <= data["updated_at"]

    run_virtual(main)


def test_steps_that_succeeded_keep_their_results(store: FileCheckpointer) -> None:
    """RS-1: the others run again; the file may have changed meanwhile, the spend goes on."""

    async def main() -> None:
        first, _ = await run(store, CHAIN, {"b": NO})
        assert {name: r.status for name, r in first.step_results.items()} == {
            "a": "success",
            "b": "failed",
            "c": "skipped",
        }
        second, provider = await resume(store)
        assert asked(provider) == ["b", "c"]
        assert second.status == "success"
        assert second.run_id == "r"
        assert second.final_state["y"] == "b a"
        assert second.total_cost_usd == 1.5
        again, provider = await resume(store)
        assert (again.status, asked(provider)) == ("success", [])

    run_virtual(main)


def test_a_routers_decision_is_kept(store: FileCheckpointer) -> None:
    """RS-1: a branch that it didn't take stays skipped all the way down, also when the state says otherwise now."""
    steps = [
        route("r", yes="state.n == 1", default="no"),
        ask("yes", "r"),
        ask("no", "r"),
        ask("deep", "no"),
        ask("z", "yes"),
    ]

    async def main() -> None:
        await run(store, flow(*steps, state={"n": 1}), {"z": NO})
        result, provider = await resume(store, state={"n": 2})
        assert asked(provider) == ["z"]
        assert {name: r.status for name, r in result.step_results.items()} == {
            "r": "success", "yes": "success", "no": "skipped", "deep": "skipped", "z": "success",
        }  # fmt: skip

    run_virtual(main)


def test_over_budget_goes_over_again_unless_the_limit_is_raised(store: FileCheckpointer) -> None:
    """RS-1: the new limit includes what was spent."""

    async def main() -> None:
        data = {**CHAIN, "config": {**CHAIN["config"], "budget_usd": 0.7}}
        first, _ = await run(store, data)
        assert (first.status, first.total_cost_usd) == ("budget_exceeded", 1.0)
        second, provider = await resume(store)
        assert (second.status, asked(provider)) == ("budget_exceeded", [])
        third, provider = await resume(store, budget_usd=2)
        assert (third.status, asked(provider), third.total_cost_usd) == ("success", ["c"], 1.5)

    run_virtual(main)


def test_the_runs_time_starts_over(store: FileCheckpointer) -> None:
    """RS-1."""

    async def slow(request: Request, on_delta: object) -> str:
        await anyio.sleep(8)
        return "ok"

    async def main() -> None:
        data = {**CHAIN, "config": {**CHAIN["config"], "timeout": 10}}
        first, _ = await run(store, data, {"a": slow, "b": slow})
        assert first.status == "timeout"
        second, provider = await resume(store, {"b": slow})
        assert (second.status, asked(provider)) == ("success", ["b", "c"])

    run_virtual(main)


def test_a_cancelled_run_keeps_what_was_done(store: FileCheckpointer) -> None:
    """CK-1: status `cancelled`; a step beside the running one keeps its result, so do finished steps of a child."""

    async def forever(request: Request, on_delta: object) -> str:
        await anyio.sleep_forever()
        return ""

    data = flow(
        ask("quick"), ask("slow"), sub("s", steps=[ask("k1"), ask("k2", "k1")]), ask("end", "quick", "slow", "s")
    )

    async def main() -> None:
        with anyio.move_on_after(5):
            await run(store, data, {"slow": forever, "s.k2": forever})
        saved = load_run(store, "r")
        assert saved.status == "cancelled"
        assert saved.completed_steps == ["quick"]
        result, provider = await resume(store)
        assert result.status == "success"
        assert sorted(asked(provider)) == ["end", "s.k2", "slow"]
        assert result.total_cost_usd == 2.5

    run_virtual(main)


# --- kills ---------------------------------------------------------------------------------------------------------------


BIG = flow(
    ask("a", output="x"),
    ask("b", output="y.z"),
    route("r", "a", left="state.x == 'a'", default="right"),
    ask("left", "r", output="w"),
    ask("right", "r"),
    sub(
        "s", "b", steps=[ask("k1", output="k"), ask("k2", "k1", prompt="{state.k}")], output="child", return_keys=["k"]
    ),
    ask("end", "left", "s", prompt="{state.w} {state.child.k} {state.y.z}", output="done"),
    state={"n": 1},
)
CALLS = 6


def whole_run(tmp_path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the final state of an undisturbed run, and the calls it makes."""
    result, provider = run_virtual(lambda: run(FileCheckpointer(tmp_path / "whole"), BIG))
    return json.loads(json.dumps(result.final_state)), asked(provider)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", range(CALLS))
def test_a_kill_at_every_operation(store: FileCheckpointer, tmp_path: Path, number: int, before: bool) -> None:
    """Before and after each call: what had finished isn't called again, what was running is, and the end is the same."""
    state, calls = whole_run(tmp_path)
    made: list[str] = []

    async def counted(request: Request, on_delta: object) -> str:
        if len(made) == number and before:
            raise Killed
        made.append(request.step_id)
        if len(made) == number + 1 and not before:
            raise Killed
        return request.messages[-1].content

    kill(lambda: run(store, BIG, dict.fromkeys(calls, counted)))
    saved = load_run(store, "r")
    assert saved.status == "interrupted"
    result, provider = run_virtual(lambda: resume(store))
    assert result.status == "success"
    assert json.loads(json.dumps(result.final_state)) == state
    running = set(made[number:])
    assert set(asked(provider)) & set(made) <= running
    assert set(asked(provider)) | set(made) == set(calls)
    assert sorted(os.listdir(store.folder)) == ["r.json", "r.s.json"]


def test_a_journal_cut_off_at_every_byte(store: FileCheckpointer, tmp_path: Path) -> None:
    """Never unreadable, at most the last line is lost; the run always comes to the same end."""
    state, _ = whole_run(tmp_path)

    async def killed_at_the_end(request: Request, on_delta: object) -> str:
        raise Killed

    kill(lambda: run(store, BIG, {"end": killed_at_the_end}))
    path = journal_of(store, "r")
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
    chosen = sorted({*ends, *(end - 1 for end in ends[1:]), *random.Random(1).sample(range(first, len(data)), 60)})
    for cut in range(len(data)):  # at every byte it can be read; at some of them the run goes on, which takes longer
        path.write_bytes(data[:cut])
        if cut < first:
            with pytest.raises(KeyError):  # nothing has happened yet
                load_run(store, "r")
        else:
            assert read_journal(path).length == data.rindex(b"\n", 0, cut) + 1
    for cut in chosen:
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        recorded = read_journal(path)
        assert recorded.length == len(b"".join(data.splitlines(keepends=True)[:whole]))
        result, provider = run_virtual(lambda: resume(store))
        assert result.status == "success"
        assert json.loads(json.dumps(result.final_state)) == state
        known = {name for name, found in recorded.outcomes.items() if found["status"] == "success"}
        assert set(asked(provider)).isdisjoint(known)
        store.path("r").unlink()


def test_a_resumed_run_that_is_killed_goes_on_from_there(store: FileCheckpointer) -> None:
    """Again and again: each life keeps what the ones before it did, and the spend adds up."""

    def once(name: str) -> Any:
        async def reply(request: Request, on_delta: object) -> str:
            raise Killed

        return {name: reply}

    kill(lambda: run(store, CHAIN, once("b")))
    kill(lambda: resume(store, once("c")))
    result, provider = run_virtual(lambda: resume(store))
    assert (result.status, asked(provider)) == ("success", ["c"])
    assert result.final_state["y"] == "b a"
    assert result.total_cost_usd == 1.5


def test_two_processes_cannot_run_one_run(store: FileCheckpointer) -> None:
    """The lock is the journal's, and ends with its owner."""

    async def main() -> None:
        await run(store, CHAIN, {"b": NO})
        saved = load_run(store, "r")
        held = Journal.create(journal_of(store, "r"), {"begun": ""})
        engine = await WorkflowEngine.from_checkpoint(saved, store, provider_gateway=gateway_for(Script()))
        with pytest.raises(RunIsBusy, match="run `r` is running in another process"):
            await engine.run()
        held.close(remove=True)
        result, _ = await resume(store)
        assert result.status == "success"

    run_virtual(main)


def test_a_checkpoint_that_moved_on_is_not_run_twice(store: FileCheckpointer) -> None:
    """Who read it before somebody else resumed the run is told so."""

    async def main() -> None:
        await run(store, CHAIN, {"b": NO})
        old = load_run(store, "r")
        await resume(store)
        engine = await WorkflowEngine.from_checkpoint(old, store, provider_gateway=gateway_for(Script()))
        with pytest.raises(RunIsBusy, match="resumed by another process meanwhile"):
            await engine.run()

    run_virtual(main)


def test_a_disk_that_is_full_ends_the_run_with_a_word(store: FileCheckpointer) -> None:
    """What was written until then is what a resume goes on with."""
    if not Path("/dev/full").exists():
        pytest.fail("needs a system with /dev/full")

    async def main() -> None:
        provider = Script()
        engine = WorkflowEngine(load_data(CHAIN), gateway_for(provider), checkpointer=store, run_id="r")

        async def fill(request: Request, on_delta: object) -> str:
            full = os.open("/dev/full", os.O_WRONLY)
            (journal,) = [run for run in JOURNALS if run.path == journal_of(store, "r")]
            os.dup2(full, journal._handle)
            os.close(full)
            return "b"

        provider.answers["b"] = fill
        result = await engine.run()
        assert (result.status, result.error) == ("failed", "the journal can't be written: no space left on device")
        assert asked(provider) == ["a", "b"]
        assert load_run(store, "r").status == "interrupted"
        again, provider = await resume(store)
        assert (again.status, asked(provider)) == ("success", ["b", "c"])

    claimed = Journal.claim.__func__  # type: ignore[attr-defined]

    def remember(cls: type[Journal], path: Path) -> Any:
        found = claimed(cls, path)
        JOURNALS.append(found[0])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "claim", classmethod(remember))
        run_virtual(main)


JOURNALS: list[Journal] = []


def test_idempotency_keys(store: FileCheckpointer) -> None:
    """R8: the same again after a kill in the middle, the next number after a failure; numbers count over the life of the run."""
    tries: list[int] = []

    async def busy_then_killed(request: Request, on_delta: object) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ProviderError("busy", status_code=503)
        raise Killed

    kill(lambda: run(store, CHAIN, {"b": busy_then_killed}))
    recorded = read_journal(journal_of(store, "r"))
    assert recorded.attempts == {"a": 1, "b": 2}
    assert (recorded.next_attempt("b"), recorded.next_attempt("a"), recorded.next_attempt("c")) == (2, 2, 1)
    result, _ = run_virtual(lambda: resume(store, {"b": NO}))
    assert result.status == "failed"
    assert load_run(store, "r").attempts["b"] == 2


# --- files that are none ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is no JSON, or not all of it"),
        (b'{"schema_version": 1, "workfl', "it is no JSON, or not all of it"),
        (b"[]", "it is no checkpoint: a mapping was expected"),
        (b"{}", "it is no checkpoint: `workflow_name` is missing or no text"),
        (b'{"schema_version": 99}', "it was written by a newer agentloom (schema 99, this one reads 1); upgrade first"),
        (b"\xff\xfe", "it is no JSON, or not all of it"),
    ],
)
def test_checkpoints_that_cannot_be_read(store: FileCheckpointer, content: bytes, words: str) -> None:
    """CK-3: a clear word, and nothing is overwritten."""
    store.folder.mkdir()
    store.path("r").write_bytes(content)
    with pytest.raises(CheckpointSchemaError) as caught:
        load_run(store, "r")
    assert words in str(caught.value)
    assert store.path("r").read_bytes() == content
    assert run_virtual(store.list_runs) == []


@pytest.mark.parametrize("name", ["../x", "", ".", "..", "a/b", "a b", "ä"])
def test_ids_that_are_none(store: FileCheckpointer, name: str) -> None:
    """CK-3: no way out of the folder."""
    with pytest.raises(KeyError):
        load_run(store, name)
    with pytest.raises(UsageError):
        WorkflowEngine(load_data(CHAIN), run_id=name)


# --- from Python -----------------------------------------------------------------------------------------------------------


def test_from_python_as_documented(store: FileCheckpointer) -> None:
    """RS-3: definition and state may be changed before the run goes on."""

    async def main() -> None:
        await run(store, CHAIN, {"b": NO})
        data = await store.load("r")
        data.workflow_definition["config"]["budget_usd"] = 5
        data.state["x"] = "changed"
        engine = await WorkflowEngine.from_checkpoint(data, store, provider_gateway=gateway_for(Script()))
        result = await engine.run()
        assert result.final_state["y"] == "b changed"
        assert [found.run_id for found in await store.list_runs()] == ["r"]
        await store.delete("r")
        with pytest.raises(KeyError):
            await store.load("r")

    run_virtual(main)


def test_a_store_of_ones_own() -> None:
    """RS-3: any subclass of `BaseCheckpointer`; there is no journal then."""
    from agentloom.checkpointing import BaseCheckpointer

    class Shelf(BaseCheckpointer):
        def __init__(self) -> None:
            self.kept: dict[str, CheckpointData] = {}

        async def save(self, data: CheckpointData) -> None:
            self.kept[data.run_id] = data

        async def load(self, run_id: str) -> CheckpointData:
            return self.kept[run_id]

        async def list_runs(self) -> list[CheckpointData]:
            return list(self.kept.values())

        async def delete(self, run_id: str) -> None:
            del self.kept[run_id]

    async def main() -> None:
        shelf = Shelf()
        provider = Script({"c": NO})
        await WorkflowEngine(load_data(CHAIN), gateway_for(provider), checkpointer=shelf, run_id="own").run()
        provider = Script()
        engine = await WorkflowEngine.from_checkpoint(
            await shelf.load("own"), shelf, provider_gateway=gateway_for(provider)
        )
        assert (await engine.run()).status == "success"
        assert asked(provider) == ["c"]

    run_virtual(main)


@pytest.mark.parametrize(
    ("cost", "took_ms", "synced"), [(0.0, 1.0, 0), (0.001, 1.0, 1), (0.0, 60.0, 1)], ids=["free", "paid", "slow"]
)
def test_what_is_worth_the_disk(tmp_path: Path, cost: float, took_ms: float, synced: int) -> None:
    """What cost money or time is on the disk before anything depends on it; the end of a run always is."""
    calls: list[int] = []
    journal = Journal.create(tmp_path / "r.journal", {"begun": ""})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", calls.append)
        journal.outcome("a", {"status": "success", "duration_ms": took_ms}, Spend(cost))
        journal.sync()
        assert len(calls) == synced
        journal.sync()
        assert len(calls) == synced
        journal.end("success")
        assert len(calls) == synced + 1
    journal.close()
