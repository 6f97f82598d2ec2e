"""Retries, waits and fallback against real HTTP servers, on a clock that jumps whenever no server is about to answer; once in real time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data
from agentloom.core.results import WorkflowResult
from agentloom.providers.base import BaseProvider, OnDelta, Request, Response
from agentloom.providers.gateway import ProviderGateway
from agentloom.providers.openai import OpenAIProvider
from agentloom.providers.secret import Secret
from agentloom.providers.table import BY_NAME
from tests.cli.conftest import start as start  # a fixture
from tests.engine.virtual import run_beside_servers
from tests.engine.world import ask, flow
from tests.wire.server import KEY, REPLY, WireServer


class Clocked(BaseProvider):
    """A real client of a real server; keeps when each call began, and how many are on their way."""

    def __init__(self, server: WireServer, name: str = "openai") -> None:
        self.name = name
        self.server = server
        self.client = OpenAIProvider(server.url, name=name, spec=BY_NAME[name], key=Secret(KEY))
        self.times: list[float] = []
        self.under_way = 0
        self.held = 0

    @property
    def is_busy(self) -> bool:
        """Whether an answer is about to come: not one that the server holds back."""
        return self.under_way > 0 and self.server.holding <= self.held

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Ask the server."""
        self.times.append(anyio.current_time())
        self.held = self.server.holding
        self.under_way += 1
        try:
            return await self.client.complete(request, on_delta)
        finally:
            self.under_way -= 1

    async def close(self) -> None:
        """Close the client."""
        await self.client.close()


def played(data: Any, *providers: Clocked) -> tuple[WorkflowResult, float]:
    """Run a workflow on real servers; return its result, and how long it took on the clock."""
    gateway = ProviderGateway()
    for priority, provider in enumerate(providers):
        gateway.register(provider, priority, max_rpm=None, max_tpm=None)

    async def main() -> tuple[WorkflowResult, float]:
        result = await WorkflowEngine(load_data(data), gateway).run()
        took = anyio.current_time()
        await gateway.close()
        return result, took

    return run_beside_servers(main, lambda: any(provider.is_busy for provider in providers))


def one(retry: Any = None, **more: Any) -> dict[str, Any]:
    """Return a workflow of one call, with waits that don't vary."""
    return flow(
        ask("a", retry={"jitter": False, **(retry or {})}, **more),
        config={"provider": "openai", "model": "gpt-4o-mini"},
    )


@pytest.mark.parametrize(
    ("modes", "retry", "times"),
    [
        (["503", "500", "504", "ok"], {}, [0, 2, 6, 14]),
        (["429", "429", "429", "ok"], {"backoff_base": 3, "backoff_max": 10}, [0, 3, 12, 22]),
        (["429/7", "ok"], {}, [0, 7]),
        (["429/1", "ok"], {}, [0, 2]),
        (["503/date", "ok"], {}, [0, 30]),
        (["429/7", "503", "429/9", "ok"], {}, [0, 7, 11, 20]),
        (["429/500", "ok"], {}, [0, 60]),
        (["429/500", "ok"], {"backoff_max": 90}, [0, 90]),
        (["reset", "close", "not-http", "ok"], {}, [0, 2, 6, 14]),
        (["cut-body", "ok"], {}, [0, 2]),
        (["529", "ok"], {"retryable_status_codes": [529]}, [0, 2]),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, list) else "",
)  # fmt: skip
def test_the_documented_waits(modes: Sequence[str], retry: Any, times: Sequence[float]) -> None:
    """The base, its square, its cube, up to the limit; Retry-After where it is longer, up to the limit as well (RT, GW-5)."""
    with WireServer(*modes) as server:
        provider = Clocked(server)
        result, _ = played(one(retry), provider)
        assert provider.times == pytest.approx(times)
        assert len(server.requests) == len(times)
        assert (result.status, result.step_results["a"].output) == ("success", REPLY)
        keys = {request.headers["idempotency-key"] for request in server.requests}
        assert len(keys) == len(times), "another one for every attempt after a failure"


@pytest.mark.parametrize("mode", ["400", "401", "403", "404", "422", "408", "529"])
def test_a_status_that_is_not_listed_is_asked_once(mode: str) -> None:
    """Case: 401 and 400 are permanent: one request."""
    with WireServer(mode) as server:
        result, took = played(one(), Clocked(server))
        assert (result.status, len(server.requests), took) == ("failed", 1, 0)
        assert result.step_results["a"].error_classification == "permanent"


def test_a_server_that_flaps() -> None:
    """500s between successes: each step waits for itself, and no circuit opens, since five in a row never come."""
    modes = ["500", "ok", "500", "500", "ok", "500", "500", "500", "ok"]
    steps = [
        ask("a", retry={"jitter": False}),
        ask("b", "a", retry={"jitter": False}),
        ask("c", "b", retry={"jitter": False}),
    ]
    with WireServer(*modes) as server:
        provider = Clocked(server)
        result, _ = played(flow(*steps, config={"provider": "openai", "model": "gpt-4o-mini"}), provider)
        assert result.status == "success"
        assert provider.times == pytest.approx([0, 2, 2, 4, 8, 8, 10, 14, 22])


def test_a_server_that_is_down_for_a_while() -> None:
    """GW-3: five failures open the circuit for a minute; attempts meanwhile ask nobody, and one call tries it then."""
    with WireServer(*["500"] * 5, "ok") as server:
        provider = Clocked(server)
        result, took = played(one({"max_retries": 7}), provider)
        # Attempts at 0, 2, 6, 14, 30; at 62 the circuit is open until 90; the next one is the wait's limit of 60 later.
        assert provider.times == pytest.approx([0, 2, 6, 14, 30, 122])
        assert (result.status, took) == ("success", 122)


def test_a_body_that_takes_too_long() -> None:
    """TM-1: the step's time ends an attempt that hangs in the middle of an answer, and the next one is quicker."""
    with WireServer("slow-body", "slow", "ok") as server:
        provider = Clocked(server)
        result, took = played(one(timeout=5), provider)
        assert provider.times == pytest.approx([0, 7, 16])
        assert (result.status, took) == ("success", 16)


def test_a_provider_that_never_answers() -> None:
    """PR-6: after sixty seconds of silence the call is given up, without a status, so it is tried again."""
    with WireServer("slow", "ok") as server:
        provider = Clocked(server)
        result, took = played(one(), provider)
        assert result.status == "success"
        assert provider.times == pytest.approx([0, 62])
        assert took == pytest.approx(62)


def two(first: WireServer, second: WireServer) -> tuple[Clocked, Clocked]:
    """Return two providers that serve the same models."""
    return Clocked(first), Clocked(second, "generic_openai")


def test_the_other_provider_answers_at_once() -> None:
    """Case: a 500 tries the next provider, without a wait; after five the first is left alone (GW-1, GW-3)."""
    steps = [ask("s1"), *(ask(f"s{at}", f"s{at - 1}") for at in range(2, 9))]
    with WireServer("500") as first, WireServer("ok") as second:
        result, took = played(flow(*steps, config={"provider": "openai", "model": "gpt-4o-mini"}), *two(first, second))
        assert (result.status, took) == ("success", 0)
        assert (len(first.requests), len(second.requests)) == (5, 8)
        assert {step.provider for step in result.step_results.values()} == {"generic_openai"}


@pytest.mark.parametrize(
    ("one_says", "other_says", "waited"), [("429/30", "429/9", 9), ("429/30", "503", 30), ("429/1", "429/50", 2)]
)
def test_the_soonest_of_two_counts(one_says: str, other_says: str, waited: float) -> None:
    """GW-5: of two providers that refuse, the one that may be asked first."""
    with WireServer(one_says, "ok") as first, WireServer(other_says, "ok") as second:
        providers = two(first, second)
        result, took = played(one(), *providers)
        assert (result.status, took) == ("success", waited)
        assert (len(first.requests), len(second.requests)) == (2, 1)


def test_two_providers_that_disagree_have_no_status() -> None:
    """GW-1: 400 here and 500 there is an error without a status, so it is tried again."""
    with WireServer("400", "ok") as first, WireServer("500") as second:
        result, took = played(one(), *two(first, second))
        assert (result.status, took) == ("success", 2)


def test_in_real_time(tmp_path: Path, start: Any) -> None:
    """The whole program against a server that asks for a second's patience: the run takes that long, and the log says so."""
    step = {"id": "a", "type": "llm_call", "prompt": "hi", "retry": {"backoff_base": 0.01, "jitter": False}}
    config = {"provider": "openai", "model": "gpt-4o-mini"}
    (tmp_path / "flow.yaml").write_text(json.dumps({"name": "w", "config": config, "steps": [step]}), encoding="utf-8")
    with WireServer("429/1", "503", "ok") as server:
        env = {"OPENAI_BASE_URL": server.host, "OPENAI_API_KEY": KEY}
        child = start(
            "run", "flow.yaml", "--json", cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err.decode()
        assert len(server.requests) == 3
    result = json.loads(out)
    assert result["step_results"]["a"]["output"] == REPLY
    assert result["total_duration_ms"] >= 1000
    assert b"Step 'a' failed (attempt 1/4), retrying in 1.0s" in err
    assert b"Step 'a' failed (attempt 2/4), retrying in 0.0s" in err
