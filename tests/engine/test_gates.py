"""Approval gates: pausing, deciding, deadlines, several of them, and gates inside child workflows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import journal_of, load_run
from agentloom.core.loader import load_data
from agentloom.core.results import WorkflowResult
from agentloom.durable.journal import Journal
from agentloom.errors import ProviderError
from tests.engine.kept import asked, gateway_for, run
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow, route, sub

LONG_AGO = "2020-01-01T00:00:00+00:00"


def gate(id: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "approval_gate", "depends_on": list(after), **more}


async def decide(
    store: FileCheckpointer, decisions: Mapping[str, str] | None = None, since: str | None = None
) -> tuple[WorkflowResult, Script]:
    """Go on with the run `r`, with decisions about gates; ``since`` makes them wait for longer."""
    provider = Script()
    saved = load_run(store, "r")
    if since is not None:
        saved.paused_since = dict.fromkeys(saved.paused_since, since)
    engine = await WorkflowEngine.from_checkpoint(
        saved, store, provider_gateway=gateway_for(provider), approval_decisions=decisions
    )
    return await engine.run(), provider


@pytest.fixture
def store(tmp_path: Path) -> FileCheckpointer:
    return FileCheckpointer(tmp_path / "kept")


FLOW = flow(
    ask("draft"),
    ask("beside"),
    gate("ok", "draft", output="verdict"),
    route("r", "ok", send="state.verdict == 'approved'", default="drop"),
    ask("send", "r"),
    ask("drop", "r"),
    ask("later", "beside"),
)


@pytest.mark.parametrize(("decision", "then"), [("approved", "send"), ("rejected", "drop")])
def test_a_gate_pauses_the_run_and_passes_the_decision_on(store: FileCheckpointer, decision: str, then: str) -> None:
    """AG-1: the layer's other steps finish; the gate succeeds either way, and its output is the decision."""

    async def main() -> None:
        first, provider = await run(store, FLOW)
        assert (first.status, first.error) == ("paused", None)
        assert {name: r.status for name, r in first.step_results.items()} == {
            "draft": "success", "beside": "success", "ok": "paused", "later": "success",
        }  # fmt: skip
        saved = load_run(store, "r")
        assert (saved.status, saved.paused_step_id) == ("paused", "ok")
        second, provider = await decide(store, {"ok": decision})
        assert second.status == "success"
        assert second.final_state["verdict"] == decision
        assert asked(provider) == [then]

    run_virtual(main)


def test_without_a_decision_it_pauses_again(store: FileCheckpointer) -> None:
    """AG-1: and waits since the first time."""

    async def main() -> None:
        await run(store, FLOW)
        since = load_run(store, "r").paused_since
        result, provider = await decide(store)
        assert (result.status, asked(provider)) == ("paused", [])
        assert load_run(store, "r").paused_since == since

    run_virtual(main)


def test_several_gates_in_one_layer_need_one_resume_each(store: FileCheckpointer) -> None:
    """AG-1."""

    async def main() -> None:
        await run(store, flow(gate("one"), gate("two"), ask("end", "one", "two")))
        first = load_run(store, "r").paused_step_id
        assert first == "one"
        result, _ = await decide(store, {"one": "approved"})
        assert result.status == "paused"
        assert load_run(store, "r").paused_step_id == "two"
        result, provider = await decide(store, {"two": "rejected"})
        assert (result.status, asked(provider)) == ("success", ["end"])

    run_virtual(main)


@pytest.mark.parametrize(
    ("on_timeout", "status", "output"),
    [("approve", "success", "approved"), ("reject", "success", "rejected"), (None, "failed", None)],
)
def test_a_gate_that_nobody_decides(
    store: FileCheckpointer, on_timeout: str | None, status: str, output: str | None
) -> None:
    """AG-2: past `timeout_seconds` it takes `on_timeout`, or fails for good; not before."""
    more = {} if on_timeout is None else {"on_timeout": on_timeout}

    async def main() -> None:
        await run(store, flow(gate("g", timeout_seconds=60, **more), ask("end", "g")))
        assert (await decide(store))[0].status == "paused"
        result, _ = await decide(store, since=LONG_AGO)
        step = result.step_results["g"]
        assert (step.status, step.output) == (status, output)
        if status == "failed":
            assert (step.error, step.error_classification) == ("nobody decided within 60 s", "permanent")

    run_virtual(main)


def test_a_decision_that_is_none(store: FileCheckpointer) -> None:
    """AG-2: permanent."""

    async def main() -> None:
        await run(store, flow(gate("g")))
        result, _ = await decide(store, {"g": "maybe"})
        step = result.step_results["g"]
        assert (step.status, step.error_classification) == ("failed", "permanent")
        assert step.error == "`maybe` is no decision; a gate takes `approved` or `rejected`"

    run_virtual(main)


def test_a_decision_may_stand_in_the_state(store: FileCheckpointer) -> None:
    """AG-3."""

    async def main() -> None:
        result, _ = await run(store, flow(gate("g"), state={"_approval": {"g": "approved"}}))
        assert result.step_results["g"].output == "approved"

    run_virtual(main)


def test_a_gate_inside_a_child(store: FileCheckpointer) -> None:
    """SW-6: the parent pauses as `sub.gate`; what the child had done is kept."""
    child = [ask("k1", output="k"), gate("g", "k1", output="said"), ask("k2", "g", prompt="{state.k} {state.said}")]

    async def main() -> None:
        first, _ = await run(store, flow(sub("s", steps=child, output="out"), ask("end", "s")))
        assert first.status == "paused"
        assert {name: r.status for name, r in first.step_results.items()} == {"s": "paused"}
        assert load_run(store, "r").paused_step_id == "s.g"
        second, provider = await decide(store, {"s.g": "approved"})
        assert second.status == "success"
        assert asked(provider) == ["s.k2", "end"]
        assert provider.prompts()["s.k2"] == "k1 approved"
        assert second.total_cost_usd == 1.5

    run_virtual(main)


def test_pausing_outranks_everything(store: FileCheckpointer) -> None:
    """SS-1: over budget and failed, too, the run waits; a retry is no cure for waiting."""

    async def main() -> None:
        data = flow(gate("g", retry={"max_retries": 3}), ask("bad"), ask("end", "g"), config={"budget_usd": 1})
        result, _ = await run(store, data, {"bad": ProviderError("no", status_code=400)})
        assert result.status == "paused"
        assert {name: r.status for name, r in result.step_results.items()} == {"g": "paused", "bad": "failed"}

    run_virtual(main)


def test_a_child_keeps_a_checkpoint_of_its_own(store: FileCheckpointer) -> None:
    """SW-6: `<run>.<step>.json`, when it pauses and when it ends; a part of its run, and no run."""
    child = [ask("k1", output="k"), gate("g", "k1")]
    inner = sub("in", steps=[ask("deep")])
    data = flow(sub("s", steps=child, child={"state": {"token": "hunter2"}}), sub("t", steps=[inner]))

    async def main() -> None:
        await run(store, {**data, "state_schema": {"token": {"redact": True}}})
        assert sorted(store.run_ids()) == ["r", "r.s", "r.t", "r.t.in"]
        part = store.read("r.s")
        assert (part.status, part.paused_step_id, part.part_of) == ("paused", "g", "r")
        assert (part.workflow_name, part.completed_steps) == ("kid", ["k1"])
        assert [step["id"] for step in part.workflow_definition["steps"]] == ["k1", "g"]
        assert part.state["k"] == "k1"
        assert part.state["token"].startswith("<REDACTED:")
        assert (store.read("r.t.in").status, store.read("r.t.in").part_of) == ("success", "r")
        assert store.read("r").part_of is None
        await decide(store, {"s.g": "approved"})
        assert store.read("r.s").status == "success"

    run_virtual(main)


def test_a_child_that_is_cut_short_leaves_the_checkpoint_to_its_parent(store: FileCheckpointer) -> None:
    """SW-6: by the parent's money here; one that is over its own money has ended by itself."""

    async def main() -> None:
        steps = [ask("k1"), ask("k2", "k1")]
        await run(store, flow(sub("s", steps=steps), config={"budget_usd": 0.4}))
        assert store.run_ids() == ["r"]
        await run(store, flow(sub("s", steps=steps, child={"config": {"budget_usd": 0.4}})))
        assert store.run_ids() == ["r", "r.s"]
        assert store.read("r.s").status == "budget_exceeded"

    run_virtual(main)


@pytest.mark.parametrize("killed", [False, True])
def test_a_part_takes_the_place_of_no_run(store: FileCheckpointer, killed: bool) -> None:
    """Somebody may have called a run as the part of another one is called: by its checkpoint, or its journal if it was killed."""

    async def main() -> None:
        other = load_data(flow(ask("x")))
        await WorkflowEngine(other, gateway_for(Script()), checkpointer=store, run_id="r.s").run()
        if killed:
            journal = Journal.create(journal_of(store, "r.s"), {"run_id": "r.s", "begun": ""})
            journal.close()
            store.path("r.s").unlink()
        before = store.run_ids()
        await run(store, flow(sub("s", steps=[ask("k")])))
        parts = [store.read(name) for name in store.run_ids() if name not in (*before, "r")]
        assert [(part.part_of, list(part.step_results)) for part in parts] == [("r", ["k"])]
        assert (before == []) is killed
        if not killed:
            assert list(store.read("r.s").step_results) == ["x"]

    run_virtual(main)


def test_steps_with_odd_names_have_checkpoints_too(store: FileCheckpointer) -> None:
    """SW-6: a name that no file should have is replaced, and stays unlike others."""

    async def main() -> None:
        await run(store, flow(sub("größe", steps=[ask("k")]), sub("a-b", steps=[ask("k")])))
        parts = [run_id for run_id in store.run_ids() if run_id != "r"]
        assert parts[0] == "r.a-b"
        assert parts[1].startswith("r.gr__e-")
        assert [step["id"] for step in store.read(parts[1]).workflow_definition["steps"]] == ["k"]

    run_virtual(main)
