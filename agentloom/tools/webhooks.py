"""Webhooks: one POST that tells somebody, tried three times within five seconds, and never to an internal address unasked."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import anyio

from agentloom import __version__
from agentloom.errors import SecurityError, ValidationError
from agentloom.records import record
from agentloom.tools.addresses import Reach, read_target

WAITS = (2.0, 4.0)
"""Seconds before the second and the third try; the last one is cut so that a second is left for the try."""

WITHIN = 5.0
"""How long all tries together may take, in seconds."""

LAST_TRY = 1.0

AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""The statuses that another try may cure."""

Status = Literal["delivered", "failed", "sandbox_blocked", "not_sent"]


@record(repr=True)
class Delivery:
    """What came of a webhook. ``status_code`` is the last answer's; `not_sent` is that of a replay."""

    status: Status
    tries: int = 0
    status_code: int | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "status": self.status,
            "tries": self.tries,
            "status_code": self.status_code,
            "error": self.error,
        }


@record()
class Webhook:
    """One POST. ``timeout`` bounds each try, in seconds; 0 sets no limit of its own."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    timeout: float


Send = Callable[[Webhook, Reach, float], Awaitable[int]]


async def deliver(webhook: Webhook, reach: Reach, within: float = WITHIN, send: Send | None = None) -> Delivery:
    """Send a webhook and return what came of it; raises nothing but when it is cancelled."""
    post = send or _post
    deadline = anyio.current_time() + within
    tries, error = 0, "no answer in time"
    code: int | None
    try:
        reach.look_at(read_target(webhook.url))
    except (SecurityError, ValidationError) as refusal:  # the gate lets nothing pass that it can't read
        return Delivery("sandbox_blocked", error=str(refusal))
    try:
        headers = _sendable(webhook.headers)
    except ValidationError as fault:
        return Delivery("failed", error=str(fault))
    webhook = Webhook(webhook.url, webhook.body, headers, webhook.timeout)
    while True:
        tries += 1
        left = deadline - anyio.current_time()
        code = None
        try:
            with anyio.fail_after(min(left, webhook.timeout or left)):
                code = await post(webhook, reach, left)
        except SecurityError as refusal:
            return Delivery("sandbox_blocked", tries, error=str(refusal))
        except TimeoutError:
            error = "no answer in time"
        except Exception as failure:
            error = " ".join(str(failure).split()) or type(failure).__name__
        else:
            if 200 <= code < 300:
                return Delivery("delivered", tries, code)
            error = f"the server answered {code}"
            if code not in AGAIN:
                break
        if tries > len(WAITS):
            break
        wait = min(WAITS[tries - 1], deadline - LAST_TRY - anyio.current_time())
        if wait <= 0:
            break
        await anyio.sleep(wait)
    return Delivery("failed", tries, code, error)


async def _post(webhook: Webhook, reach: Reach, left: float) -> int:
    """Make one try and return the status of the answer; its body is of no interest. Redirects are not followed."""
    import httpx

    from agentloom.tools.pinned import PinnedTransport

    async with (
        httpx.AsyncClient(
            transport=PinnedTransport(reach), timeout=left, follow_redirects=False, trust_env=False
        ) as client,
        client.stream("POST", webhook.url, content=webhook.body, headers=dict(webhook.headers)) as response,
    ):
        return response.status_code


def _sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to send, without doubles. Raises ``ValidationError`` for what no header can hold."""
    found = {"content-type": "application/json", "user-agent": f"agentloom/{__version__}"}
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise ValidationError("`headers` holds a name that no header can have; use letters, digits and hyphens")
        if not value.isprintable() or not value.isascii():
            raise ValidationError(f"`headers.{name}` must be one line of ASCII characters")
        found[name.lower()] = value.strip()
    return found
