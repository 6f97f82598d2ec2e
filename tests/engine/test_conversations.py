"""Conversations (LC-7 to LC-9): what is sent, what is kept, what is left out when there is too much of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing.files import FileCheckpointer
from agentloom.core.keeping.runs import load_run
from agentloom.core.redaction import sentinel
from agentloom.errors import ProviderError, RecordingMismatchError
from agentloom.providers.base import Request, ToolCall
from agentloom.steps.conversation import read_conversation
from agentloom.steps.trimming import tokens_of
from tests.engine.replies import calls, says, turns
from tests.engine.world import World, ask, flow, run, sub


def talk(value: Any = None, *replies: Any, prompt: str | None = "next", **step: Any) -> World:
    """Run one step in a conversation that stands in the state under `chat`; None for none yet."""
    state = {} if value is None else {"chat": value}
    made = ask("s", conversation="chat", **step)
    if prompt is None:
        del made["prompt"]
    else:
        made["prompt"] = prompt
    return run(flow(made, state=state), {"s": turns(*(replies or ("answer",)))})


def said(world: World, at: int = -1) -> list[tuple[str, str]]:
    """Return what a request sent."""
    return [(message.role, message.content) for message in world.provider.requests[at].messages]


def kept(world: World) -> list[tuple[str, str]]:
    """Return the messages of the conversation afterwards."""
    return [(message["role"], message["content"]) for message in world.result.final_state["chat"]["messages"]]


def user(text: str, **more: Any) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": text, **more}


def bot(text: str, **more: Any) -> dict[str, Any]:
    """Return the model's message."""
    return {"role": "assistant", "content": text, **more}


def system(text: str) -> dict[str, Any]:
    """Return a system message."""
    return {"role": "system", "content": text}


def test_a_conversation_begins_with_nothing_and_grows() -> None:
    """Prompt and answer are added; the next step sends them; the whole object is written back."""
    steps = [
        ask("a", conversation="talk.chat", prompt="one"),
        ask("b", "a", conversation="talk.chat", prompt="two", output="o"),
    ]
    world = run(flow(*steps), {"a": "first", "b": "second"})
    assert said(world, 1) == [("user", "one"), ("assistant", "first"), ("user", "two")]
    assert world.result.final_state["talk"]["chat"] == {
        "messages": [user("one"), bot("first"), user("two"), bot("second")],
        "metadata": {},
        "token_budget": None,
        "trim_policy": "drop_oldest",
        "summary": None,
    }
    assert world.result.final_state["o"] == "second"
    metadata = world.result.step_results["b"].prompt_metadata
    assert metadata is not None
    assert metadata["conversation"] == {"turns": 3, "tokens": 5 + 6 + 5, "dropped": 0}


@pytest.mark.parametrize("value", [None, [], {}, {"messages": []}, {"messages": None, "summary": ""}])
def test_what_counts_as_a_new_conversation(value: Any) -> None:
    """Missing, null, an empty list, an empty mapping."""
    assert said(talk(value)) == [("user", "next")]


def test_a_bare_list_of_messages_is_a_conversation() -> None:
    """It is written back as a mapping like every other."""
    world = talk([user("hi"), bot("hello")])
    assert said(world) == [("user", "hi"), ("assistant", "hello"), ("user", "next")]
    assert kept(world) == [("user", "hi"), ("assistant", "hello"), ("user", "next"), ("assistant", "answer")]


def test_what_the_conversation_carries_stays() -> None:
    """Metadata, budget and policy, and the metadata of messages, which no provider gets."""
    value = {
        "messages": [user("hi", metadata={"id": 1})],
        "metadata": {"who": "Ann"},
        "token_budget": 1000,
        "trim_policy": "drop_pairs",
    }
    world = talk(value)
    after = world.result.final_state["chat"]
    assert after["messages"][0] == user("hi", metadata={"id": 1})
    assert {key: after[key] for key in ("metadata", "token_budget", "trim_policy")} == {
        "metadata": {"who": "Ann"},
        "token_budget": 1000,
        "trim_policy": "drop_pairs",
    }


def test_without_a_prompt_the_last_turn_is_answered() -> None:
    """A user's, or the results of tools."""
    assert said(talk([bot("hi"), user("what?")], prompt=None)) == [("assistant", "hi"), ("user", "what?")]
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": "f", "arguments": {"x": 1}}]}
    result = {"role": "tool", "content": "3", "tool_call_id": "c", "name": "f"}
    world = talk([user("add"), asked, result, system("a note")], prompt=None)
    sent = world.provider.requests[0].messages
    assert [message.role for message in sent] == ["user", "assistant", "tool", "system"]
    assert sent[1].tool_calls == (ToolCall("c", "f", {"x": 1}),)
    assert (sent[2].tool_call_id, sent[2].name) == ("c", "f")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "has no turns yet"),
        ([system("x")], "has no turns yet"),
        ([user("x"), bot("y")], "ends with the assistant's turn"),
    ],
)
def test_without_a_prompt_there_must_be_something_to_answer(value: Any, why: str) -> None:
    """Permanent: another attempt would find the same."""
    world = talk(value, prompt=None)
    assert world.errors["s"] == f"the conversation {why}; give the step a `prompt`, or let the last turn be the user's"
    assert world.result.step_results["s"].error_classification == "permanent"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("text", "conversation `chat` must be a mapping with `messages`, or a list of them, not a text"),
        ({"messages": "x"}, "conversation `chat.messages` must be a list of messages, not a text"),
        ({"mesages": []}, "conversation `chat` has the unknown key `mesages`; did you mean `messages`?"),
        ({"token_budget": 0}, "conversation `chat`: `token_budget` must be a whole number from 1 up"),
        ({"token_budget": True}, "conversation `chat`: `token_budget` must be a whole number from 1 up"),
        (
            {"trim_policy": "drop"},
            "conversation `chat`: `trim_policy` must be `drop_oldest`, `drop_pairs` or `summarize_oldest`",
        ),
        ({"metadata": []}, "conversation `chat`: `metadata` must be a mapping, not a list"),
        ({"summary": 3}, "conversation `chat`: `summary` must be a text, not a whole number"),
        (["hi"], "conversation message `chat[0]` must be a mapping with `role` and `content`, not a text"),
        (
            [user("x"), {"role": "robot", "content": ""}],
            "conversation message `chat[1]`: `role` must be `system`, `user`, `assistant` or `tool`",
        ),
        ([{"role": "user"}], "conversation message `chat[0]`: `content` must be a text"),
        (
            {"messages": [user("x", nam="Ann")]},
            "conversation message `chat.messages[0]` has the unknown key `nam`; did you mean `name`?",
        ),
        ([user("x", name=3)], "conversation message `chat[0]`: `name` must be a text"),
        (
            [bot("x", tool_calls=["f"])],
            "conversation message `chat[0]`: `tool_calls` must be a list of calls with `id`, `name` and `arguments`",
        ),
    ],
)
def test_an_unusable_conversation_fails_the_step_for_good(value: Any, why: str) -> None:
    """LC-7: nothing is asked, and nothing is written."""
    world = talk(value)
    assert world.errors["s"] == why
    assert world.result.step_results["s"].error_classification == "permanent"
    assert world.provider.requests == []
    assert world.result.final_state["chat"] == value


@pytest.mark.parametrize("value", [{"messages": [user("x"), bot("y")]}, [user("x")], {"token_budget": 5}, "text"])
def test_a_conversation_that_came_back_redacted_is_told_as_that(value: Any) -> None:
    """RD-4: a resume has of a secret conversation what stands for it; the step says how to go on. Texts alone may be redacted."""
    world = talk(sentinel(value))
    assert world.errors["s"] == "conversation `chat` is redacted; give it again with `--state`"
    assert world.provider.requests == []
    assert talk([user(str(sentinel("x")))]).result.status == "success"


def test_attachments_need_a_turn_of_the_users() -> None:
    """Results of tools hold no pictures: told before anything is asked."""
    chat = [
        user("x"),
        bot("", tool_calls=[{"id": "c", "name": "f", "arguments": {}}]),
        {"role": "tool", "content": "r"},
    ]
    world = talk(chat, prompt=None, attachments=[{"source": "data:image/png;base64,iVBORw0KGgo="}])
    assert world.errors["s"].startswith(
        "attachments go along with a user's turn, and the conversation ends with a tool's"
    )
    assert world.provider.requests == []


def test_the_system_prompt_is_added_once() -> None:
    """If the conversation has no system message; one that is there stays, and the step's own isn't sent."""
    world = talk([user("hi"), bot("hello")], system_prompt="Be brief.")
    assert said(world)[0] == kept(world)[0] == ("system", "Be brief.")
    other = talk([system("Be long."), user("hi"), bot("hello")], system_prompt="Be brief.")
    assert [text for role, text in said(other) if role == "system"] == ["Be long."]


def test_speakers_share_a_conversation() -> None:
    """Their turns carry their names; each sends its own system prompt, which isn't kept."""
    steps = [
        ask("a", conversation="chat", prompt="begin", speaker="Ann", system_prompt="You are Ann."),
        ask("b", "a", conversation="chat", prompt="reply", speaker="Bob", system_prompt="You are Bob."),
    ]
    world = run(flow(*steps), {"a": "hi Bob", "b": "hi Ann"})
    assert said(world, 1) == [("system", "You are Bob."), ("user", "begin"), ("assistant", "hi Bob"), ("user", "reply")]
    assert world.result.final_state["chat"]["messages"] == [
        user("begin", name="Ann"),
        bot("hi Bob", name="Ann"),
        user("reply", name="Bob"),
        bot("hi Ann", name="Bob"),
    ]


def test_only_the_final_text_of_a_tool_loop_is_kept() -> None:
    """LC-8: never the calls, nor a text beside them."""
    step = ask("s", conversation="chat", tools=[{"name": "f"}])
    world = run(flow(step), {"s": turns(says("let me see", calls("f")), "done")}, {"f": lambda: 1})
    assert kept(world) == [("user", "s"), ("assistant", "done")]


def test_an_empty_answer_leaves_no_turn() -> None:
    """Some providers refuse empty turns in the next call."""
    assert kept(talk(None, " ")) == [("user", "next")]


def test_a_step_that_fails_leaves_the_conversation_as_it_was() -> None:
    """It writes nothing, also when it failed after a summary was paid for."""
    value = [user("hi"), bot("hello")]
    world = talk(value, ProviderError("no", status_code=400))
    assert world.result.final_state["chat"] == value


def test_structured_replies_are_kept_as_text() -> None:
    """The state gets the value, the conversation what was said."""
    world = talk(None, 'Sure: {"a": 1}', response_schema={}, output="o")
    assert kept(world)[-1] == ("assistant", 'Sure: {"a": 1}')
    assert world.result.final_state["o"] == {"a": 1}


LONG = "x" * 40  # 10 tokens and the frame's 4


def test_estimates() -> None:
    """LC-9: a quarter of the letters, rounded up, and 4; names, ids and calls count."""
    assert tokens_of(user("")) == 4
    assert tokens_of(user("abcde")) == 6
    assert tokens_of(user(LONG)) == 14
    assert tokens_of(user(LONG, name="Anna")) == 15
    assert tokens_of(bot("", tool_calls=[{"id": "c", "name": "f", "arguments": {}}])) == 4 + 11


def test_drop_oldest_leaves_out_the_oldest_turns() -> None:
    """As few as possible; what was left out is gone from the conversation; system messages at the beginning stay."""
    value = {
        "messages": [system("S"), user("1" + LONG), bot("2" + LONG), user("3" + LONG), bot("4" + LONG)],
        "token_budget": 5 + 5 + 31,
    }
    world = talk(value)
    assert [text[:1] for _, text in said(world)] == ["S", "3", "4", "n"]
    assert [text[:1] for _, text in kept(world)] == ["S", "3", "4", "n", "a"]
    metadata = world.result.step_results["s"].prompt_metadata
    assert metadata is not None
    assert metadata["conversation"] == {"turns": 4, "tokens": 40, "dropped": 2}


def test_drop_pairs_leaves_out_a_turn_with_its_answer() -> None:
    """Where drop_oldest would leave an answer without its question."""
    messages = [user("1" + LONG), bot("2" + LONG), user("3" + LONG), bot("4" + LONG)]
    budget = 3 * 15 + 5
    assert [text[:1] for _, text in said(talk({"messages": messages, "token_budget": budget}))] == ["2", "3", "4", "n"]
    pairs = {"messages": messages, "token_budget": budget, "trim_policy": "drop_pairs"}
    assert [text[:1] for _, text in said(talk(pairs))] == ["3", "4", "n"]


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_pairs"])
def test_results_of_tools_go_with_their_calls(policy: str) -> None:
    """A result without its call is what providers refuse."""
    asked = bot(LONG, tool_calls=[{"id": "c", "name": "f", "arguments": {}}])
    result = {"role": "tool", "content": LONG, "tool_call_id": "c"}
    value = {"messages": [asked, result, bot("done")], "token_budget": 30, "trim_policy": policy}
    assert said(talk(value)) == [("assistant", "done"), ("user", "next")]


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_pairs", "summarize_oldest"])
def test_a_budget_too_small_for_the_turn_fails_the_step_for_good(policy: str) -> None:
    """What is pinned and what is asked must fit; nothing is asked, not even for a summary."""
    value = {"messages": [system(LONG), user("hi")], "token_budget": 18, "trim_policy": policy}
    world = talk(value)
    assert world.errors["s"] == (
        "the conversation's `token_budget` of 18 is too small for the turn, which takes about 19; raise it, or shorten the prompt"
    )
    assert world.result.step_results["s"].error_classification == "permanent"
    assert world.provider.requests == []
    assert talk({**value, "token_budget": 19}).statuses == {"s": "success"}


OLD = {
    "messages": [system("S"), user("one " + LONG * 3, name="Ann"), bot("two " + LONG * 3), user("three")],
    "trim_policy": "summarize_oldest",
    "token_budget": 70,
}


def summarized(summary: Any, value: Any = OLD, **step: Any) -> World:
    """Run one step in a conversation that needs a summary; the model gives this one, then `answer`."""
    made = ask("s", conversation="chat", prompt="next", **step)
    return run(flow(made, state={"chat": value}), {"s": "answer", "s::summarize": summary})


def test_summarize_oldest_sums_up_what_it_leaves_out() -> None:
    """One more call, under a name of its own; the summary is sent as a system message and kept beside the turns."""
    world = summarized(
        "Ann said one.", temperature=1, max_tokens=9, stream=True, tools=[{"name": "f", "description": "d"}]
    )
    first, second = world.provider.requests
    assert (first.step_id, first.max_tokens, first.temperature, first.stream, first.tools) == (
        "s::summarize",
        256,
        0.3,
        False,
        (),
    )
    assert first.messages[-1].content == f"Ann: one {LONG * 3}\nassistant: two {LONG * 3}"
    assert second.step_id == "s"
    assert first.idempotency_key != second.idempotency_key
    assert said(world) == [
        ("system", "S"),
        ("system", "Summary of the conversation so far:\nAnn said one."),
        ("user", "three"),
        ("user", "next"),
    ]
    after = world.result.final_state["chat"]
    assert after["summary"] == "Ann said one."
    assert kept(world) == [("system", "S"), ("user", "three"), ("user", "next"), ("assistant", "answer")]
    assert world.result.step_results["s"].cost_usd == 1.0
    assert world.text_of("s") == ["answer"]


def test_an_earlier_summary_goes_into_the_next() -> None:
    """Nothing is lost that was summed up before."""
    world = summarized("both", {**OLD, "summary": "Before."})
    assert (
        world.provider.requests[0]
        .messages[-1]
        .content.startswith("Summary of the conversation so far:\nBefore.\nAnn: one ")
    )
    assert world.result.final_state["chat"]["summary"] == "both"


def test_a_summary_counts_toward_the_budget() -> None:
    """A long one is cut; what is sent fits."""
    world = summarized("y" * 5000)
    request: Request = world.provider.requests[-1]
    assert sum(tokens_of({"content": message.content}) for message in request.messages) <= 70
    assert world.result.final_state["chat"]["summary"].endswith("y…")


@pytest.mark.parametrize("failure", [ProviderError("busy", status_code=503), ""])
def test_where_no_summary_comes_the_beginning_of_the_turns_has_to_do(failure: Any) -> None:
    """As lines of who said what, cut to the room that there is."""
    world = summarized(failure)
    assert world.statuses == {"s": "success"}
    assert world.result.final_state["chat"]["summary"].startswith("Ann: one xxx")
    assert world.result.final_state["chat"]["summary"].endswith("…")
    warned = ("the conversation could not be summarized, so its beginning is cut: busy",) if failure else ()
    assert world.result.step_results["s"].warnings == warned


def test_a_strict_replay_without_the_summary_fails() -> None:
    """It must not repeat another run than the one that was recorded."""
    world = summarized(RecordingMismatchError("step `s::summarize` is not in the recording"))
    assert world.errors["s"] == "step `s::summarize` is not in the recording"


def test_without_room_for_a_summary_the_oldest_turns_are_dropped() -> None:
    """No call is made for a few words."""
    world = summarized("never asked for", {**OLD, "token_budget": 20})
    assert [request.step_id for request in world.provider.requests] == ["s"]
    assert world.result.final_state["chat"]["summary"] is None


def test_a_refused_conversation_path_costs_nothing() -> None:
    """A path through a text, and one that is the step's output as well."""
    world = run(flow(ask("s", conversation="a.b"), state={"a": "text"}))
    assert world.errors["s"] == "output path `a.b` can't be written; `a` is a text, not a mapping"
    for output in ("chat", "chat.answer"):
        again = run(flow(ask("s", conversation="chat", output=output)))
        assert again.errors["s"] == f"output path `{output}` and conversation `chat` are one place; use another key"
        assert again.provider.requests == []
        assert again.result.step_results["s"].error_classification == "permanent"


def test_a_layer_does_not_see_what_it_says() -> None:
    """SC-3, SC-5: both read the conversation as it was; the last one in the file wins."""
    world = run(flow(ask("a", conversation="chat"), ask("b", conversation="chat")))
    assert [len(request.messages) for request in world.provider.requests] == [1, 1]
    assert kept(world) == [("user", "b"), ("assistant", "b")]


def test_subworkflows_hand_conversations_down_and_up() -> None:
    """A child's turns are in the state that it gives back."""
    world = run(flow(ask("a", conversation="chat"), sub("k", "a", steps=[ask("x", conversation="chat")], output="kid")))
    texts = [message["content"] for message in world.result.final_state["kid"]["chat"]["messages"]]
    assert texts == ["a", "a", "x", "x"]


def test_a_killed_run_goes_on_in_its_conversation(tmp_path: Path) -> None:
    """The journal holds what a finished step wrote to it; the checkpoint holds it once, in the state."""
    from agentloom.core.engine import WorkflowEngine
    from agentloom.core.loader import load_data
    from agentloom.providers.gateway import ProviderGateway
    from tests.engine.world import Script

    data = flow(
        ask("a", conversation="chat"), ask("b", "a", conversation="chat"), state_schema={"token": {"redact": True}}
    )
    store = FileCheckpointer(tmp_path)

    def engine(**answers: Any) -> tuple[WorkflowEngine, Script]:
        gateway, script = ProviderGateway(), Script(answers)
        gateway.register(script)
        return WorkflowEngine(load_data(data, "w"), gateway, checkpointer=store, run_id="r"), script

    journal = {}

    async def stop(request: Request, on_delta: Any) -> str:
        journal["text"] = (tmp_path / "r.journal").read_bytes()
        return "second"

    first, _ = engine(a="first", b=stop)
    anyio.run(first.run)
    saved = json.loads((tmp_path / "r.json").read_text())
    assert "conversation" not in saved["step_results"]["a"]
    assert len(saved["state"]["chat"]["messages"]) == 4
    (tmp_path / "r.json").unlink()
    (tmp_path / "r.journal").write_bytes(journal["text"])  # as a kill would have left it
    again, script = engine(b="second")
    again.go_on(load_run(store, "r"))
    result = anyio.run(again.run)
    assert [request.step_id for request in script.requests] == ["b"]
    assert [message.content for message in script.requests[0].messages] == ["a", "first", "b"]
    assert [message["content"] for message in result.final_state["chat"]["messages"]] == ["a", "first", "b", "second"]


def test_a_secret_conversation_is_redacted_wherever_it_is_kept(tmp_path: Path) -> None:
    """RD-3: in the final state, the checkpoint and the journal; not in memory."""
    seen: list[str] = []

    async def look(request: Request, on_delta: Any) -> str:
        seen.append((tmp_path / "r.journal").read_text())
        return "reply"

    data = flow(
        ask("a", conversation="chat"), ask("b", "a", conversation="chat"), state_schema={"chat": {"redact": True}}
    )
    world = run(data, {"a": "hush-hush", "b": look}, checkpointer=FileCheckpointer(tmp_path), run_id="r")
    assert [message.content for message in world.provider.requests[1].messages] == ["a", "hush-hush", "b"]
    assert "hush-hush" not in json.dumps(world.result.final_state["chat"])
    checkpoint = json.loads((tmp_path / "r.json").read_text())
    assert "hush-hush" not in json.dumps(checkpoint["state"]["chat"])
    outcome = next(line for line in map(json.loads, seen[0].splitlines()) if line["kind"] == "outcome")
    assert "hush-hush" not in json.dumps(outcome["result"]["conversation"])


def test_what_is_said_in_a_secret_conversation_is_told_nowhere_else() -> None:
    """The reply stands at `steps.<id>` and in the result, too: there as well, in events and pieces of a stream; not where an `output` has it."""
    step = ask("a", conversation="chat", stream=True)
    data = flow(step, ask("b", "a", prompt="{state.steps.a.output}"), state_schema={"chat": {"redact": True}})
    world = run(data, {"a": "hush hush"})
    assert world.provider.prompts()["b"] == "hush hush"
    assert str(world.result.step_results["a"].output).startswith("<REDACTED")
    assert world.result.final_state["steps"]["a"]["output"] == world.result.step_results["a"].output
    events = json.dumps([event.to_json() for event in world.events if getattr(event, "step", "") == "a"])
    assert "hush" not in events
    open_ = run({**data, "steps": [{**step, "output": "said"}]}, {"a": "hush hush"})
    assert open_.result.final_state["said"] == open_.output("a") == "hush hush"


def test_prompts_are_kept_without_secrets() -> None:
    """`capture_prompts`: rendered once more over the redacted state."""
    step = ask("a", prompt="Key {state.token} of {state.who}", system_prompt="For {who}")
    data = flow(
        step,
        config={"capture_prompts": True},
        state={"token": "s3cret", "who": "Ann"},
        state_schema={"token": {"redact": True}},
    )
    world = run(data)
    metadata = world.result.step_results["a"].prompt_metadata
    assert metadata is not None
    assert metadata["prompt"].startswith("Key <REDACTED:sha256=")
    assert metadata["prompt"].endswith(" of Ann")
    assert metadata["system_prompt"] == "For Ann"
    assert world.provider.prompts()["a"] == "Key s3cret of Ann"


def test_reading_what_was_written_gives_the_same() -> None:
    """A conversation survives its way through the state."""
    world = summarized("Ann said one.")
    value = world.result.final_state["chat"]
    assert read_conversation(value, "chat").to_json() == value
