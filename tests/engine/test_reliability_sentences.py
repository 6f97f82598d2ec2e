"""Sentences of the documents about reliability that no other test holds: one small run each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.loader import load_data
from agentloom.errors import InvalidWorkflow, ProviderError
from agentloom.providers.base import Request
from agentloom.providers.breaker import State
from agentloom.providers.gateway import ProviderGateway
from tests.engine.kept import NO, die, kill, resume
from tests.engine.kept import run as keep
from tests.engine.virtual import run_virtual
from tests.engine.world import FAIL, Script, ask, flow, route, run, sub

BUSY = ProviderError("busy", provider="mock", status_code=503)


@pytest.fixture
def store(tmp_path: Path) -> FileCheckpointer:
    return FileCheckpointer(tmp_path / "kept")


async def forever(request: Request, on_delta: object) -> str:
    await anyio.sleep_forever()
    return ""


def test_a_negative_number_of_retries_stops_the_load() -> None:
    """On a step and in `config`."""
    for data in (flow(ask("a", retry={"max_retries": -1})), flow(ask("a"), config={"max_retries": -1})):
        with pytest.raises(InvalidWorkflow):
            load_data(data)


@pytest.mark.parametrize(
    "retry",
    [
        {"backoff_base": -2},
        {"backoff_base": 0},
        {"backoff_max": -5},
        {"backoff_base": 1e9, "backoff_max": 0},
        {"retryable_status_codes": [503, 700, -1]},
    ],
)
def test_other_odd_values_of_retry_are_not_checked(retry: dict[str, Any]) -> None:
    """The run takes them as they are; no wait is longer than the limit, or shorter than none."""
    world = run(flow(ask("a", retry={"max_retries": 2, "jitter": False, **retry})), {"a": BUSY})
    assert world.statuses == {"a": "failed"}
    assert len(world.provider.requests) == 3


def test_an_attempt_that_runs_out_of_time_is_retried_whatever_the_list_says() -> None:
    """`retryable_status_codes` is about statuses; a timeout has none."""
    retry = {"max_retries": 2, "retryable_status_codes": []}
    world = run(flow(ask("a", timeout=1, retry=retry)), {"a": forever})
    assert (world.statuses, len(world.provider.requests)) == ({"a": "timeout"}, 3)


def test_a_router_cannot_tell_that_a_step_failed() -> None:
    """Under `continue`: `steps.fetch.status` reads None, not `failed`."""
    way = route("r", "fetch", none="steps.fetch.status == None", default="other")
    world = run(
        flow(ask("fetch"), way, ask("none", "r"), ask("other", "r"), config={"on_step_failure": "continue"}),
        {"fetch": FAIL},
    )
    assert world.output("r") == "none"
    assert world.statuses == {"fetch": "failed", "r": "success", "none": "success", "other": "skipped"}


def test_a_subworkflow_retries_as_a_whole_and_a_router_never_does() -> None:
    """Every step has its own retry; what can only fail for good uses none of it."""
    retry = {"max_retries": 2, "jitter": False}
    kid = sub("s", steps=[ask("k")], child={"config": {"max_retries": 0}}, retry=retry)
    world = run(flow(kid, route("r", x="state.n.m == 1", default="x") | {"retry": retry}, ask("x", "r")), {"s.k": BUSY})
    assert len(world.provider.requests) == 3
    assert world.result.step_results["r"].attempts <= 1
    assert world.statuses == {"s": "failed", "r": "failed", "x": "skipped"}


def test_a_resumed_run_starts_with_closed_circuits(store: FileCheckpointer) -> None:
    """Five failures opened the circuit; the run that is resumed asks at once."""
    asked: list[float] = []

    async def down(request: Request, on_delta: object) -> Any:
        asked.append(anyio.current_time())
        return BUSY

    gateways: list[ProviderGateway] = []

    def protected(script: Script) -> ProviderGateway:
        gateway = ProviderGateway()
        gateway.register(script)
        gateways.append(gateway)
        return gateway

    async def main() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.engine.kept.gateway_for", protected)
            await keep(store, flow(ask("a", retry={"max_retries": 6, "backoff_base": 1, "jitter": False})), {"a": down})
            assert len(asked) == 5, "the last two attempts met an open circuit"
            assert gateways[0].state_of("mock") is State.OPEN
            result, provider = await resume(store)
        assert (result.status, len(provider.requests)) == ("success", 1)

    run_virtual(main)


def test_a_resume_that_is_killed_leaves_the_checkpoint_before_it(store: FileCheckpointer) -> None:
    """As it was, beside the journal that the next resume goes on with."""
    run_virtual(lambda: keep(store, flow(ask("a"), ask("b", "a"), ask("c", "b")), {"b": NO}))
    before = store.path("r").read_bytes()
    kill(lambda: resume(store, {"c": die}))
    assert store.path("r").read_bytes() == before


def test_a_child_that_is_cut_short_leaves_the_checkpoint_to_its_parent(store: FileCheckpointer) -> None:
    """One that came to an end of its own has its own."""
    data = flow(sub("s", steps=[ask("i")]), sub("t", steps=[ask("i"), ask("j", "i")]))

    async def main() -> None:
        with anyio.move_on_after(5):
            await keep(store, data, {"t.j": forever})

    run_virtual(main)
    assert sorted(path.name for path in store.folder.iterdir()) == ["r.json", "r.s.json"]
    assert set(store.read("r").inside) == {"t.i"}
