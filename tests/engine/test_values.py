"""Results whose value in the state is another than their output: a text that was parsed, or a text that tells of a value."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core import engine
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import StepFinished
from agentloom.core.keeping import load_run
from agentloom.core.kinds import Executor
from agentloom.core.loader import load_data
from agentloom.core.redaction import sentinel
from agentloom.core.results import StepResult, WorkflowResult, result_of
from agentloom.errors import ProviderError
from agentloom.language.paths import MISSING
from agentloom.providers.gateway import ProviderGateway
from agentloom.steps.table import BY_TYPE
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow, play, route, sub

RAW = '```json\n{"kind": "refund", "token": "hunter2"}\n```'
SUMMARY = "one reply"
PARSED = {"kind": "refund", "token": "hunter2"}
CHECK = route("check", "a", default="c", b="state.reply.kind == 'refund'")
CHAIN = flow(ask("a", output="reply"), CHECK, ask("b", "check", prompt="{state.reply.kind}"), ask("c", "check"))


@pytest.fixture(params=[False, True], ids=["parsed", "summarized"])
def summarizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Make every model call give a text and, where the text is JSON, its value; the output is a text about it in the second round."""
    real = BY_TYPE["llm_call"]
    text = SUMMARY if request.param else RAW

    async def run(*args: Any) -> StepResult:
        assert real.run is not None
        result = await real.run(*args)
        return replace(result, output=text, value=PARSED) if result.output == RAW else result

    executor = Executor(type="llm_call", reads=real.reads, run=run, summarizes=request.param)
    monkeypatch.setattr(engine, "BY_TYPE", {**BY_TYPE, "llm_call": executor})
    return cast("bool", request.param)


def play_it(data: Any, **options: Any) -> Any:
    async def main() -> Any:
        return await play(data, {"a": RAW, "kid.a": RAW}, **options)

    return run_virtual(main)


def test_the_state_gets_the_value_and_the_result_keeps_the_text(summarizes: bool) -> None:
    """LC-6, EM-1: later steps read the value; the output in the result and in events is the text."""
    world = play_it(CHAIN)
    result: WorkflowResult = world.result
    assert world.statuses == {"a": "success", "check": "success", "b": "success", "c": "skipped"}
    text = SUMMARY if summarizes else RAW
    assert world.output("a") == text
    assert result.final_state["reply"] == PARSED
    assert result.final_state["steps"]["a"] == {"output": SUMMARY if summarizes else PARSED, "status": "success"}
    assert world.output("b") == "refund"
    assert (result.to_dict()["step_results"]["a"]["value"], "value" in result.to_dict()["step_results"]["b"]) == (
        PARSED,
        False,
    )
    told = [event for event in world.events if isinstance(event, StepFinished) and event.step == "a"]
    assert [event.to_json()["output"] for event in told] == [text]
    assert "value" not in told[0].to_json()


def test_a_value_may_be_null() -> None:
    """A value that is null is another thing than none; both come back from JSON."""
    for value in (None, [], MISSING):
        result = result_of(json.loads(json.dumps(StepResult("a", "success", output="x", value=value).to_dict())))
        assert (result.value, result.written) == (value, "x" if value is MISSING else value)


def test_a_resumed_run_knows_the_value(summarizes: bool, tmp_path: Path) -> None:
    """RS-1: from the checkpoint of a run that failed later, and from the journal of one that was killed."""
    store = FileCheckpointer(tmp_path)
    data = flow(
        ask("a", output="reply"),
        ask("b", "a", prompt="{state.reply.kind} {state.steps.a.output}", retry={"max_retries": 0}),
    )

    class Killed(BaseException):
        pass

    async def kill(request: Any, on_delta: object) -> str:
        raise Killed

    async def main() -> None:
        def gateway(**answers: Any) -> ProviderGateway:
            made = ProviderGateway()
            made.register(Script(answers))
            return made

        for end in (ProviderError("no", status_code=400), kill):
            failing = WorkflowEngine(load_data(data), gateway(a=RAW, b=end), checkpointer=store, run_id="r")
            with contextlib.suppress(Killed):
                await failing.run()
            again = await WorkflowEngine.from_checkpoint(load_run(store, "r"), store, gateway())
            result = await again.run()
            assert result.status == "success"
            assert result.final_state["reply"] == PARSED
            shown = SUMMARY if summarizes else json.dumps(PARSED, separators=(",", ":"))
            assert result.step_results["b"].output == f"refund {shown}"
            assert result.step_results["a"].written == PARSED
            store.path("r").unlink()

    run_virtual(main)


@pytest.mark.parametrize("names", [["reply"], ["reply.token"], ["token"]])
def test_a_secret_in_the_value_makes_the_text_one(summarizes: bool, names: list[str], tmp_path: Path) -> None:
    """RD-3: the text holds what its value holds: in results, events, the checkpoint and the journal; children inherit."""
    store = FileCheckpointer(tmp_path)
    schema = {name: {"redact": True} for name in names}
    inner = ask("a", output="reply")
    child = sub("kid", "a", steps=[inner], output="below", child={"state_schema": schema})
    data = flow(ask("a", output="reply"), child, state_schema=schema)
    world = play_it(data, checkpointer=store, run_id="r")
    result = world.result
    assert result.status == "success"
    written = store.path("r").read_text(encoding="utf-8")
    inside = store.path("r.kid").read_text(encoding="utf-8")
    events = json.dumps([event.to_json() for event in world.events])
    for text in (json.dumps(result.to_dict()), written, inside, events):
        assert "hunter2" not in text
    assert result.step_results["a"].output == sentinel(SUMMARY if summarizes else RAW)
    assert result.final_state["reply"]["token"] == sentinel("hunter2")


def test_an_output_path_that_is_refused_leaves_no_value(summarizes: bool) -> None:
    """The merge is where a sibling's write shows; the step fails and keeps neither text nor value."""
    world = play_it(flow(ask("b", output="x"), ask("a", output="x.y")))
    assert sorted(world.statuses.values()) == ["failed", "success"]
    for result in world.result.step_results.values():
        assert result.status == "success" or (result.output is None and result.value is MISSING)
