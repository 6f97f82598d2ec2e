"""The state: output paths, what they refuse, and that nobody sees what is written later (ST-*)."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom.core.state import State
from agentloom.core.state_manager import StateManager
from agentloom.errors import StateWriteError, UsageError
from agentloom.language.paths import StatePath, parse_output_path
from tests.engine.world import ask, flow, run, use


def parts(path: str) -> tuple[str | int, ...]:
    """Return the parts of a path that is one."""
    found = parse_output_path(path)
    assert isinstance(found, StatePath)
    return found.parts


def test_the_state_starts_from_the_file_and_what_the_caller_adds() -> None:
    """ST-1: the caller wins."""
    world = run(flow(ask("a", prompt="{state.x} {state.y} {state.z}"), state={"x": 1, "y": 2}), state={"y": 3, "z": 4})
    assert world.provider.prompts()["a"] == "1 3 4"


def test_a_dotted_output_writes_into_nested_mappings() -> None:
    """ST-1: missing mappings are made, others kept, and each successful step also stands under `steps.<id>`."""
    world = run(
        flow(ask("a", output="report.parts.first"), ask("b", output="report.n"), ask("c"), state={"report": {"n": 1}})
    )
    assert world.result.final_state == {
        "report": {"n": "b", "parts": {"first": "a"}},
        "steps": {name: {"output": name, "status": "success"} for name in ("a", "b", "c")},
    }


@pytest.mark.parametrize(
    ("path", "after"),
    [
        ("l[0]", {"l": ["new", {"k": 1}], "s": "text", "n": None}),
        ("l[-2]", {"l": ["new", {"k": 1}], "s": "text", "n": None}),
        ("l[1].k", {"l": [0, {"k": "new"}], "s": "text", "n": None}),
        ("l[-1].other.deep", {"l": [0, {"k": 1, "other": {"deep": "new"}}], "s": "text", "n": None}),
        ("s", {"l": [0, {"k": 1}], "s": "new", "n": None}),
        ("new", {"l": [0, {"k": 1}], "s": "text", "n": None, "new": "new"}),
    ],
)
def test_paths_write_with_dots_and_numbers(path: str, after: dict[str, Any]) -> None:
    """ST-2: negative numbers count from the end."""
    state = State({"l": [0, {"k": 1}], "s": "text", "n": None})
    state.write(parts(path), "new")
    assert state.root == {**after, "steps": {}}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("l[2]", "output path `l[2]` can't be written; `l` has 2 items, and lists are never extended"),
        ("l[-3].k", "output path `l[-3].k` can't be written; `l` has 2 items, and lists are never extended"),
        ("l.k", "output path `l.k` can't be written; `l` is a list; write the number of an item in brackets"),
        ("s.k", "output path `s.k` can't be written; `s` is a text, not a mapping"),
        ("s[0]", "output path `s[0]` can't be written; `s` is a text, not a mapping"),
        ("n.k", "output path `n.k` can't be written; `n` is null, not a mapping"),
        ("d[0]", "output path `d[0]` can't be written; `d` is a mapping, which has no numbered items"),
        ("new[0]", "output path `new[0]` can't be written; `new` doesn't exist, and lists are never made"),
        (
            "d.new.x[0].y",
            "output path `d.new.x[0].y` can't be written; `d.new.x` doesn't exist, and lists are never made",
        ),
        ("l[0].a.b", "output path `l[0].a.b` can't be written; `l[0]` is a number, not a mapping"),
        ("steps.a", "output path `steps.a` is reserved for step results; use another key"),
        ("steps", "output path `steps` is reserved for step results; use another key"),
    ],
)
def test_what_the_state_refuses_changes_nothing(path: str, says: str) -> None:
    """ST-2: through a scalar, past a list's end, through a list by name, into `steps`."""
    before = {"l": [0, {"k": 1}], "s": "text", "n": None, "d": {}}
    state = State(copy.deepcopy(before))
    with pytest.raises(StateWriteError) as caught:
        state.write(parts(path), "new")
    assert str(caught.value) == says
    assert state.root == {**before, "steps": {}}


def test_a_refused_output_path_fails_the_step_for_good_before_it_costs_anything() -> None:
    """RT-2: permanent. The call isn't even made."""
    world = run(flow(ask("a", output="name.first"), ask("b", "a")), state={"name": "Ann"})
    result = world.result.step_results["a"]
    assert (result.status, result.error_classification, result.cost_usd) == ("failed", "permanent", 0)
    assert result.error == "output path `name.first` can't be written; `name` is a text, not a mapping"
    assert world.statuses["b"] == "skipped"
    assert world.provider.requests == []


def test_siblings_whose_outputs_exclude_each_other() -> None:
    """ST-2, SC-5: merged in the order of the file, so the step that comes second in the file is refused."""
    world = run(
        flow(ask("b", output="key"), ask("a", output="key.deep"), ask("c", output="ok.deep"), ask("d", output="ok.x"))
    )
    assert world.statuses == {"b": "success", "a": "failed", "c": "success", "d": "success"}
    assert world.result.step_results["a"].error_classification == "permanent"
    assert world.result.step_results["a"].cost_usd == 0.5, "the call was made, and counts"
    assert world.result.final_state["key"] == "b"
    assert "a" not in world.result.final_state["steps"]
    assert world.finished[-1] == "a", "its last event tells of the failure"
    broken = run(flow(ask("b", output="key"), ask("a", output="key.deep")), state={"key": {}})
    assert broken.statuses == {"b": "success", "a": "failed"}
    mended = run(
        flow(use("b", "make", output="key"), ask("a", output="key.deep"), state={"key": "text"}), tools={"make": dict}
    )
    assert mended.result.final_state["key"] == {"deep": "a"}
    turned = run(flow(ask("a", output="key.deep"), ask("b", output="key")))
    assert turned.statuses == {"a": "success", "b": "success"}
    assert turned.result.final_state["key"] == "b"


def test_a_value_under_two_keys_stays_two_values() -> None:
    """Writing below one key doesn't reach the step's own result, nor the workflow's `state:`."""
    world = run(
        flow(
            use("t", "make", output="data"),
            ask("a", "t", output="data.more.deep"),
            ask("b", "a", output="given.k"),
            state={"given": {"k": 0}},
        ),
        tools={"make": lambda: {"more": {"n": 1}}},
    )
    state = world.result.final_state
    assert state["data"] == {"more": {"n": 1, "deep": "a"}}
    assert state["steps"]["t"]["output"] == {"more": {"n": 1}}
    assert world.output("t") == {"more": {"n": 1}}


@pytest.mark.parametrize("key", ["steps"])
def test_steps_is_no_state_key(key: str) -> None:
    """ST-1: refused before anything runs."""
    with pytest.raises(UsageError, match="state key `steps` is reserved"):
        run(flow(ask("a")), state={key: {}})


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"a": {"b": [1, object()]}}, "`state.a.b[1]` is a `object`, which is no plain data"),
        ({"a": float("nan")}, "`state.a` is `nan`, which JSON has no number for"),
        ({"a": {1: 2}}, "`state.a` has the key `1`, which is no text"),
    ],
)
def test_a_state_that_is_no_plain_data_is_refused(state: dict[str, Any], says: str) -> None:
    """The place is named, and nothing runs."""
    with pytest.raises(UsageError) as caught:
        run(flow(ask("a")), state=state)
    assert str(caught.value) == says


def test_the_callers_state_is_not_touched() -> None:
    """Neither the mapping nor what lies in it."""
    given_state = {"d": {"n": 1}, "l": (1, 2)}
    world = run(flow(ask("a", output="d.n"), ask("b", "a", output="l[0]")), state=given_state)
    assert given_state == {"d": {"n": 1}, "l": (1, 2)}
    assert world.result.final_state["l"] == ["b", 2]


def test_the_state_manager_reads_and_writes_by_paths() -> None:
    """PY-1: get, set, update, snapshot."""
    source = {"a": {"n": 1}, "l": [1, 2]}
    manager = StateManager(source)
    manager.set("a.b.c", [1])
    manager.set("l[-1]", 3)
    assert manager.get("a.b.c[0]") == 1
    assert manager.get("a.missing", "default") is manager.get("a..", "default") == "default"
    assert manager.update("a.n", lambda n: n + 1) == 2
    assert manager.update("count", lambda n: n + 1, default=0) == 1
    snapshot = manager.snapshot()
    assert snapshot == {"a": {"n": 2, "b": {"c": [1]}}, "l": [1, 3], "count": 1, "steps": {}}
    snapshot["a"]["n"] = "mine"
    assert manager.get("a.n") == 2
    assert source == {"a": {"n": 1}, "l": [1, 2]}
    with pytest.raises(StateWriteError):
        manager.set("a.n.x", 1)
    with pytest.raises(StateWriteError, match="no path in the state"):
        manager.set("a..b", 1)
    with pytest.raises(ZeroDivisionError):
        manager.update("a.n", lambda n: n / 0)
    assert manager.get("a.n") == 2


def test_updates_from_several_threads_lose_nothing() -> None:
    """PY-1: while one thread changes a value, another waits for it."""
    manager = StateManager({"n": 0, "log": []})
    other = threading.Thread(target=lambda: manager.update("n", lambda n: n + 10))

    def while_another_wants_it(n: int) -> int:
        other.start()
        other.join(0.05)  # without a lock it would be done by then
        return n + 1

    manager.update("n", while_another_wants_it)
    other.join()
    assert manager.get("n") == 11
    manager.update("log", lambda log: [*log, manager.update("n", lambda n: n + 1)])  # one may lie in another
    assert manager.snapshot()["log"] == [12]


KEYS = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(st.one_of(KEYS, st.integers(-2, 2)), min_size=1, max_size=4).filter(
    lambda path: isinstance(path[0], str)
)
VALUES = st.recursive(
    st.one_of(st.integers(0, 3), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=2)),
    max_leaves=5,
)


def naive_write(root: dict[str, Any], path: list[str | int], value: Any) -> dict[str, Any] | None:
    """Return a copy of ``root`` with the value at the path; None where the format refuses that."""
    root = copy.deepcopy(root)
    at: Any = root
    for part in path[:-1]:
        if isinstance(part, str) and isinstance(at, dict):
            at = at.setdefault(part, {})
        elif isinstance(part, int) and isinstance(at, list) and -len(at) <= part < len(at):
            at = at[part]
        else:
            return None
    last = path[-1]
    into_mapping = isinstance(last, str) and isinstance(at, dict)
    into_list = isinstance(last, int) and isinstance(at, list) and -len(at) <= last < len(at)
    if not into_mapping and not into_list:
        return None
    at[last] = value
    return root


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.lists(st.tuples(PATHS, VALUES, st.booleans()), max_size=8),
)
def test_writing_in_place_looks_like_copying_everything(
    initial: dict[str, Any], writes: list[tuple[list[str | int], Any, bool]]
) -> None:
    """Any writes give what copies of the whole state would give; what was shared, given or stored is never changed."""
    kept = copy.deepcopy(initial)
    state = State(initial)
    expected: dict[str, Any] = {**copy.deepcopy(initial), "steps": {}}
    shared: list[tuple[Any, Any]] = []
    for number, (path, value, share) in enumerate(writes):
        if share:
            snapshot = state.share()
            shared.append((snapshot, copy.deepcopy(snapshot)))
        before = copy.deepcopy(value)
        after = naive_write(expected, path, copy.deepcopy(value))
        if after is None:
            with pytest.raises(StateWriteError):
                state.write(path, value)
        else:
            state.write(path, value)
            expected = after
        state.record(f"s{number}", value)
        expected["steps"][f"s{number}"] = {"output": before, "status": "success"}
        assert state.root == expected
        shared.append((value, before))
    assert initial == kept
    for now, then in shared:
        assert now == then


def test_the_whole_state_is_the_whole_state() -> None:
    """`{state}` is everything as it stood when the layer began, in prompts and in arguments, whatever else the step reads."""
    start = {"a": 1, "b": {"c": "x"}}
    world = run(
        flow(
            ask("p", prompt="{state}"),
            use("t", "keep", tool_args={"arg": "{state}", "other": "{a}"}, output="seen"),
            ask("q", "p", "t", prompt="{b.c} {state.steps.p.status} {state}"),
            state=start,
        ),
        tools={"keep": lambda **arguments: "kept"},
    )
    assert world.provider.prompts()["p"] == '{"a":1,"b":{"c":"x"},"steps":{}}'
    assert world.tools.calls[0][1]["arg"] == {**start, "steps": {}}
    assert world.provider.prompts()["q"].startswith('x success {"a":1,"b":{"c":"x"},"steps":{"p":{')
    assert '"seen":"kept"' in world.provider.prompts()["q"]
