"""What `plan` and the hover say about attempts and waits is what the engine does in the worst case."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom.analysis.effort import effort
from agentloom.core import attempt
from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data
from agentloom.errors import ProviderError
from agentloom.providers.gateway import ProviderGateway
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, ask, flow, sub

WAITS = st.sampled_from([0.5, 1.0, 2.0, 3.0, 10.0])
RETRIES = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "max_retries": st.integers(0, 4),
        "backoff_base": WAITS,
        "backoff_max": st.sampled_from([1.0, 5.0, 60.0]),
        "jitter": st.booleans(),
    },
)


def step(build: Any, retry: Any, timeout: float | None) -> Any:
    """Return a step with these settings."""
    more = {} if retry is None else {"retry": retry}
    return build(**more, **({} if timeout is None else {"timeout": timeout}))


@settings(max_examples=60, deadline=None)
@given(RETRIES, RETRIES, st.none() | st.integers(0, 3), st.none() | st.sampled_from([1.5, 4.0]), st.booleans())
def test_the_worst_case_is_what_the_engine_comes_to(
    own: Any, inner: Any, config: int | None, timeout: float | None, inside: bool
) -> None:
    """Attempts and seconds, when every call fails, every variation is the longest, and every attempt runs out of its time."""
    child = {"config": {"max_retries": config}} if config is not None else {}

    def call(**more: Any) -> Any:
        return ask("k" if inside else "a", **more)

    if inside:
        kid = step(call, inner, timeout)
        top = step(lambda **more: sub("a", steps=[kid], child=child, **more), own, None)
        data = flow(top)
    else:
        data = flow(step(call, own, timeout), config=child.get("config"))
    asked: list[float] = []

    async def fails(request: Any, on_delta: Any) -> Any:
        asked.append(anyio.current_time())
        if timeout is not None:
            await anyio.sleep_forever()
        return ProviderError("busy", status_code=503)

    async def main() -> float:
        gateway = ProviderGateway()
        gateway.register(Script({"a": fails, "a.k": fails}), max_rpm=None, max_tpm=None, circuit_fail_threshold=10**9)
        await WorkflowEngine(document, gateway).run()
        return anyio.current_time()

    document = load_data(data)
    worst = effort(document)
    found = worst.efforts["a"]
    with pytest.MonkeyPatch.context() as patch:
        *others, _ = attempt.perform.__defaults__ or ()
        patch.setattr(attempt.perform, "__defaults__", (*others, lambda: 1.0 - 1e-12))
        took = run_virtual(main)
    assert len(asked) == (found.inside if inside else found.attempts)
    running = 0.0 if timeout is None else timeout * len(asked)
    assert took == pytest.approx(found.waiting + running, rel=1e-6)
    assert worst.waits == pytest.approx(found.waiting)
    if timeout is not None:
        assert worst.total == pytest.approx(took, rel=1e-6)
