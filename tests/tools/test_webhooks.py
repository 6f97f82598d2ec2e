"""Webhooks: three tries within five seconds, on a clock that jumps."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from agentloom.tools.addresses import Reach
from agentloom.tools.webhooks import Delivery, Webhook, deliver
from tests.engine.virtual import run_virtual

URL = "https://hooks.example.com/secret"


def hook(url: str = URL, timeout: float = 30, **headers: str) -> Webhook:
    return Webhook(url, b"{}", headers, timeout)


def send(
    answers: Sequence[int | Exception | float], webhook: Webhook | None = None, within: float = 5.0
) -> tuple[Delivery, list[float], float]:
    """Deliver to a server that gives these answers, a float is a silence in seconds; return the times of the tries and of the end."""
    times: list[float] = []

    async def main() -> tuple[Delivery, list[float], float]:
        async def post(webhook: Webhook, reach: Reach, left: float) -> int:
            times.append(anyio.current_time())
            answer = answers[len(times) - 1]
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, float):
                await anyio.sleep(answer)
                return 200
            return answer

        delivery = await deliver(webhook or hook(), Reach("webhook"), within, post)
        return delivery, times, anyio.current_time()

    return run_virtual(main)


@pytest.mark.parametrize(
    ("answers", "status", "code", "times"),
    [
        ([200], "delivered", 200, [0]),
        ([204], "delivered", 204, [0]),
        ([500, 202], "delivered", 202, [0, 2]),
        ([OSError("can't connect"), 429, 200], "delivered", 200, [0, 2, 4]),
        ([500, 503, 500], "failed", 500, [0, 2, 4]),
        ([404], "failed", 404, [0]),
        ([302], "failed", 302, [0]),
        ([OSError("a"), OSError("b"), OSError("c")], "failed", None, [0, 2, 4]),
    ],
)
def test_tries_and_waits(
    answers: list[int | Exception | float], status: str, code: int | None, times: list[float]
) -> None:
    """WH-1: two seconds, then up to four, cut so that the third try comes before five are over; what no try cures isn't tried again."""
    delivery, when, end = send(answers)
    assert (delivery.status, delivery.status_code, delivery.tries, when) == (status, code, len(times), times)
    assert end <= 5


@pytest.mark.parametrize(
    ("silence", "timeout", "tries", "end"),
    [(100.0, 30, 1, 5.0), (100.0, 1, 2, 5.0), (1.5, 30, 1, 1.5), (100.0, 0, 1, 5.0)],
)
def test_the_whole_thing_takes_five_seconds_at_most(silence: float, timeout: float, tries: int, end: float) -> None:
    """WH-1: `timeout` bounds a try, five seconds bound them all."""
    delivery, when, ended = send([silence] * 3, hook(timeout=timeout))
    assert len(when) == delivery.tries == tries
    assert ended <= end
    assert delivery.status == ("delivered" if silence < 5 else "failed")


def test_less_time_means_fewer_tries() -> None:
    """A gate's own short time bounds it, too."""
    delivery, when, end = send([500, 500, 500], within=2.5)
    assert (delivery.status, delivery.error, when) == ("failed", "the server answered 500", [0, 1.5])
    assert end <= 2.5


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "ftp://example.com/", "nonsense", "http://[::ffff:10.0.0.1]/"])
def test_blocked_targets_are_never_asked(url: str) -> None:
    """WH-2."""
    delivery, when, _ = send([], hook(url))
    assert (delivery.status, delivery.tries, when) == ("sandbox_blocked", 0, [])
    assert delivery.error


def test_headers_that_no_request_can_have() -> None:
    """Nothing is smuggled into the request, and the header's value is in no message."""
    delivery, when, _ = send([], hook(Authorization="Bearer a\r\nX-Other: b"))
    assert (delivery.status, when) == ("failed", [])
    assert delivery.error == "`headers.Authorization` must be one line of ASCII characters"
