"""The whole table of what fails at once and what is tried again (RT-2), a row a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from agentloom.errors import CircuitOpenError, ProviderError, SandboxViolationError
from agentloom.providers.base import Request
from tests.engine.replies import calls, says, turns
from tests.engine.world import ask, flow, route, run, sub, use

AGENTS = {
    "plain": {"system_prompt": "x"},
    "looping": {"system_prompt": "x", "tools": ["ok"], "loop_policy": {"max_iterations": 2}},
    "dear": {"system_prompt": "x", "constraints": {"max_cost_usd": 0.1}},
    "slow": {"system_prompt": "x", "constraints": {"max_latency_ms": 100}},
    "polite": {"system_prompt": "x", "constraints": {"forbidden_patterns": ["damn"]}},
    "lacking": {"system_prompt": "x", "tools": ["gone"]},
    "formed": {"system_prompt": "x", "output_schema": {}},
}


def agent(name: str, **more: Any) -> dict[str, Any]:
    """Return an `agent` step."""
    return {"id": "s", "type": "agent", "agent": name, "input": "go", **more}


async def late(request: Request, on_delta: Any) -> str:
    """Answer after a minute."""
    await anyio.sleep(60)
    return "late"


def refused() -> None:
    """Refuse as the sandbox does."""
    raise SandboxViolationError("Sandbox violation (x): no")


def broken() -> None:
    """Fail as tools do."""
    raise OSError("disk full")


TOOLS = {"ok": lambda: 1, "refused": refused, "broken": broken}
CALL = turns(calls("ok"))

PERMANENT: list[tuple[str, Mapping[str, Any], Any]] = [
    ("llm_call: a status that isn't listed", ask("s"), ProviderError("x", status_code=400)),
    ("llm_call: a model nobody serves, or a request nobody can take", ask("s"), ProviderError("x", permanent=True)),
    ("llm_call: a broken template", ask("s", prompt="{"), "x"),
    ("llm_call: a broken system prompt", ask("s", system_prompt="{"), "x"),
    ("llm_call: a reply that never validates", ask("s", response_schema={}), "x"),
    ("llm_call: a streamed reply that doesn't validate", ask("s", response_schema={}, stream=True), "x"),
    ("llm_call: no room in the conversation", ask("s", conversation="small"), "x"),
    ("llm_call: an unusable conversation", ask("s", conversation="bad"), "x"),
    ("llm_call: an attachment that can't be read", ask("s", attachments=[{"source": "./none.png"}]), "x"),
    ("llm_call: an attachment that is refused", ask("s", attachments=[{"source": "http://127.0.0.1/x.png"}]), "x"),
    ("agent: a broken limit of money", agent("dear"), "x"),
    ("agent: a forbidden pattern", agent("polite"), "damn"),
    ("agent: the iteration cap", agent("looping"), CALL),
    ("agent: a missing tool", agent("lacking"), "x"),
    ("agent: a broken template", agent("plain", input="{"), "x"),
    ("agent: a reply that never validates", agent("formed"), "x"),
    ("agent: an unusable conversation", agent("plain", conversation="bad"), "x"),
    ("agent: a status that isn't listed", agent("plain"), ProviderError("x", status_code=401)),
    ("tool: one that isn't registered", use("s", "gone"), None),
    ("tool: arguments that can't be resolved", use("s", "ok", tool_args={"x": "state.none"}), None),
    ("tool: a refusal of the sandbox", use("s", "refused"), None),
    ("router: an expression that isn't allowed", route("s", s2="type(state)"), None),
    ("router: a syntax error", route("s", s2="state."), None),
    ("router: a condition that raises", route("s", s2="state.none.x == 1"), None),
    ("router: no match and no default", route("s", s2="False"), None),
    ("subworkflow: a child that failed for good", sub("s", steps=[ask("k")]), ProviderError("x", status_code=400)),
    (
        "subworkflow: a child over its own budget",
        sub("s", child={"config": {"budget_usd": 0.1}}, steps=[ask("k")]),
        "x",
    ),
    ("embed: a missing input", {"id": "s", "type": "embed", "inputs": "none"}, None),
    ("embed: an input of the wrong type", {"id": "s", "type": "embed", "inputs": "number"}, None),
    ("embed: no provider with embeddings", {"id": "s", "type": "embed", "inputs": "text"}, None),
    ("approval_gate: a decision that is none", {"id": "s", "type": "approval_gate"}, None),
    ("any step: an output path that the state refuses", ask("s", output="number.x"), "x"),
]

TRANSIENT: list[tuple[str, Mapping[str, Any], Any]] = [
    ("llm_call: a listed status", ask("s"), ProviderError("x", status_code=503)),
    ("llm_call: no status", ask("s"), ProviderError("x")),
    ("llm_call: an open circuit", ask("s"), CircuitOpenError("x")),
    ("llm_call: a listed status in a tool loop", ask("s", tools=[{"name": "ok"}]), ProviderError("x", status_code=429)),
    ("agent: max_latency_ms", agent("slow"), late),
    ("agent: a listed status", agent("plain"), ProviderError("x", status_code=500)),
    ("tool: an error of its own", use("s", "broken"), None),
    ("subworkflow: any other failure", sub("s", steps=[ask("k")]), ProviderError("x", status_code=503)),
    ("any step: its timeout", ask("s", timeout=1), late),
    ("any step: its timeout, an agent's", agent("plain", timeout=1), late),
]


def attempts(step: Mapping[str, Any], answer: Any) -> tuple[str, str | None, int]:
    """Run a step that may be tried three times; return how it ended, what that is, and how often it was tried."""
    others = [ask("s2", "s")] if step["type"] == "router" else []
    small = {"messages": [{"role": "user", "content": "x"}], "token_budget": 1}
    data = flow(
        {"retry": {"max_retries": 2, "jitter": False}, **step},
        *others,
        config={"max_retries": 0},
        agents=AGENTS,
        state={"small": small, "bad": "no", "number": 1, "text": "x", "_approval": {"s": "maybe"}},
    )
    answers = {} if answer is None else {"s": answer, "s.k": answer}
    result = run(data, answers, TOOLS).result.step_results["s"]
    return result.status, result.error_classification, result.attempts


@pytest.mark.parametrize(("step", "answer"), [case[1:] for case in PERMANENT], ids=[case[0] for case in PERMANENT])
def test_what_fails_at_once(step: Mapping[str, Any], answer: Any) -> None:
    """Another attempt could not help: it is made once, or not at all."""
    status, word, made = attempts(step, answer)
    assert (status, word) == ("failed", "permanent")
    assert made <= 1


@pytest.mark.parametrize(("step", "answer"), [case[1:] for case in TRANSIENT], ids=[case[0] for case in TRANSIENT])
def test_what_is_tried_again(step: Mapping[str, Any], answer: Any) -> None:
    """Until its retries are used up."""
    status, word, made = attempts(step, answer)
    assert (status in ("failed", "timeout"), word, made) == (True, "transient", 3)
    assert (status == "timeout") == ("timeout" in step)


def test_a_run_over_its_budget_is_not_tried_again() -> None:
    """Any step: the failure that crosses the run's budget is the last."""
    data = flow(ask("s", tools=[{"name": "ok"}], retry={"max_retries": 5}), config={"budget_usd": 0.4})
    world = run(data, {"s": turns(says("", calls("ok")), ProviderError("x", status_code=503))}, TOOLS)
    assert world.result.status == "budget_exceeded"
    assert len(world.provider.requests) == 2
