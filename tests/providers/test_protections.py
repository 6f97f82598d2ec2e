"""Circuit breakers and rate limits of the gateway, on a clock that jumps (GW-3, GW-4, GW-6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from agentloom.errors import CircuitOpenError, ProviderError, RateLimitError, RecordingMismatchError
from agentloom.providers.base import BaseProvider, Message, OnDelta, Request, Response, Usage
from agentloom.providers.breaker import State
from agentloom.providers.gateway import ProviderGateway
from tests.engine.virtual import run_virtual
from tests.engine.world import ask as step
from tests.engine.world import flow, run

Main = Callable[[], Awaitable[None]]


class Moody(BaseProvider):
    """A provider whose next answers are told beforehand: errors are raised, numbers are seconds that the answer takes."""

    def __init__(self, name: str = "one") -> None:
        self.name = name
        self.moods: list[Any] = []
        self.times: list[float] = []
        self.reply_tokens = 0

    def serves(self, model: str) -> bool:
        return True

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        self.times.append(anyio.current_time())
        mood = self.moods.pop(0) if self.moods else 0
        if isinstance(mood, Exception):
            raise mood
        await anyio.sleep(mood)
        return Response("ok", "m", self.name, Usage(completion_tokens=self.reply_tokens))

    async def close(self) -> None:
        """Hold nothing."""


def error(status: int | None = None, **more: Any) -> ProviderError:
    return ProviderError("no", provider="one", status_code=status, **more)


def request(characters: int = 0) -> Request:
    return Request("m", [Message("user", "x" * characters)], step_id="s")


async def call(gateway: ProviderGateway, *, characters: int = 0) -> str:
    """Return what came of a call: its reply, or the name of the error."""
    try:
        return (await gateway.complete(request(characters))).content
    except ProviderError as failure:
        return type(failure).__name__


def gateway_of(*providers: Moody, **options: Any) -> ProviderGateway:
    gateway = ProviderGateway()
    for provider in providers:
        gateway.register(provider, **{"max_rpm": None, "max_tpm": None, **options})
    return gateway


def test_five_failures_in_a_row_open_the_circuit() -> None:
    """For 60 seconds nobody is asked; then one call tries, and closes it or opens it again."""

    async def main() -> None:
        moody = Moody()
        gateway = gateway_of(moody)
        moody.moods = [error(500)] * 5
        assert [await call(gateway) for _ in range(6)] == ["ProviderError"] * 5 + ["CircuitOpenError"]
        assert len(moody.times) == 5
        assert gateway.state_of("one") is State.OPEN
        await anyio.sleep(59.9)
        assert await call(gateway) == "CircuitOpenError"
        await anyio.sleep(0.1)
        assert gateway.state_of("one") is State.HALF_OPEN
        moody.moods = [error(500)]
        assert [await call(gateway) for _ in range(2)] == ["ProviderError", "CircuitOpenError"]
        await anyio.sleep(60)
        assert [await call(gateway) for _ in range(3)] == ["ok"] * 3
        assert gateway.state_of("one") is State.CLOSED

    run_virtual(main)


def test_one_call_tries_at_a_time() -> None:
    """Others are kept away while it is on its way; a call that is called off frees the place."""

    async def main() -> None:
        moody = Moody()
        gateway = gateway_of(moody, circuit_fail_threshold=1, circuit_reset_timeout=5)
        moody.moods = [error(500)]
        await call(gateway)
        await anyio.sleep(5)
        moody.moods = [1000]
        with anyio.move_on_after(1):
            async with anyio.create_task_group() as group:
                group.start_soon(call, gateway)
                await anyio.sleep(0.5)
                assert await call(gateway) == "CircuitOpenError"
        assert gateway.state_of("one") is State.HALF_OPEN
        assert await call(gateway) == "ok"

    run_virtual(main)


@pytest.mark.parametrize(
    "failure",
    [
        error(429),
        error(429, retry_after=3),
        error(400),
        error(401),
        error(404),
        error(permanent=True),
        RecordingMismatchError("miss", provider="one"),
    ],
)
def test_what_does_not_count(failure: ProviderError) -> None:
    """429, requests that a provider can't take, replay misses: eight of them, and the provider is still asked."""

    async def main() -> None:
        moody = Moody()
        moody.moods = [failure] * 8
        gateway = gateway_of(moody)
        for _ in range(8):
            await call(gateway)
        assert gateway.state_of("one") is State.CLOSED
        assert await call(gateway) == "ok"

    run_virtual(main)


@pytest.mark.parametrize("between", [error(429), error(400), error(401), error(permanent=True)])
def test_what_does_not_count_breaks_no_row(between: ProviderError) -> None:
    """Neither is it a success: five failures are in a row with such answers between them; and it closes no circuit."""

    async def main() -> None:
        moody = Moody()
        moody.moods = [error(500)] * 4 + [between] * 3 + [error(500)]
        gateway = gateway_of(moody)
        for _ in range(8):
            await call(gateway)
        assert gateway.state_of("one") is State.OPEN
        await anyio.sleep(60)
        moody.moods = [between]
        await call(gateway)
        assert gateway.state_of("one") is State.HALF_OPEN
        assert await call(gateway) == "ok"
        assert gateway.state_of("one") is State.CLOSED

    run_virtual(main)


@pytest.mark.parametrize("failure", [error(500), error(503), error(408), error(None)])
def test_what_counts(failure: ProviderError) -> None:
    """Errors of the server, and no answer at all; a success in between starts the count again."""

    async def main() -> None:
        moody = Moody()
        moody.moods = [failure] * 4 + [0] + [failure] * 5
        gateway = gateway_of(moody)
        for _ in range(9):
            await call(gateway)
        assert gateway.state_of("one") is State.CLOSED
        await call(gateway)
        assert gateway.state_of("one") is State.OPEN

    run_virtual(main)


def test_calls_go_to_the_next_provider_meanwhile() -> None:
    """The open circuit is skipped, and has no say in the status of the failure."""

    async def main() -> None:
        one, other = Moody("one"), Moody("other")
        gateway = gateway_of(one, other, circuit_fail_threshold=2)
        one.moods = [error(500)] * 2
        assert [await call(gateway) for _ in range(4)] == ["ok"] * 4
        assert (len(one.times), len(other.times)) == (2, 4)
        other.moods = [error(400)]
        with pytest.raises(ProviderError) as caught:
            await gateway.complete(request())
        assert caught.value.status_code == 400

    run_virtual(main)


def test_an_open_circuit_is_transient_for_the_step() -> None:
    """The step goes on retrying until its retries run out; other steps are not asked meanwhile."""
    busy = error(500)
    retry = {"max_retries": 5, "backoff_base": 3, "backoff_max": 61, "jitter": False}
    world = run(flow(step("a", retry=retry)), {"a": busy}, protected=True)
    assert world.statuses == {"a": "failed"}
    assert len(world.provider.requests) == 5 + 1  # five open it, the sixth comes after more than a minute


def test_requests_a_minute() -> None:
    """As many as the limit at once, then one after the other in the order in which they came."""

    async def main() -> None:
        moody = Moody()
        gateway = gateway_of(moody, max_rpm=6)
        async with anyio.create_task_group() as group:
            for _ in range(9):
                group.start_soon(call, gateway)
        assert moody.times == pytest.approx([0] * 6 + [10, 20, 30])

    run_virtual(main)


def test_tokens_a_minute() -> None:
    """Four characters are a token; the reply's tokens are taken afterwards, and those who come later wait for them."""

    async def main() -> None:
        moody = Moody()
        moody.reply_tokens = 300
        gateway = gateway_of(moody, max_tpm=600)
        assert await call(gateway, characters=1200) == "ok"  # 300 tokens, and 300 for the reply: the bucket is empty
        assert await call(gateway, characters=400) == "ok"  # 100 tokens take ten seconds
        assert moody.times == pytest.approx([0, 10])

    run_virtual(main)


def test_a_request_larger_than_the_limit() -> None:
    """An error that no attempt cures, not a wait; it says nothing about the provider."""

    async def main() -> None:
        moody = Moody()
        gateway = gateway_of(moody, max_tpm=100)
        for _ in range(6):
            with pytest.raises(RateLimitError, match="has about 101 tokens, more than the 100 a minute") as caught:
                await gateway.complete(request(401))
            assert caught.value.permanent
        assert moody.times == []
        assert gateway.state_of("one") is State.CLOSED
        assert anyio.current_time() == 0

    run_virtual(main)


def test_who_gives_up_waiting_leaves_the_others_their_place() -> None:
    """A cancelled wait takes nothing."""

    async def main() -> None:
        moody = Moody()
        gateway = gateway_of(moody, max_rpm=1)
        await call(gateway)
        with anyio.move_on_after(5):
            await call(gateway)
        await call(gateway)
        assert moody.times == pytest.approx([0, 60])

    run_virtual(main)


def test_calls_at_once() -> None:
    """As many as the limit, the others when one of them has ended, however it did: answered, failed or called off."""

    async def main() -> None:
        moody = Moody()
        moody.moods = [10, error(400), 20, 1000]
        gateway = gateway_of(moody, max_concurrent=2)
        with anyio.move_on_after(50):
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(call, gateway)
        assert moody.times == pytest.approx([0, 0, 0, 10])
        for _ in range(3):
            await call(gateway)
        assert moody.times[4:] == pytest.approx([50, 50, 50])

    run_virtual(main)


def test_who_gives_up_waiting_for_a_slot_takes_none() -> None:
    """Nor a share of the rate."""

    async def main() -> None:
        moody = Moody()
        moody.moods = [100]
        gateway = gateway_of(moody, max_concurrent=1, max_rpm=2)
        async with anyio.create_task_group() as group:
            group.start_soon(call, gateway)
            await anyio.sleep(1)
            with anyio.move_on_after(5):
                await call(gateway)
            group.start_soon(call, gateway)
        assert moody.times == pytest.approx([0, 100])

    run_virtual(main)


def test_an_open_circuit_is_told_by_name() -> None:
    """With the number of failures."""

    async def main() -> None:
        moody = Moody()
        moody.moods = [error(500)] * 5
        gateway = gateway_of(moody)
        for _ in range(5):
            await call(gateway)
        with pytest.raises(CircuitOpenError, match="Provider 'one': circuit open after 5 failures in a row"):
            await gateway.complete(request())

    run_virtual(main)
