"""The loop in which a model calls tools (LC-2, LC-3)."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest

from agentloom.errors import ProviderError, SandboxViolationError
from agentloom.providers.base import Message, ToolCall, ToolChoice
from agentloom.steps.tool_loop import LONGEST_RESULT, MOST_CALLS
from agentloom.tools.keys import idempotency_key
from tests.engine.replies import calls, says, turns
from tests.engine.world import World, ask, flow, run

ECHO = [{"name": "echo"}]


def echo(**arguments: Any) -> Any:
    """Says it again."""
    return arguments.get("text")


def loop(*replies: Any, tools: dict[str, Any] | None = None, **step: Any) -> World:
    """Run one step with tools whose model says ``replies``."""
    tools = {"echo": echo} if tools is None else tools
    listed = step.pop("named", [{"name": name} for name in tools])
    return run(flow(ask("s", tools=listed, **step)), {"s": turns(*replies)}, tools)


def told(world: World, at: int = -1) -> list[Message]:
    """Return the results of tools that a request tells."""
    return [message for message in world.provider.requests[at].messages if message.role == "tool"]


def test_a_model_calls_a_tool_and_answers_with_its_result() -> None:
    """What was asked, what was called, and what came back go along in the next request; the last reply is the output."""
    world = loop(says("let me see", calls("echo", text="hi", id="c1"), finish="tool_calls"), "it says hi", output="out")
    assert world.tools.calls == [("echo", {"text": "hi"})]
    first, second = world.provider.requests
    assert [(tool.name, tool.description, tool.parameters) for tool in first.tools] == [
        ("echo", "Says it again.", {"type": "object", "title": "echo"})
    ]
    assert first.tool_choice == second.tool_choice == ToolChoice("auto")
    asked, called, result = second.messages
    assert (asked.role, asked.content) == ("user", "s")
    assert (called.role, called.content, called.tool_calls) == (
        "assistant",
        "let me see",
        (calls("echo", "c1", text="hi"),),
    )
    assert result == Message("tool", "hi", name="echo", tool_call_id="c1")
    assert world.output("s") == world.result.final_state["out"] == "it says hi"
    step = world.result.step_results["s"]
    assert (step.cost_usd, step.token_usage.total_tokens) == (1.0, 14)
    assert step.prompt_metadata is not None
    assert step.prompt_metadata["finish_reason"] == "stop"


def test_what_the_step_says_of_a_tool_goes_before_what_is_registered() -> None:
    """Either of both may be missing."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    named = [{"name": "echo", "description": "Repeats."}, {"name": "other", "parameters": schema}]
    world = loop("x", tools={"echo": echo, "other": echo}, named=named)
    first, second = world.provider.requests[0].tools
    assert (first.description, first.parameters) == ("Repeats.", {"type": "object", "title": "echo"})
    assert (second.description, second.parameters) == ("Says it again.", schema)


def test_the_calls_of_one_reply_run_at_the_same_time_and_keep_their_order() -> None:
    """The slowest decides how long it takes; results come in the order of the calls."""

    async def wait(seconds: float) -> str:
        await anyio.sleep(seconds)
        return f"{seconds}"

    both = says("", *(calls("wait", f"c{i}", seconds=i) for i in (3, 1, 2)))
    world = loop(both, "done", tools={"wait": wait})
    assert [(message.tool_call_id, message.content) for message in told(world)] == [
        ("c3", "3"),
        ("c1", "1"),
        ("c2", "2"),
    ]
    assert world.result.step_results["s"].duration_ms == 3000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ({"a": [1, None, "ä"]}, '{"a": [1, null, "ä"]}'),
        (None, "null"),
        (3.5, "3.5"),
        ((1, 2), "[1, 2]"),
        ("", ""),
    ],
)
def test_results_become_text(value: Any, text: str) -> None:
    """Texts as they are, anything else as JSON."""
    world = loop(calls("give"), "done", tools={"give": lambda: value})
    assert [(message.content, message.is_error) for message in told(world)] == [(text, False)]


def _refuse() -> None:
    raise SandboxViolationError("Sandbox violation (file_read): no")


def _fail() -> None:
    raise ValueError("no such city")


def _exit() -> None:
    raise SystemExit(3)


def _cancel() -> None:
    raise anyio.get_cancelled_exc_class()


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (_refuse, "error: Sandbox violation (file_read): no"),
        (_fail, "error: no such city"),
        (_exit, "error: the tool tried to end the program: exit code 3"),
        (_cancel, "error: the tool was cancelled from inside"),
        (lambda: object(), "error: `result` is a `object`, which is no plain data"),
        (lambda: float("nan"), "error: `result` is `nan`, which JSON has no number for"),
        (lambda needed: needed, "error: "),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_what_goes_wrong_in_a_tool_is_told_to_the_model(tool: Any, text: str, many: bool) -> None:
    """The step goes on, and its result is the answer to that; beside other calls as well."""
    asked = [calls("bad"), calls("echo", text="fine")] if many else [calls("bad")]
    world = loop(says("", *asked), "I see", tools={"bad": tool, "echo": echo})
    assert world.output("s") == "I see"
    first, *others = told(world)
    assert first.content.startswith(text)
    assert first.is_error
    assert [message.content for message in others] == ["fine"] * many


def test_only_what_the_step_offers_can_be_called() -> None:
    """A tool that is registered, but not named by the step, isn't run; nor is one that nobody knows, whatever its name looks like."""
    world = loop(
        says("", calls("secret"), ToolCall("c", "no\nsuch\x1b[0m" + "x" * 200, {})),
        "done",
        tools={"echo": echo, "secret": echo},
        named=ECHO,
    )
    assert world.tools.calls == []
    texts = [message.content for message in told(world)]
    assert texts[0] == "error: there is no tool `secret`; there are `echo`"
    assert "\n" not in texts[1]
    assert "\x1b" not in texts[1]
    assert len(texts[1]) < 120


def test_a_tool_that_nobody_registered_is_a_warning_and_an_answer() -> None:
    """The step doesn't fail for it."""
    world = loop(calls("gone"), "I can't", named=[{"name": "gone", "description": "d"}])
    assert world.output("s") == "I can't"
    assert [message.content for message in told(world)] == ["error: tool `gone` is not registered"]
    assert world.result.step_results["s"].warnings == ("tool `gone` is not registered; a call of it can't succeed",)


def test_arguments_that_could_not_be_read_are_told() -> None:
    """The tool isn't run with others."""
    world = loop(ToolCall("c", "echo", {}, "no JSON: line 1"), "sorry")
    assert world.tools.calls == []
    assert told(world)[0].content == "error: the arguments of `echo` can't be read: no JSON: line 1"
    assert told(world)[0].is_error


def test_arguments_that_nest_without_end_are_told() -> None:
    """Plain data has a depth; a model may send anything."""
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    world = loop(calls("echo", text=deep), "sorry")
    assert world.tools.calls == []
    assert told(world)[0].content.endswith("nests deeper than 200")
    assert world.provider.requests[1].messages[1].tool_calls[0].arguments == {}


def test_a_huge_result_is_cut_with_a_mark() -> None:
    """The model is told how much there was."""
    world = loop(calls("big"), "done", tools={"big": lambda: "x" * 10_000_000})
    text = told(world)[0].content
    assert text.startswith("x" * LONGEST_RESULT)
    assert text.endswith(f"\n[cut here: these are the first {LONGEST_RESULT} of 10000000 characters]")


def test_a_reply_may_not_call_without_end() -> None:
    """More than the bound are not run, and the model is told so."""
    asked = [calls("echo", f"c{i}", text=str(i)) for i in range(MOST_CALLS + 2)]
    world = loop(says("", *asked), "done")
    assert len(world.tools.calls) == MOST_CALLS
    assert [message.tool_call_id for message in told(world)] == [call.id for call in asked]
    assert told(world)[-1].content == f"not run: at most {MOST_CALLS} tools can be called at once"


@pytest.mark.parametrize(
    ("choice", "last", "reason"),
    [
        ("auto", "what I know", "max_tool_iterations"),
        ("required", "what I know", "max_tool_iterations"),
        ("auto", "", "max_tool_iterations"),
        ("required", " ", "max_tool_iterations_no_answer"),
        ({"name": "echo"}, "", "max_tool_iterations_no_answer"),
    ],
)
def test_after_the_last_round_the_model_answers_with_what_it_has(choice: Any, last: str, reason: str) -> None:
    """Two rounds of calls, then a reply in which tools can't be called."""
    one = calls("echo", text="x")
    world = loop(one, one, says(last, finish="stop"), tool_choice=choice, max_tool_iterations=2)
    assert len(world.tools.calls) == 2
    assert [request.tool_choice.mode for request in world.provider.requests][1:] == ["auto", "none"]
    metadata = world.result.step_results["s"].prompt_metadata
    assert metadata is not None
    assert metadata["finish_reason"] == reason
    assert world.output("s") == last


def test_a_model_that_calls_on_and_on_is_stopped() -> None:
    """Also one whose provider can't forbid it: what it calls after the last round isn't run."""
    world = loop(says("hm", calls("echo", text="x")), max_tool_iterations=3)
    assert (len(world.tools.calls), len(world.provider.requests)) == (3, 4)
    assert world.output("s") == "hm"


@pytest.mark.parametrize(
    ("written", "first"), [("required", ToolChoice("required")), ({"name": "echo"}, ToolChoice("tool", "echo"))]
)
def test_a_forced_call_is_forced_once(written: Any, first: ToolChoice) -> None:
    """After it the model is free to answer: forced again and again, it never could."""
    world = loop(calls("echo", text="x"), "the answer", tool_choice=written)
    assert [request.tool_choice for request in world.provider.requests] == [first, ToolChoice("auto")]
    assert world.output("s") == "the answer"


def test_a_choice_that_is_not_offered_fails_the_step_for_good() -> None:
    """No call is made."""
    world = loop("x", tool_choice={"name": "other"})
    assert world.errors["s"] == "`tool_choice` names `other`, which isn't one of the step's `tools`"
    assert world.result.step_results["s"].error_classification == "permanent"
    assert world.provider.requests == []


def test_tools_can_be_forbidden() -> None:
    """The model knows them, and may not call them; what it calls all the same isn't run."""
    world = loop(says("no need", calls("echo")), tool_choice="none")
    assert [request.tool_choice.mode for request in world.provider.requests] == ["none"]
    assert world.tools.calls == []
    assert world.output("s") == "no need"


def test_each_call_has_a_key_of_its_own_and_a_repeated_attempt_the_same() -> None:
    """Keys of requests and of tools; another attempt has others."""
    keys: list[str] = []

    def keyed(**arguments: Any) -> str:
        keys.append(idempotency_key())
        return "x"

    replies = (says("", calls("k", "a"), calls("k", "b")), calls("k", "a"), "done")
    worlds = [
        run(flow(ask("s", tools=[{"name": "k"}])), {"s": turns(*replies)}, {"k": keyed}, run_id="r") for _ in range(2)
    ]
    asked = [[request.idempotency_key for request in world.provider.requests] for world in worlds]
    assert asked[0] == asked[1]
    assert len(set(asked[0])) == 3
    assert sorted(keys[:3]) == sorted(keys[3:])
    assert len({*keys, *asked[0]}) == 6


def test_a_failed_call_fails_the_attempt_and_the_next_begins_anew() -> None:
    """RT-1: tools run again; what was spent counts."""
    world = loop(calls("echo", text="1"), ProviderError("dropped"), calls("echo", text="2"), "done")
    assert world.tools.calls == [("echo", {"text": "1"}), ("echo", {"text": "2"})]
    assert [len(request.messages) for request in world.provider.requests] == [1, 3, 1, 3]
    assert world.result.step_results["s"].cost_usd == 1.5


def test_a_budget_is_looked_at_after_the_step() -> None:
    """BU-1, as documented: no check inside a step, so that its loop may go over; it keeps its result, and nothing follows."""
    steps = [ask("s", tools=ECHO), ask("t", "s")]
    world = run(
        flow(*steps, config={"budget_usd": 0.6}), {"s": turns(calls("echo"), calls("echo"), "done")}, {"echo": echo}
    )
    assert world.statuses == {"s": "success"}
    assert world.result.status == "budget_exceeded"
    assert world.result.total_cost_usd == 1.5


def test_a_tool_that_hangs_ends_with_the_steps_time() -> None:
    """Its sibling, too: nothing is left running."""
    ended: list[str] = []

    async def hang(**arguments: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("hang")

    world = loop(
        says("", calls("hang"), calls("hang", "h2")), "never", tools={"hang": hang}, timeout=5, retry={"max_retries": 0}
    )
    assert world.statuses == {"s": "timeout"}
    assert ended == ["hang", "hang"]


def test_intermediate_and_final_texts_are_streamed() -> None:
    """Piece by piece, in order."""
    world = loop(says("let me see", calls("echo", text="x")), "all done", stream=True)
    assert world.text_of("s") == ["let", "me", "see", "all", "done"]
    assert all(request.stream for request in world.provider.requests)


def test_what_a_tool_gives_is_never_read_as_a_template() -> None:
    """Nor are the model's own arguments."""
    world = loop(calls("echo", text="{state.secret}"), "{state.secret}")
    assert world.tools.calls == [("echo", {"text": "{state.secret}"})]
    assert told(world)[0].content == world.output("s") == "{state.secret}"


def test_what_only_its_provider_understands_goes_back_with_the_turn() -> None:
    """Signed reasoning, for example."""
    world = loop(says("", calls("echo"), carried={"mock": {"signature": "s"}}), "done")
    assert world.provider.requests[1].messages[1].carried == {"mock": {"signature": "s"}}


def test_reasoning_is_asked_for_and_kept() -> None:
    """`thinking`; that of all turns, unless `capture_reasoning` is off."""
    replies = (says("", calls("echo"), reasoning="first"), says("done", reasoning="then"))
    for capture in (True, False):
        thinking = {"enabled": True, "budget_tokens": 100, "level": "low", "capture_reasoning": capture}
        world = loop(*replies, thinking=thinking)
        asked = {request.reasoning for request in world.provider.requests}
        assert [reasoning._asdict() for reasoning in asked if reasoning] == [{"budget_tokens": 100, "level": "low"}]
        metadata = world.result.step_results["s"].prompt_metadata
        assert metadata is not None
        assert metadata.get("reasoning") == ("first\n\nthen" if capture else None)


def test_a_tool_in_a_thread_that_is_given_up_holds_nobody() -> None:
    """A registered function blocks in a thread of its own; the step's time holds all the same."""
    from agentloom.tools.registry import ToolRegistry

    free = threading.Event()
    registry = ToolRegistry()

    def block() -> str:
        free.wait(20)
        return "late"

    registry.register(block)

    async def main() -> str:
        from agentloom.core.engine import WorkflowEngine
        from agentloom.model.workflow import build_workflow
        from agentloom.providers.gateway import ProviderGateway
        from tests.engine.world import Script

        gateway = ProviderGateway()
        gateway.register(Script({"s": turns(calls("block"), "never")}))
        step = ask("s", tools=[{"name": "block"}], timeout=0.05, retry={"max_retries": 0})
        engine = WorkflowEngine(build_workflow(flow(step)), gateway, registry)
        return (await engine.run()).step_results["s"].status

    try:
        assert anyio.run(main) == "timeout"
    finally:
        free.set()


def test_results_of_tools_are_told_as_one_text_each() -> None:
    """A structure reads back from its text."""
    value = {"rows": [{"id": 1, "name": "Ann"}]}
    world = loop(calls("rows"), "done", tools={"rows": lambda: value})
    assert json.loads(told(world)[0].content) == value


def test_braces_of_the_state_are_not_rendered_again() -> None:
    """A prompt is rendered once."""
    world = run(
        flow(ask("s", prompt="{state.a}", tools=ECHO), state={"a": "{state.b} {{x}}", "b": "no"}), tools={"echo": echo}
    )
    assert world.provider.prompts()["s"] == "{state.b} {{x}}"
