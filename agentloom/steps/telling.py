"""The webhook of an approval gate: what it says, and that it never fails the gate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import anyio

from agentloom.core.kinds import Attempt, SandboxRules, Services
from agentloom.core.results import JSON
from agentloom.core.runner import Op
from agentloom.errors import TemplateError
from agentloom.language.paths import Part
from agentloom.language.rendering import render
from agentloom.language.template import Piece, parse_template
from agentloom.tools.addresses import Reach
from agentloom.tools.keys import HEADER
from agentloom.tools.webhooks import WITHIN, Delivery, Webhook, deliver

if TYPE_CHECKING:
    from agentloom.model.steps import ApprovalGateStep, Notify

NAMES = ("run_id", "step_id", "workflow_name")
"""What a body may name besides the state."""

MARGIN = 0.1
"""Seconds that are left to a gate whose own time is short, so that telling can't make it run out of it."""


def body_reads(notify: Notify) -> Iterator[tuple[Part, ...]]:
    """Yield the paths of the state that the body reads."""
    for placeholder in parse_template(notify.body_template or "").placeholders:
        if placeholder.root == "state" or placeholder.parts[:1] not in [(name,) for name in NAMES]:
            yield placeholder.parts


async def tell(step: ApprovalGateStep, op: Op, services: Services, attempt: Attempt) -> dict[str, JSON]:
    """Send the webhook of a gate and return what came of it; what goes wrong is a warning. A replay sends none."""
    assert step.notify is not None
    if services.gateway.offline:
        return Delivery("not_sent").to_dict()
    notify = step.notify
    try:
        body = _body(notify, op, services, attempt)
    except TemplateError as error:
        delivery = Delivery("failed", error=str(error))
    else:
        headers = {HEADER: attempt.key, **notify.headers}
        left = anyio.current_effective_deadline() - anyio.current_time() - MARGIN
        delivery = await deliver(
            Webhook(notify.url, body, headers, notify.timeout),
            reach_of(services.sandbox),
            min(WITHIN, max(left, 0.0)),
        )
    if delivery.status == "sandbox_blocked":
        attempt.warn(f"the webhook was not sent: {delivery.error}")
    elif delivery.status == "failed":
        attempt.warn(f"the webhook failed: {delivery.error}")
    return delivery.to_dict()


def reach_of(rules: SandboxRules | None) -> Reach:
    """Return where webhooks may go. The switch for internal targets holds with and without the sandbox."""
    if rules is None:
        return Reach("webhook")
    internal = rules.allow_internal_webhook_targets
    if not rules.enabled:
        return Reach("webhook", internal=internal)
    return Reach("webhook", rules.allow_network, tuple(rules.allowed_domains), internal=internal)


def _body(notify: Notify, op: Op, services: Services, attempt: Attempt) -> bytes:
    """Return the body. Raises ``TemplateError``."""
    names = {"run_id": attempt.run_id, "step_id": op.path, "workflow_name": services.workflow}
    if notify.body_template is None:
        told: dict[str, JSON] = {**names, "status": "awaiting_approval"}
        if services.callback_url is not None:
            for decision in ("approve", "reject"):
                told[f"{decision}_url"] = f"{services.callback_url}/{decision}/{attempt.run_id}"
        return json.dumps(told).encode()
    text = _rendered(notify.body_template, names, services.redact(op.inputs), attempt)
    return text.encode("utf-8", "replace")


def _rendered(body: str, names: Mapping[str, str], state: Mapping[str, JSON], attempt: Attempt) -> str:
    template = parse_template(body)
    pieces: list[Piece] = []
    for piece in template.pieces:
        flat = not isinstance(piece, str) and piece.root != "state" and len(piece.parts) == 1
        name = piece.parts[0] if flat and not isinstance(piece, str) else None
        pieces.append(names[name] if isinstance(name, str) and name in names else piece)
    return render(template._replace(pieces=tuple(pieces)), state, warn=attempt.warn)
