"""The webhook of an approval gate, over a real loopback server: what it says, and that it never fails the gate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent, StepFinished
from agentloom.core.keeping import load_run
from agentloom.core.results import WorkflowResult
from tests.engine.kept import gateway_for
from tests.engine.kept import run as keep_run
from tests.engine.world import Script, ask, flow, play, sub

INTERNAL = {"sandbox": {"allow_internal_webhook_targets": True}}


class Hook(ThreadingHTTPServer):
    """Keeps what was posted; answers with the status that the path names."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(int(self.path[1:] or 200))
        self.send_header("Location", "/200")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A server that takes webhooks."""
    with Hook() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def gate(url: str, id: str = "ok", **notify: Any) -> dict[str, Any]:
    return {"id": id, "type": "approval_gate", "depends_on": [], "notify": {"url": url, **notify}}


def run(data: Any, **options: Any) -> tuple[WorkflowResult, list[RunEvent]]:
    """Run on the real clock: sockets are waited for."""

    async def main() -> tuple[WorkflowResult, list[RunEvent]]:
        world = await play(data, **options)
        return world.result, world.events

    return anyio.run(main)


def test_what_is_posted(hook: Hook) -> None:
    """WH-1, R8: the default body, the content type, own headers, an idempotency key; the result and the event tell of it."""
    data = flow(gate(hook.url, headers={"X-Team": "ops"}), config=INTERNAL)
    result, events = run(data, run_id="r1")
    step = result.step_results["ok"]
    assert (result.status, step.status) == ("paused", "paused")
    ((headers, body),) = hook.got
    assert json.loads(body) == {
        "run_id": "r1", "step_id": "ok", "workflow_name": "t", "status": "awaiting_approval",
    }  # fmt: skip
    assert (headers["content-type"], headers["x-team"]) == ("application/json", "ops")
    assert len(headers["idempotency-key"]) == 64
    told = {"status": "delivered", "tries": 1, "status_code": 200, "error": None}
    assert step.to_dict()["webhook"] == told
    (finished,) = [event for event in events if isinstance(event, StepFinished)]
    assert finished.to_json()["webhook"] == told


def test_addresses_for_decisions(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """WH-1: where they are known."""
    monkeypatch.setenv("AGENTLOOM_CALLBACK_URL", "https://approve.example.com/")
    run(flow(gate(hook.url), config=INTERNAL), run_id="r1")
    body = json.loads(hook.got[0][1])
    assert body["approve_url"] == "https://approve.example.com/approve/r1"
    assert body["reject_url"] == "https://approve.example.com/reject/r1"


def test_a_body_of_ones_own(hook: Hook) -> None:
    """WH-1, RD-3: state, run, step and workflow; secrets are replaced, and the state's own `run_id` stays the state's."""
    template = '{{"text": "{state.title}: {step_id} of {workflow_name}, {run_id}, {state.run_id}, {state.token}"}}'
    data = flow(
        sub("s", steps=[gate(hook.url, body_template=template)], child={"name": "kid"}),
        config=INTERNAL,
        state={"title": "A", "token": "hunter2", "run_id": "mine"},
        state_schema={"token": {"redact": True}},
    )
    data["steps"][0]["workflow_inline"]["config"] = INTERNAL
    result, _ = run(data, run_id="r1")
    assert result.status == "paused"
    text = json.loads(hook.got[0][1])["text"]
    assert text.startswith("A: s.ok of kid, r1, mine, <REDACTED:sha256=")
    assert "hunter2" not in text


@pytest.mark.parametrize(
    ("path", "config", "status", "words"),
    [
        ("", {}, "sandbox_blocked", "the webhook was not sent: Sandbox violation (webhook): `127.0.0.1` is an internal address"),
        ("/404", INTERNAL, "failed", "the webhook failed: the server answered 404"),
        ("/302", INTERNAL, "failed", "the webhook failed: the server answered 302"),
    ],
)  # fmt: skip
def test_it_never_fails_the_gate(hook: Hook, path: str, config: Any, status: str, words: str) -> None:
    """WH-1, WH-2: a warning, and the run still pauses."""
    result, _ = run(flow(gate(hook.url + path), config=config))
    step = result.step_results["ok"]
    assert (result.status, step.status, step.warnings) == ("paused", "paused", (words,))
    assert step.webhook is not None
    assert step.webhook["status"] == status
    assert len(hook.got) == (0 if status == "sandbox_blocked" else 1)


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/", "http://127.1/", "http://localhost/"])  # fmt: skip
def test_internal_targets(url: str) -> None:
    """Case: refused with a breadcrumb, and the gate pauses."""
    result, _ = run(flow(gate(url)))
    step = result.step_results["ok"]
    assert step.webhook is not None
    assert (result.status, step.webhook["status"], len(step.warnings)) == ("paused", "sandbox_blocked", 1)


def test_a_broken_body_does_not_fail_it_either(hook: Hook) -> None:
    """A body that can't be rendered is not sent."""
    result, _ = run(flow(gate(hook.url, body_template="{state.n:d}"), config=INTERNAL, state={"n": "x"}))
    assert result.status == "paused"
    assert hook.got == []
    assert result.step_results["ok"].warnings[0].startswith("the webhook failed: ")


def test_a_step_s_short_time_is_no_trap(hook: Hook) -> None:
    """Telling takes part of the step's `timeout`, never all of it."""
    hook.server_close()
    result, _ = run(flow({**gate(hook.url), "timeout": 0.5}, config=INTERNAL))
    assert result.status == "paused"


def test_it_is_sent_again_on_a_resume_without_a_decision(hook: Hook, tmp_path: Path) -> None:
    """AG-1: with a key of its own, since it is another message; not when there is a decision."""
    store = FileCheckpointer(tmp_path)
    data = flow(gate(hook.url), ask("end", "ok"), config=INTERNAL)

    async def go_on(decisions: Mapping[str, str] | None = None) -> WorkflowResult:
        engine = await WorkflowEngine.from_checkpoint(
            load_run(store, "r"), store, gateway_for(Script()), approval_decisions=decisions
        )
        return await engine.run()

    async def main() -> None:
        assert (await keep_run(store, data))[0].status == "paused"
        assert load_run(store, "r").step_results["ok"]["webhook"]["status"] == "delivered"
        assert (await go_on()).status == "paused"
        assert len(hook.got) == 2
        assert (await go_on({"ok": "approved"})).status == "success"
        assert len(hook.got) == 2

    anyio.run(main)
    keys = [headers["idempotency-key"] for headers, _ in hook.got]
    assert keys[0] != keys[1]
