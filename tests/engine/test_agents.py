"""Agents: one turn of a system prompt, tools and a loop policy that were defined once (AN-1 to AN-3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing.files import FileCheckpointer
from agentloom.core.engine import WorkflowEngine
from agentloom.core.loader import load_data, load_workflow
from agentloom.errors import InvalidWorkflow, ProviderError, WorkflowError
from agentloom.providers.base import Request, ToolChoice
from agentloom.providers.gateway import ProviderGateway
from tests.engine.replies import calls, says, turns
from tests.engine.virtual import run_virtual
from tests.engine.world import Script, World, ask, flow, run


def act(id: str = "s", agent: str = "helper", *after: str, **more: Any) -> dict[str, Any]:
    """Return an `agent` step."""
    return {"id": id, "type": "agent", "agent": agent, "input": "do it", "depends_on": list(after), **more}


def agents(tools: dict[str, Any] | None = None, step: dict[str, Any] | None = None, **answers: Any) -> Any:
    """Return a function that runs one step of the agent `helper`: it takes that, and others by name."""

    def go(helper: dict[str, Any], **others: dict[str, Any]) -> World:
        described = {"helper": {"system_prompt": "Help.", **helper}, **others}
        data = flow(act(**(step or {})), agents=described, state={"who": "Ann", "n": 1})
        return run(data, {name.replace("__", "::"): answer for name, answer in answers.items()}, tools)

    return go


def echo(**arguments: Any) -> Any:
    """Says it again."""
    return arguments.get("text")


def permanent(world: World) -> str:
    """Return why the step failed for good."""
    result = world.result.step_results["s"]
    assert (result.status, result.error_classification) == ("failed", "permanent")
    return str(result.error)


def test_a_turn_of_an_agent() -> None:
    """Its system prompt and its input are templates; its model, its tools; the last reply is the output."""
    world = agents({"echo": echo}, {"output": "o", "input": "Look at {n}"}, s=turns(calls("echo", text="x"), "done"))(
        {"system_prompt": "Help {state.who}.", "model": "other", "tools": ["echo"]}
    )
    first, second = world.provider.requests
    assert (first.model, first.tool_choice, first.step_id) == ("other", ToolChoice(), "s")
    assert [(message.role, message.content) for message in first.messages] == [
        ("system", "Help Ann."),
        ("user", "Look at 1"),
    ]
    assert [(tool.name, tool.description) for tool in first.tools] == [("echo", "Says it again.")]
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "tool"]
    assert world.result.final_state["o"] == "done"
    step = world.result.step_results["s"]
    assert (step.cost_usd, step.token_usage.total_tokens, step.model) == (1.0, 14, "m")
    assert step.prompt_metadata is not None
    assert {key: step.prompt_metadata[key] for key in ("agent", "template_id", "template_vars", "finish_reason")} == {
        "agent": "helper",
        "template_id": "t:s",
        "template_vars": ["n"],
        "finish_reason": "stop",
    }


def test_tools_by_name_and_by_definition() -> None:
    """What a definition says of a tool goes before what is registered."""
    described = {"name": "other", "description": "Mine.", "parameters": {"type": "object"}}
    world = agents({"echo": echo, "other": echo}, s="x")({"tools": ["echo", described]})
    assert [(tool.name, tool.description) for tool in world.provider.requests[0].tools] == [
        ("echo", "Says it again."),
        ("other", "Mine."),
    ]


def test_a_missing_tool_fails_the_step_for_good() -> None:
    """Before anything is asked; also one that an agent needs which this one may call."""
    assert permanent(agents(s="x")({"tools": ["gone"]})) == "tool `gone` is not registered"
    world = agents({"echo": echo}, s="x")(
        {"tools": [{"agent": "other"}]}, other={"system_prompt": "x", "tools": ["echo", {"name": "gone"}]}
    )
    assert permanent(world) == "tool `gone` is not registered"
    assert world.provider.requests == []


def test_the_cap_on_model_calls() -> None:
    """`error`: the step fails for good, and what the last reply calls isn't run; `warn_and_return`: that reply counts."""
    one = says("so far", calls("echo", text="x"))
    policy = {"max_iterations": 2}
    run_it = agents({"echo": echo}, s=turns(one))
    world = run_it({"tools": ["echo"], "loop_policy": policy})
    assert permanent(world) == (
        "agent `helper` made 2 model calls without coming to an end; raise `loop_policy.max_iterations`, or look at what it is asked"
    )
    assert (len(world.provider.requests), len(world.tools.calls)) == (2, 1)
    assert world.result.step_results["s"].cost_usd == 1.0
    kept = run_it({"tools": ["echo"], "loop_policy": {**policy, "on_max_iterations": "warn_and_return"}})
    assert kept.output("s") == "so far"
    result = kept.result.step_results["s"]
    assert result.warnings == ("agent `helper` made 2 model calls without coming to an end; its last reply counts",)
    assert result.prompt_metadata is not None
    assert result.prompt_metadata["finish_reason"] == "max_iterations"


def test_a_turn_ends_when_its_condition_holds() -> None:
    """Over `state` and `reply`; a reply that calls nothing is told to go on, one for which it holds ends the turn, calls or not."""
    policy = {"exit_condition": "'DONE' in reply and state.n == 1"}
    world = agents({"echo": echo}, s=turns("thinking", says("DONE", calls("echo"))))(
        {"tools": ["echo"], "loop_policy": policy}
    )
    assert world.output("s") == "DONE"
    assert world.tools.calls == []
    assert [message.content for message in world.provider.requests[1].messages] == [
        "Help.",
        "do it",
        "thinking",
        "Go on.",
    ]
    never = agents(s="thinking")({"loop_policy": {**policy, "max_iterations": 3}})
    assert "3 model calls" in permanent(never)


def test_a_condition_that_fails_fails_the_step_for_good() -> None:
    """As a router's does."""
    world = agents(s="x")({"loop_policy": {"exit_condition": "reply.x.y == 1"}})
    assert "`x` can't be read from `reply`" in permanent(world)


def test_a_reply_with_a_form() -> None:
    """`output_schema`: checked after the tools, asked for again where it doesn't fit."""
    schema = {"type": "json_schema", "schema": {"type": "object", "required": ["a"]}}
    world = agents({"echo": echo}, {"output": "o"}, s=turns(calls("echo", text="x"), "{}", '{"a": 1}'))(
        {"tools": ["echo"], "output_schema": schema}
    )
    assert world.result.final_state["o"] == {"a": 1}
    assert world.output("s") == '{"a": 1}'
    last = world.provider.requests[-1].messages
    assert [message.role for message in last] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "`a` is missing" in last[-1].content


# --- memory


def test_an_agent_remembers_in_a_conversation() -> None:
    """Its own system prompt is sent each time and isn't kept; nor are its calls."""
    described = {"helper": {"system_prompt": "Help.", "tools": ["echo"], "memory": {"type": "conversation"}}}
    steps = [act("a", input="one", conversation="chat"), act("b", "helper", "a", input="two", conversation="chat")]
    world = run(flow(*steps, agents=described), {"a": turns(calls("echo"), "first"), "b": "second"}, {"echo": echo})
    assert [(message.role, message.content) for message in world.provider.requests[-1].messages] == [
        ("system", "Help."),
        ("user", "one"),
        ("assistant", "first"),
        ("user", "two"),
    ]
    kept = [(message["role"], message["content"]) for message in world.result.final_state["chat"]["messages"]]
    assert kept == [("user", "one"), ("assistant", "first"), ("user", "two"), ("assistant", "second")]


def test_its_memory_says_how_much_it_remembers() -> None:
    """The agent's budget and policy, in the place of the conversation's own."""
    old = [{"role": "user", "content": "x" * 400}, {"role": "assistant", "content": "y" * 400}]
    described = {"helper": {"system_prompt": "Help.", "memory": {"token_budget": 130, "trim_policy": "drop_pairs"}}}
    step = act(conversation="chat")
    world = run(flow(step, agents=described, state={"chat": {"messages": old, "token_budget": 10_000}}), {"s": "ok"})
    assert [message.content for message in world.provider.requests[0].messages] == ["Help.", "do it"]
    assert world.result.final_state["chat"]["token_budget"] == 130
    tight = {"helper": {"system_prompt": "Help." * 200, "memory": {"token_budget": 130}}}
    assert "too small for the turn" in permanent(run(flow(step, agents=tight), {"s": "ok"}))


def test_without_input_the_conversation_is_answered() -> None:
    """Its last turn must be a user's."""
    step = act(conversation="chat")
    del step["input"]
    described = {"helper": {"system_prompt": "Help."}}
    chat = [{"role": "user", "content": "hello?"}]
    world = run(flow(step, agents=described, state={"chat": chat}), {"s": "ok"})
    assert [message.content for message in world.provider.requests[0].messages] == ["Help.", "hello?"]
    assert "has no turns yet" in permanent(run(flow(step, agents=described)))


# --- constraints


def test_what_a_turn_may_cost_is_looked_at_after_each_call() -> None:
    """Inside the turn: nothing more is asked once it is over; exactly the limit is still allowed."""
    replies = (calls("echo"), calls("echo"), calls("echo"), "done")
    world = agents({"echo": echo}, s=turns(*replies))({"tools": ["echo"], "constraints": {"max_cost_usd": 1.0}})
    assert permanent(world) == "the agent's turn cost $1.5000, more than its `max_cost_usd` of $1.0000"
    assert len(world.provider.requests) == 3
    assert world.result.total_cost_usd == 1.5
    enough = agents({"echo": echo}, s=turns(*replies))({"tools": ["echo"], "constraints": {"max_cost_usd": 2.0}})
    assert enough.output("s") == "done"


def test_small_limits_are_told_with_the_digits_that_they_have() -> None:
    """A limit below a tenth of a cent isn't `$0.0000`."""
    world = agents(s="done")({"constraints": {"max_cost_usd": 0.00001}})
    assert permanent(world) == "the agent's turn cost $0.500000000, more than its `max_cost_usd` of $0.000010000"


async def _slow(request: Request, on_delta: Any) -> str:
    await anyio.sleep(10)
    return "late"


def test_the_time_of_a_turn_is_a_transient_failure() -> None:
    """Not `timeout`: retried, and failed in the end; no longer than `max_latency_ms`."""
    world = agents(step={"retry": {"max_retries": 1, "jitter": False}}, s=_slow)(
        {"constraints": {"max_latency_ms": 1500}}
    )
    result = world.result.step_results["s"]
    assert (result.status, result.error_classification, result.attempts) == ("failed", "transient", 2)
    assert result.error == "agent `helper` took longer than its `max_latency_ms` of 1500"
    assert result.duration_ms == 1500 + 2000 + 1500


@pytest.mark.parametrize(
    ("timeout", "latency", "status"), [(1, 5000, "timeout"), (5, 1000, "failed"), (5, 0, "timeout")]
)
def test_the_shorter_of_both_times_applies(timeout: float, latency: float, status: str) -> None:
    """A step's `timeout` ends as `timeout`."""
    world = agents(step={"timeout": timeout, "retry": {"max_retries": 0}}, s=_slow)(
        {"constraints": {"max_latency_ms": latency}}
    )
    assert world.statuses == {"s": status}
    assert world.result.step_results["s"].duration_ms == (1000 if latency else 5000)


@pytest.mark.parametrize(
    ("pattern", "reply", "refused"),
    [
        ("(?i)as an ai", "Well, As An AI, I", True),
        ("(?i)as an ai", "aside", False),
        (r"\bsecret\d+\b", "the secret42 is", True),
        (r"\bsecret\d+\b", "no secrets", False),
        ("^x$", "a\nx", False),
    ],
)
def test_forbidden_patterns(pattern: str, reply: str, refused: bool) -> None:
    """Looked for anywhere in the reply; a match fails the step for good."""
    world = agents(s=reply)({"constraints": {"forbidden_patterns": ["nowhere", pattern]}})
    if refused:
        assert permanent(world) == f"the reply of agent `helper` matches the forbidden pattern `{pattern}`"
    else:
        assert world.statuses == {"s": "success"}


def test_a_pattern_that_takes_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop stays free meanwhile, and the step fails for good."""
    monkeypatch.setattr("agentloom.steps.patterns.WITHIN", 0.3)
    world = agents(s="a" * 40 + "b")({"constraints": {"forbidden_patterns": ["(a+)+$"]}})
    assert permanent(world) == "`forbidden_patterns` can't be looked for: they take longer than 0.3 s; simplify them"


def test_a_pattern_that_is_none_fails_the_step_for_good() -> None:
    """Before anything is asked, and paid for; also of an agent that this one calls."""
    bad = {"system_prompt": "x", "constraints": {"forbidden_patterns": ["("]}}
    for world in (agents(s="x")(bad), agents(s="x")({"tools": [{"agent": "other"}]}, other=bad)):
        assert "`(` is no regular expression" in permanent(world)
        assert world.provider.requests == []


# --- agents as tools

OTHER = {"system_prompt": "Search for {who}.", "description": "Searches.", "model": "small"}


def test_an_agent_calls_another_as_a_tool() -> None:
    """It is described to the model, gets its input, works in its own loop, and its reply is the result; its cost counts."""
    run_it = agents(
        {"echo": echo},
        s=turns(says("", calls("other", input="find it")), "found"),
        s__other=turns(calls("echo", text="x"), "it is x"),
    )
    world = run_it({"tools": [{"agent": "other"}]}, other={**OTHER, "tools": ["echo"]})
    offered = world.provider.requests[0].tools[0]
    assert (offered.name, offered.description, offered.parameters["required"]) == ("other", "Searches.", ["input"])
    asked = [(request.step_id, request.model) for request in world.provider.requests]
    assert asked == [("s", "m"), ("s::other", "small"), ("s::other", "small"), ("s", "m")]
    assert [message.content for message in world.provider.requests[1].messages] == ["Search for Ann.", "find it"]
    assert world.provider.requests[3].messages[-1].content == "it is x"
    assert world.result.step_results["s"].cost_usd == 2.0
    keys = [request.idempotency_key for request in world.provider.requests]
    assert len(set(keys)) == 4


def test_only_the_steps_own_agent_is_streamed() -> None:
    """What another one says is the result of a tool."""
    data = flow(
        act(),
        config={"stream": True},
        agents={"helper": {"system_prompt": "x", "tools": [{"agent": "other"}]}, "other": OTHER},
    )
    world = run(
        {**data, "state": {"who": "Ann"}},
        {"s": turns(says("wait", calls("other", input="x")), "all found"), "s::other": "hidden words"},
    )
    assert world.text_of("s") == ["wait", "all", "found"]


@pytest.mark.parametrize(
    ("other", "answer", "text"),
    [
        (
            {"loop_policy": {"max_iterations": 1}, "tools": ["echo"]},
            calls("echo"),
            "error: agent `other` made 1 model calls",
        ),
        ({"constraints": {"max_cost_usd": 0.1}}, "x", "error: the agent's turn cost $0.5000, more than"),
        ({"constraints": {"forbidden_patterns": ["x"]}}, "x", "error: the reply of agent `other` matches"),
        ({"output_schema": {}}, "x", "error: the reply doesn't fit"),
        ({"constraints": {"max_latency_ms": 1}}, _slow, "error: agent `other` took longer than"),
    ],
)
def test_what_goes_wrong_in_an_agent_that_is_called_is_told(other: dict[str, Any], answer: Any, text: str) -> None:
    """As with every tool: the one that called it may do without."""
    said = answer if answer is _slow else turns(answer)
    run_it = agents({"echo": echo}, s=turns(calls("other", input="x"), "without it"), s__other=said)
    world = run_it({"tools": [{"agent": "other"}]}, other={**OTHER, **other})
    assert world.output("s") == "without it"
    told = [message.content for message in world.provider.requests[-1].messages if message.role == "tool"]
    assert len(told) == 1
    assert told[0].startswith(text)


def test_what_an_agent_that_is_called_spends_counts_for_the_callers_limit() -> None:
    """The step fails for good, and whatever else was called at the same time is stopped."""
    ended: list[str] = []

    async def wait(**arguments: Any) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("stopped")
        return "never"

    run_it = agents({"wait": wait}, s=turns(says("", calls("other", input="x"), calls("wait"))), s__other="x")
    world = run_it({"tools": [{"agent": "other"}, "wait"], "constraints": {"max_cost_usd": 0.6}}, other=OTHER)
    assert permanent(world) == "the agent's turn cost $1.0000, more than its `max_cost_usd` of $0.6000"
    assert ended == ["stopped"]


def test_a_provider_that_fails_below_fails_the_attempt() -> None:
    """It is no fault of the tool's: the step is retried as a model call is."""
    run_it = agents(s=turns(calls("other", input="x"), "done"), s__other=ProviderError("busy", status_code=503))
    world = run_it({"tools": [{"agent": "other"}]}, other=OTHER)
    assert [request.step_id for request in world.provider.requests] == ["s", "s::other", "s"]
    assert world.output("s") == "done"
    assert world.result.step_results["s"].attempts == 2


def test_an_agent_below_without_input_is_told_so() -> None:
    """A model may leave it out."""
    run_it = agents(s=turns(calls("other"), "sorry"), s__other="x")
    world = run_it({"tools": [{"agent": "other"}]}, other=OTHER)
    assert world.provider.requests[-1].messages[-1].content == "error: argument `input` must be a text"


def test_a_template_that_is_broken_below_fails_the_step_for_good() -> None:
    """TP-5: no other attempt can do better."""
    run_it = agents(s=turns(calls("other", input="x"), "done"), s__other="x")
    assert "broken template" in permanent(run_it({"tools": [{"agent": "other"}]}, other={"system_prompt": "{"}))


def test_two_tools_of_one_name_fail_the_step_for_good() -> None:
    """A model could not tell them apart."""
    run_it = agents({"other": echo}, s="x")
    world = run_it({"tools": ["other", {"agent": "other"}]}, other=OTHER)
    assert permanent(world) == "agent `helper` has two tools called `other`; rename one"


# --- definitions


def test_typed_workflows_are_refused_before_they_run() -> None:
    """Unknown agents, rings, and paths without a file to start from; files are told of these by the check."""
    one = {"system_prompt": "x"}
    for data, why in (
        (flow(act()), "step `s`: agent `helper` is not defined"),
        (
            flow(act(agent="./x.agent.yaml")),
            "step `s`: agent file `./x.agent.yaml` is relative to a file; load the workflow from one",
        ),
        (
            flow(act(), agents={"helper": {**one, "tools": [{"agent": "gone"}]}}),
            "agent `helper`: agent `gone` is not defined",
        ),
        (
            flow(
                act(),
                agents={"helper": {**one, "tools": [{"agent": "b"}]}, "b": {**one, "tools": [{"agent": "helper"}]}},
            ),
            "agents call each other in a ring: `helper -> b -> helper`",
        ),
    ):
        with pytest.raises(WorkflowError) as caught:
            run(data)
        assert str(caught.value) == why


def _project(folder: Path, **files: Any) -> Path:
    """Write YAML files; return the workflow's."""
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml").replace("_agent", ".agent")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(data))
    return folder / "w.yaml"


FILES = {
    "w_yaml": flow(
        act("a", "./team/lead.agent.yaml", conversation="chat"),
        act("b", "short", "a"),
        agents={"short": "team/scout.agent.yaml", "plain": {"system_prompt": "Plain."}},
    ),
    "team__lead_agent_yaml": {
        "system_prompt": "Lead.",
        "tools": [{"agent": "scout.agent.yaml"}, {"agent": "plain"}],
    },
    "team__scout_agent_yaml": {"system_prompt": "Scout.", "name": "seeker"},
}


def test_agents_in_files_of_their_own(tmp_path: Path) -> None:
    """Paths start at the file in which they stand; names are those of the workflow, in agent files as well."""
    workflow = _project(tmp_path, **FILES)
    script = Script({"a": turns(calls("seeker", input="x"), calls("plain", input="y"), "led"), "b": "scouted"})
    gateway = ProviderGateway()
    gateway.register(script)
    result = run_virtual(WorkflowEngine(load_workflow(workflow), gateway).run)
    assert result.status == "success"
    said = [(request.step_id, request.messages[0].content) for request in script.requests]
    assert said == [
        ("a", "Lead."), ("a::seeker", "Scout."), ("a", "Lead."), ("a::plain", "Plain."), ("a", "Lead."), ("b", "Scout."),
    ]  # fmt: skip


def test_a_run_goes_on_without_the_files_of_its_agents(tmp_path: Path) -> None:
    """RS-1: the checkpoint holds them, as they were."""
    workflow = _project(tmp_path, **FILES)
    store = FileCheckpointer(tmp_path / "kept")
    answers = {"a": turns(calls("seeker", input="x"), "led"), "b": ProviderError("no", status_code=400)}
    gateway = ProviderGateway()
    gateway.register(Script(answers))
    engine = WorkflowEngine(load_workflow(workflow), gateway, checkpointer=store, run_id="r")
    assert anyio.run(engine.run).status == "failed"
    for path in tmp_path.rglob("*.yaml"):
        path.unlink()

    async def resume() -> Any:
        data = await store.load("r")
        again = ProviderGateway()
        script = Script({"a": turns(calls("seeker", input="x"), calls("plain", input="x"), "led"), "b": "scouted"})
        again.register(script)
        data.step_results = {}
        engine = await WorkflowEngine.from_checkpoint(data, store, provider_gateway=again)
        return await engine.run(), script

    result, script = anyio.run(resume)
    assert result.status == "success"
    assert [request.messages[0].content for request in script.requests] == [
        "Lead.",
        "Scout.",
        "Lead.",
        "Plain.",
        "Lead.",
        "Scout.",
    ]


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"team__lead_agent_yaml": {"system_prompt": "x", "bogus": 1}}, "AL702"),
        ({"team__lead_agent_yaml": {"system_prompt": "x", "tools": [{"agent": "nobody"}]}}, "AL608"),
        ({"team__scout_agent_yaml": {"system_prompt": "x", "tools": [{"agent": "lead.agent.yaml"}]}}, "AL702"),
        ({"team__scout_agent_yaml": {"system_prompt": "x", "tools": [{"agent": "gone.agent.yaml"}]}}, "AL702"),
        ({"team__scout_agent_yaml": {"system_prompt": "x", "loop_policy": {"exit_condition": "repl"}}}, "AL702"),
    ],
)
def test_a_workflow_whose_agents_can_not_run_is_refused(tmp_path: Path, files: dict[str, Any], code: str) -> None:
    """With the same diagnostics that the check gives."""
    workflow = _project(tmp_path, **{**FILES, **files})
    with pytest.raises(InvalidWorkflow) as caught:
        run_virtual(WorkflowEngine(load_workflow(workflow)).run)
    assert code in str(caught.value) or code in {found.code for found in caught.value.document.diagnostics}


def test_an_inline_child_with_an_agent_file(tmp_path: Path) -> None:
    """Its paths start at the file in which it stands; the checkpoint holds its agents, too."""
    child = {"name": "kid", "steps": [act("k", "./team/scout.agent.yaml")]}
    data = flow({"id": "sub", "type": "subworkflow", "workflow_inline": child})
    workflow = _project(tmp_path, **{**FILES, "w_yaml": data})
    gateway = ProviderGateway()
    script = Script({"sub.k": "scouted"})
    gateway.register(script)
    store = FileCheckpointer(tmp_path / "kept")
    result = run_virtual(WorkflowEngine(load_workflow(workflow), gateway, checkpointer=store, run_id="r").run)
    assert result.status == "success"
    kept = json.loads((tmp_path / "kept" / "r.json").read_text())["workflow_definition"]
    assert load_data(kept, "elsewhere").ok


def test_an_agent_beside_other_steps() -> None:
    """Its output is read like any other's."""
    steps = [act("s", output="o"), ask("t", "s", prompt="{state.o}!")]
    world = run(flow(*steps, agents={"helper": {"system_prompt": "x"}}), {"s": "hello"})
    assert world.provider.prompts()["t"] == "hello!"
