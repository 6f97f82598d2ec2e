"""Routers, branches, and steps that are skipped (RO-*, SC-6, SC-7, OF-1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.world import FAIL, ask, flow, route, run

UP = "skipped due to upstream failure: "


def test_the_first_true_condition_wins() -> None:
    """RO-1: in the order of the file; the result is the chosen step's id, which `output` stores too."""
    router = {
        "id": "r",
        "type": "router",
        "conditions": [
            {"expression": "state.n > 5", "target": "big"},
            {"expression": "state.n > 1", "target": "middle"},
            {"expression": "state.n > 0", "target": "small"},
        ],
        "default": "none",
        "output": "way",
    }
    steps = [router, *(ask(name, "r") for name in ("big", "middle", "small", "none"))]
    for n, chosen in {9: "big", 3: "middle", 1: "small", 0: "none"}.items():
        world = run(flow(*steps, state={"n": n}))
        assert world.result.status == "success"
        assert world.output("r") == chosen
        assert world.result.final_state["way"] == chosen
        assert world.result.final_state["steps"]["r"] == {"output": chosen, "status": "success"}
        assert [name for name, status in world.statuses.items() if status == "success"] == ["r", chosen]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("state.n == 2", "no condition is true; give the router a `default`"),
        ("state.missing.deep == 1", "condition `state.missing.deep == 1`: "),
        ("state.n <", "condition `state.n <`: "),
        ("__import__('os')", "condition `__import__('os')`: "),
        ("state.t.format(state.n)", "condition `state.t.format(state.n)`: "),
    ],
)
def test_every_failure_of_a_router_is_permanent(expression: str, says: str) -> None:
    """RO-2: no match, an exception, a syntax error, a forbidden expression."""
    world = run(flow(route("r", a=expression), ask("a", "r"), state={"n": 1, "t": "x"}))
    result = world.result.step_results["r"]
    assert (result.status, result.error_classification) == ("failed", "permanent")
    assert result.error is not None
    assert result.error.startswith(says)
    assert world.result.status == "failed"
    assert world.errors["a"] == f"{UP}r"


def test_a_router_without_conditions_takes_its_default() -> None:
    """RO-2: conditions or a default, not necessarily both."""
    assert run(flow(route("r", default="a"), ask("a", "r"))).statuses == {"r": "success", "a": "success"}


def test_dependants_run_only_if_chosen_and_all_that_follows_is_skipped() -> None:
    """SC-6, SC-7: `y` wasn't chosen, so it, what follows it, and the join with the taken branch are skipped without an error."""
    world = run(
        flow(
            route("r", x="True", y="True"),
            ask("x", "r"),
            ask("y", "r"),
            ask("x2", "x"),
            ask("y2", "y"),
            ask("join", "x2", "y2"),
            ask("last", "join"),
        )
    )
    skipped = ["y", "y2", "join", "last"]
    assert [name for name, status in world.statuses.items() if status == "skipped"] == skipped
    assert world.skipped == skipped
    assert world.errors == {}
    assert world.result.status == "success"
    assert sorted(world.provider.prompts()) == ["x", "x2"]


def test_a_target_that_does_not_depend_on_its_router_always_runs() -> None:
    """RO-1: only `depends_on` gates; the file check warns (AL208)."""
    world = run(flow(route("r", a="False", b="True"), ask("a"), ask("b", "r")))
    assert world.statuses == {"r": "success", "a": "success", "b": "success"}


def test_a_step_behind_two_routers_needs_both() -> None:
    """SC-6: `both` runs only if `r` and `q` chose it."""

    def both(r: str, q: str) -> str:
        steps = [
            route("r", both=r, default="other"),
            route("q", both=q, default="other"),
            ask("both", "r", "q"),
            ask("other"),
        ]
        return run(flow(*steps)).statuses["both"]

    assert [both(r, q) for r in ("True", "False") for q in ("True", "False")] == [
        "success",
        "skipped",
        "skipped",
        "skipped",
    ]


def test_routers_decide_by_results_of_steps() -> None:
    """RX-5: `steps.<id>` of a step that succeeded; None for one that failed or never ran, not `failed`."""
    world = run(
        flow(
            ask("ok", prompt="yes"),
            ask("bad"),
            route(
                "r", "ok", "bad", a="steps.ok.output == 'yes' and steps.ok.status == 'success' and steps.bad is None"
            ),
            ask("a", "r"),
            config={"on_step_failure": "continue"},
        ),
        {"bad": FAIL},
    )
    assert world.statuses == {"ok": "success", "bad": "failed", "r": "success", "a": "success"}
    assert world.result.status == "failed"


def test_a_failure_skips_everything_after_it_and_nothing_else() -> None:
    """OF-1, SC-7: also what has other dependencies that succeeded; other branches go on; each names its closest failed ancestor."""
    world = run(
        flow(
            ask("fetch"),
            ask("other"),
            ask("read", "fetch"),
            ask("mix", "read", "other"),
            ask("free", "other"),
            ask("free2", "free"),
        ),
        {"fetch": FAIL},
    )
    assert world.statuses == {
        "fetch": "failed",
        "other": "success",
        "read": "skipped",
        "mix": "skipped",
        "free": "success",
        "free2": "success",
    }
    assert world.errors == {"fetch": str(FAIL), "read": f"{UP}fetch", "mix": f"{UP}fetch"}
    assert world.result.status == "failed"
    assert world.result.error == f"step `fetch` failed: {FAIL}"


def test_the_closest_failed_ancestor_is_named() -> None:
    """SC-7: `far` is three dependencies away, `near` one; of two equally near, the first in `depends_on`."""
    world = run(
        flow(
            ask("far"),
            ask("b", "far"),
            ask("c", "b"),
            ask("ok"),
            ask("near", "ok"),
            ask("also", "ok"),
            ask("end", "c", "near"),
            ask("tie", "near", "also"),
            ask("tie2", "also", "near"),
        ),
        {"far": FAIL, "near": FAIL, "also": FAIL},
    )
    assert world.errors["c"] == f"{UP}far"
    assert world.errors["end"] == f"{UP}near"
    assert (world.errors["tie"], world.errors["tie2"]) == (f"{UP}near", f"{UP}also")


def test_the_steps_of_the_failed_layer_finish() -> None:
    """OF-1: a failure cancels nobody."""
    world = run(flow(ask("a"), ask("b"), ask("c")), {"a": FAIL})
    assert world.statuses == {"a": "failed", "b": "success", "c": "success"}


def test_continue_runs_what_depends_on_a_failed_step() -> None:
    """OF-1: on what the state holds; the failed step wrote nothing, neither its key nor `steps.<id>`."""
    world = run(
        flow(
            ask("a", output="key"),
            ask("b", "a", prompt="<{state.key}|{state.steps.a.output}>"),
            ask("c", "b"),
            config={"on_step_failure": "continue"},
        ),
        {"a": FAIL},
    )
    assert world.statuses == {"a": "failed", "b": "success", "c": "success"}
    assert world.provider.prompts()["b"] == "<|>"
    assert "key" not in world.result.final_state
    assert "a" not in world.result.final_state["steps"]
    assert world.result.status == "failed"


def test_continue_runs_no_branch_of_a_failed_router() -> None:
    """OF-1: its branches and everything after them are skipped."""
    world = run(
        flow(
            route("r", x="state.missing.deep"),
            ask("x", "r"),
            ask("y", "x"),
            ask("free"),
            config={"on_step_failure": "continue"},
        )
    )
    assert world.statuses == {"r": "failed", "x": "skipped", "y": "skipped", "free": "success"}
    assert world.errors["x"] == world.errors["y"] == f"{UP}r"


def test_a_branch_not_taken_keeps_quiet_about_failures_elsewhere_under_continue() -> None:
    """SC-7: `join` is skipped because of the router; the failed step alone would have let it run."""
    steps: list[Any] = [
        route("r", x="False", default="z"),
        ask("x", "r"),
        ask("z", "r"),
        ask("bad"),
        ask("join", "x", "bad"),
    ]
    world = run(flow(*steps, config={"on_step_failure": "continue"}), {"bad": FAIL})
    assert world.statuses["join"] == "skipped"
    assert "join" not in world.errors


def test_several_failures_are_counted_in_the_runs_error() -> None:
    """SS-1: one line for the whole run."""
    world = run(flow(ask("a"), ask("b"), ask("c", "a")), {"a": FAIL, "b": FAIL})
    assert world.result.error == "2 steps failed: `a`, `b`"
