"""What every runner owes (R1 … R8), as tests that any of them can be put to.

A *house* is where runs live: a host for the engine, a store of checkpoints, and a way to look at what was kept. ``RunnerContract`` holds the
tests; a subclass says in ``house`` which house they are for. `tests/engine/test_runner_contract.py` has three of them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentloom.checkpointing import BaseCheckpointer, CheckpointData
from agentloom.core.engine import WorkflowEngine
from agentloom.core.events import RunEvent, StepFinished
from agentloom.core.keeping.host import Host
from agentloom.core.loader import load_data
from agentloom.core.results import WorkflowResult
from agentloom.core.runner import Op, Runner, Settle
from agentloom.durable.recorded import Recorded
from agentloom.errors import ProviderError
from agentloom.providers.base import BaseProvider, OnDelta, Request, Response, Usage
from agentloom.providers.gateway import ProviderGateway
from tests.engine.virtual import run_virtual
from tests.engine.world import ask, flow, route, sub

RUN = "r"
LIVES = 200
"""More lives than any workflow here needs."""


class Died(BaseException):
    """The end of the process: nothing catches it, and nothing is tidied up."""


class House(ABC):
    """Where the run `r` lives, over all of its lives."""

    host: Host
    store: BaseCheckpointer

    @abstractmethod
    def left(self) -> CheckpointData | None:
        """Return what the run goes on from; None before it has begun."""

    @abstractmethod
    def recorded(self) -> Recorded:
        """Return what is recorded of the latest life."""

    @abstractmethod
    def texts(self) -> str:
        """Return everything that was written down, as text."""


class Receiver(BaseProvider):
    """The world that calls have an effect on: it remembers idempotency keys, so what comes again has no effect again.

    ``answers`` say what happens to a call, by step: an error, a text, or a function of the request and of how often that step was called.
    """

    name = "mock"
    price = 0.25

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})
        self.calls: Counter[str] = Counter()
        self.keys: dict[str, list[str]] = {}
        self.effects: Counter[str] = Counter()
        self.known: dict[str, str] = {}

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Answer with the prompt, unless something else was said."""
        step, key = request.step_id, request.idempotency_key
        self.calls[step] += 1
        self.keys.setdefault(step, []).append(key)
        answer = self.answers.get(step, request.messages[-1].content)
        if callable(answer):
            answer = await answer(request, self.calls[step])
        if isinstance(answer, BaseException):
            raise answer
        if key not in self.known:
            self.known[key] = answer
            self.effects[step] += 1
        return Response(self.known[key], "m", self.name, Usage(1, 1, 2), self.price, "stop")


class Spy(Host):
    """A host that looks at what goes into its runners."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.batches: list[list[Op]] = []

    def open(self, *args: Any) -> Any:
        """Open what the host opens."""
        return self.host.open(*args)

    def runner(self, *args: Any, **options: Any) -> Runner:
        """Return the host's runner, watched."""
        runner, batches = self.host.runner(*args, **options), self.batches
        performed = runner.perform

        async def perform(ops: Sequence[Op], settle: Settle) -> None:
            batches.append(list(ops))
            await performed(ops, settle)

        runner.perform = perform  # type: ignore[method-assign]
        return runner


class Played:
    """A run to its end: the result, what every life was told, and how many lives it had."""

    def __init__(self) -> None:
        self.result: WorkflowResult | None = None
        self.events: list[RunEvent] = []
        self.lives = 0

    @property
    def end(self) -> WorkflowResult:
        """The result."""
        assert self.result is not None
        return self.result

    @property
    def statuses(self) -> dict[str, str]:
        """How each step ended."""
        return {name: result.status for name, result in self.end.step_results.items()}


async def live(
    house: House,
    data: Mapping[str, Any],
    receiver: Receiver,
    played: Played,
    host: Host | None = None,
    decisions: Mapping[str, str] | None = None,
    **config: Any,
) -> WorkflowResult:
    """Live one life: begin the run, or go on with it. ``config`` changes keys of its `config`."""
    gateway = ProviderGateway()
    gateway.register(receiver, max_rpm=None, max_tpm=None, circuit_fail_threshold=10**9)

    async def keep(event: RunEvent) -> None:
        played.events.append(event)

    left = house.left()
    if left is None:
        engine = WorkflowEngine(
            load_data(data), gateway, checkpointer=house.store, run_id=RUN, on_event=keep, host=host or house.host
        )
    else:
        left.workflow_definition["config"].update(config)
        engine = await WorkflowEngine.from_checkpoint(
            left, house.store, gateway, approval_decisions=decisions, on_event=keep, host=host or house.host
        )
    return await engine.run()


def lived(house: House, data: Mapping[str, Any], receiver: Receiver, **options: Any) -> Played:
    """Live until the run comes to an end of its own, however often it dies on the way."""
    played = Played()
    while played.result is None:
        played.lives += 1
        assert played.lives < LIVES
        played.result = survived(lambda: live(house, data, receiver, played, **options))
    return played


def survived(life: Callable[[], Awaitable[WorkflowResult]]) -> WorkflowResult | None:
    """Return the result of a life, or None if it died."""
    try:
        return run_virtual(life)
    except Died:
        return None
    except BaseExceptionGroup as group:
        if group.split(Died)[1] is not None:
            raise
        return None


def once(step: int, what: Any, then: str = "ok") -> Any:
    """Return an answer that is ``what`` at the call with this number, and a text at every other one."""

    async def answer(request: Request, number: int) -> Any:
        return what if number == step else then

    return answer


def plain(result: WorkflowResult) -> Any:
    """Return what of a result doesn't depend on the clock."""
    steps = {name: (step.status, step.output, step.error) for name, step in result.step_results.items()}
    return json.loads(json.dumps([result.status, steps, result.final_state, result.error], sort_keys=True))


BUSY = ProviderError("busy", status_code=503)
NO = ProviderError("no", status_code=400)

BIG = flow(
    ask("b", output="x.b"),
    ask("a", output="x.a"),
    ask("c", output="w"),
    route("r", "a", left="state.x.a == 'a'", default="right"),
    ask("left", "r", prompt="{state.x.b}{state.n}", output="l"),
    ask("right", "r"),
    ask("deep", "right"),
    sub(
        "s",
        "b",
        steps=[
            ask("k1", output="k"),
            sub("t", "k1", steps=[ask("i"), ask("j", "i")]),
            ask("k2", "t", prompt="{state.k}!"),
        ],
        output="child",
        return_keys=["k", "x"],
    ),
    sub("u", "b", steps=[ask("k1"), ask("k2")]),
    ask("flop", retry={"max_retries": 2, "jitter": False}),
    ask("bad", "a"),
    ask("after", "bad"),
    ask("end", "left", "s", "u", "c", prompt="{state.l} {state.child.k} {state.steps.c.output}", output="done"),
    state={"n": 1},
)
BIG_ANSWERS: Mapping[str, Any] = {"bad": NO}
CALLED = ("a", "b", "c", "left", "s.k1", "s.t.i", "s.t.j", "s.k2", "u.k1", "u.k2", "flop", "end")
"""The calls of ``BIG`` that succeed."""
GATE = {"id": "g", "type": "approval_gate", "output": "verdict"}


class RunnerContract(ABC):
    """The tests. A runner that passes them gives the same run as any other."""

    loses_outcomes = False
    """Whether it may die between the end of an operation and writing that down."""

    @abstractmethod
    def house(self, tmp_path: Path, seed: int = 0) -> House:
        """Return a new house; ``seed`` is for those that throw dice."""

    # --- R1, R2: decisions and their order

    @pytest.mark.parametrize("seed", range(3))
    def test_r1_the_same_answers_make_the_same_run(self, tmp_path: Path, seed: int) -> None:
        """Results, state and their order are those of an engine that keeps nothing and was never disturbed."""
        receiver = Receiver(BIG_ANSWERS)
        gateway = ProviderGateway()
        gateway.register(receiver, max_rpm=None, max_tpm=None)
        undisturbed = run_virtual(lambda: WorkflowEngine(load_data(BIG), gateway).run())
        played = lived(self.house(tmp_path, seed), BIG, Receiver(BIG_ANSWERS))
        assert plain(played.end) == plain(undisturbed)
        assert list(played.end.step_results) == list(undisturbed.step_results)
        assert list(played.end.final_state["steps"]) == list(undisturbed.final_state["steps"])
        assert played.end.total_cost_usd >= undisturbed.total_cost_usd == pytest.approx(0.25 * len(CALLED))

    def test_r2_a_batch_is_data_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        """Whatever the order in which the runner performs it."""
        house = self.house(tmp_path)
        spy = Spy(house.host)
        lived(house, BIG, Receiver(BIG_ANSWERS), host=spy)
        order = [step["id"] for step in BIG["steps"]]
        top = [[op.path for op in batch] for batch in spy.batches if "." not in batch[0].path]
        assert ["b", "a", "c", "flop"] in top
        assert all(batch == sorted(batch, key=order.index) for batch in top)
        assert ["s.k1"] in [[op.path for op in batch] for batch in spy.batches]

    # --- R3: one step, one operation

    def test_r3_attempts_are_inside_of_an_operation(self, tmp_path: Path) -> None:
        """A step that fails twice is one operation, with three attempts and their waits; each is in the attempt log."""
        data = flow(ask("a", retry={"max_retries": 2, "jitter": False}))
        house = self.house(tmp_path)
        spy = Spy(house.host)
        times: list[float] = []

        async def flop(request: Request, number: int) -> Any:
            times.append(anyio.current_time())
            return BUSY if number < 3 else "ok"

        played = lived(house, data, receiver := Receiver({"a": flop}), host=spy)
        assert played.statuses == {"a": "success"}
        assert len(set(receiver.keys["a"])) == 3
        assert [later - sooner for sooner, later in pairwise(times[:3])] == [2.0, 4.0]
        assert all([op.path for op in batch] == ["a"] for batch in spy.batches)
        assert house.left().attempts == {"a": 3}  # type: ignore[union-attr]

    # --- R4: children

    def test_r4_a_child_has_paths_of_its_own_and_returns_its_spend(self, tmp_path: Path) -> None:
        """Prefixed by its step's path at every depth; its step costs what its steps cost."""
        house = self.house(tmp_path)
        spy = Spy(house.host)
        played = lived(house, BIG, receiver := Receiver(BIG_ANSWERS), host=spy)
        kinds = {op.path: op.kind for batch in spy.batches for op in batch}
        assert {path for path, kind in kinds.items() if kind == "child"} == {"s", "u", "s.t"}
        assert {"s.k1", "s.t.i", "s.t.j", "u.k2"} <= set(kinds)
        calls = sum(number for step, number in receiver.calls.items() if step.startswith("s."))
        assert played.end.step_results["s"].cost_usd == pytest.approx(0.25 * calls)

    def test_r4_a_child_shares_the_budget_or_has_its_own(self, tmp_path: Path) -> None:
        """Over its own it fails its step; over the run's it stops the run."""
        kid = sub("s", steps=[ask("i"), ask("j", "i"), ask("k", "j")], child={"config": {"budget_usd": 0.4}})
        played = lived(self.house(tmp_path / "own"), flow(kid, ask("z")), Receiver())
        assert played.statuses == {"s": "failed", "z": "success"}
        assert "Budget exceeded" in str(played.end.step_results["s"].error)
        shared = sub("s", steps=[ask("i"), ask("j", "i"), ask("k", "j")])
        data = flow(shared, ask("z", "s"), config={"budget_usd": 0.4})
        played = lived(self.house(tmp_path / "shared"), data, receiver := Receiver())
        assert played.end.status == "budget_exceeded"
        assert not {"s.k", "z"} & set(receiver.calls)

    def test_r4_a_child_that_failed_begins_with_its_first_step_again(self, tmp_path: Path) -> None:
        """An attempt is the whole child."""
        kid = sub("s", steps=[ask("i"), ask("j", "i")], child={"config": {"max_retries": 0}}, retry={"max_retries": 1})
        played = lived(self.house(tmp_path), flow(kid), receiver := Receiver({"s.j": once(1, BUSY)}))
        assert played.statuses == {"s": "success"}
        # Who died inside of the attempt goes on with it: the failure of a step was not the child's yet.
        assert receiver.effects["s.i"] == (2 if played.lives == 1 else 1)
        assert receiver.effects["s.j"] == 1

    # --- R5: look first, start later

    def test_r5_what_is_recorded_does_not_run_again(self, tmp_path: Path) -> None:
        """Also where the process dies at the last call, in a child, and beside others."""
        house = self.house(tmp_path)
        died = once(1, Died(), "j")
        played = lived(house, BIG, receiver := Receiver({**BIG_ANSWERS, "s.t.j": died, "end": once(1, Died(), "e")}))
        assert played.statuses["end"] == "success"
        assert all(receiver.effects[step] == 1 for step in CALLED)

    def test_r5_money_that_was_spent_lets_nothing_start(self, tmp_path: Path) -> None:
        """After a budget stop and a death no sibling starts again: what is recorded is settled first."""
        data = flow(ask("a"), ask("b"), ask("c", "a", "b"), config={"budget_usd": 0.2, "max_concurrent_steps": 1})
        house = self.house(tmp_path)
        played = lived(house, data, receiver := Receiver())
        assert played.end.status == "budget_exceeded"
        before = Counter(receiver.calls)
        again = lived(house, data, receiver)
        assert again.end.status == "budget_exceeded"
        assert receiver.calls == before
        raised = lived(house, data, receiver, budget_usd=5)
        assert raised.end.status == "success"
        assert all(receiver.effects[step] == 1 for step in "abc")

    def test_r5_what_was_paid_for_counts_though_the_money_is_gone(self, tmp_path: Path) -> None:
        """A limit below what was spent lets nothing start, in any layer or child; what is recorded there is not lost, nor paid again."""
        kid = sub("s", "b", steps=[ask("i"), ask("j", "i")])
        data = flow(ask("a"), ask("b", "a", output="x"), kid, ask("d", "s", prompt="{state.x}"), ask("e", "d"))
        house = self.house(tmp_path)
        receiver = Receiver({"e": once(1, Died())})
        assert survived(lambda: live(house, data, receiver, Played())) is None
        recorded = {path for path, found in house.recorded().outcomes.items() if found["status"] == "success"}
        cut = lived(house, data, receiver, budget_usd=0.01)
        assert cut.end.status == "budget_exceeded"
        assert {name for name, status in cut.statuses.items() if status == "success"} == recorded & {*"abds"}
        played = lived(house, data, receiver, budget_usd=50)
        assert played.end.status == "success"
        assert played.end.final_state["steps"]["d"]["output"] == "b"
        assert dict(receiver.effects) == {"a": 1, "b": 1, "s.i": 1, "s.j": 1, "d": 1, "e": 1}

    # --- R6: gates

    def test_r6_a_gate_without_a_decision_ends_the_run(self, tmp_path: Path) -> None:
        """As paused, and nobody waits: what doesn't depend on it has finished. Then the decision goes on."""
        kid = sub("s", steps=[GATE, ask("k", "g", prompt="{state.verdict}")])
        data = flow(GATE, kid, ask("side"), ask("z", "g", "s", prompt="z {state.verdict}", output="z"))
        house = self.house(tmp_path)
        receiver = Receiver()
        played = lived(house, data, receiver)
        assert (played.end.status, played.statuses["side"]) == ("paused", "success")
        assert house.left().paused_step_id == "g"  # type: ignore[union-attr]
        assert receiver.calls["s.k"] == receiver.calls["z"] == 0
        played = lived(house, data, receiver, decisions={"g": "approved"})
        assert played.end.status == "paused"
        assert house.left().paused_step_id == "s.g"  # type: ignore[union-attr]
        played = lived(house, data, receiver, decisions={"s.g": "rejected"})
        assert (played.end.status, played.end.final_state["z"]) == ("success", "z approved")
        assert receiver.effects["side"] == 1
        assert receiver.known[receiver.keys["s.k"][-1]] == "rejected"

    # --- R7: what a runner sees

    def test_r7_operations_and_outcomes_are_json_without_secrets(self, tmp_path: Path) -> None:
        """Of what is written down nothing is a secret, in a child neither; what goes in comes back from JSON as it was."""
        secret = {"token": {"redact": True}, "given": {"redact": True}}
        kid = sub("s", steps=[ask("i", output="token"), ask("j", "i", prompt="{state.token}")], output="kid")
        data = flow(
            ask("a", output="token"),
            kid,
            ask("b", "a", "s", prompt="{state.token} {state.given}"),
            state={"given": "hush-given"},
            state_schema=secret,
        )
        house = self.house(tmp_path)
        spy = Spy(house.host)
        seen: list[str] = []

        async def look(request: Request, number: int) -> str:
            seen.append(house.texts())
            return "done"

        answers = {"a": "hush-token", "s.i": "hush-inside", "s.j": look, "b": look}
        lived(house, data, Receiver(answers), host=spy)
        seen.append(house.texts())
        assert any("REDACTED" in text for text in seen)
        assert not any("hush" in text for text in seen)
        for op in [op for batch in spy.batches for op in batch]:
            assert json.loads(json.dumps(op.inputs)) == op.inputs

    # --- R8: idempotency keys

    def test_r8_keys_name_run_path_and_attempt(self, tmp_path: Path) -> None:
        """The same again after a death in the middle, the next after a failure; never the first one again."""
        data = flow(ask("a"), ask("b", "a", retry={"max_retries": 3, "jitter": False}))

        async def moody(request: Request, number: int) -> Any:
            return {1: BUSY, 2: Died(), 3: BUSY, 4: Died()}.get(number, "ok")

        played = lived(self.house(tmp_path), data, receiver := Receiver({"b": moody}))
        assert played.statuses == {"a": "success", "b": "success"}
        expected = [key(RUN, "b", number) for number in (1, 2, 2, 3, 3)]
        assert receiver.keys["b"][:5] == expected
        assert receiver.effects == {"a": 1, "b": 1}

    @pytest.mark.parametrize("seed", range(3))
    def test_r8_a_receiver_that_remembers_sees_every_effect_once(self, tmp_path: Path, seed: int) -> None:
        """However often the run dies on its way: each step that succeeded had one effect."""
        answers = {**BIG_ANSWERS, "a": once(1, Died(), "a"), "s.k2": once(1, Died(), "k"), "u.k1": once(2, Died(), "k")}
        played = lived(self.house(tmp_path, seed), BIG, receiver := Receiver(answers))
        assert played.end.status == "failed", "because of `bad`"
        assert {step: receiver.effects[step] for step in CALLED} == dict.fromkeys(CALLED, 1)
        assert all(len(set(keys)) == 1 for step, keys in receiver.keys.items() if step in CALLED)

    # --- the verdicts

    def test_after_stop_nothing_starts_and_what_ran_has_no_outcome(self, tmp_path: Path) -> None:
        """The step that crosses the limit keeps its result if it was written down; the money of those beside it counts all the same."""
        data = flow(ask("a"), ask("b"), ask("c"), ask("z", "a"), config={"budget_usd": 0.2})
        played = lived(self.house(tmp_path), data, receiver := Receiver())
        assert played.end.status == "budget_exceeded"
        assert list(played.statuses.values()) == ([] if self.loses_outcomes else ["success"])
        assert receiver.calls["z"] == 0
        assert played.end.total_cost_usd == pytest.approx(0.25 * sum(receiver.calls.values()))

    @pytest.mark.parametrize("policy", ["skip_downstream", "continue"])
    def test_failures_decide_the_same(self, tmp_path: Path, policy: str) -> None:
        """What depends on a failed step, on a failed router, and on a branch that wasn't taken."""
        data = flow(
            ask("bad"),
            ask("after", "bad"),
            route("lost", x="state.none.deep == 1"),
            ask("x", "lost"),
            route("r", y="True", default="n"),
            ask("y", "r"),
            ask("n", "r"),
            ask("join", "n", "y"),
            config={"on_step_failure": policy},
        )
        played = lived(self.house(tmp_path), data, Receiver({"bad": NO}))
        goes_on = policy == "continue"
        assert played.end.status == "failed"
        assert played.statuses == {
            "bad": "failed", "after": "success" if goes_on else "skipped", "lost": "failed", "x": "skipped",
            "r": "success", "y": "success", "n": "skipped", "join": "skipped",
        }  # fmt: skip

    def test_every_outcome_is_told_once_in_the_life_that_made_it(self, tmp_path: Path) -> None:
        """Events are for whoever watches; recorded outcomes are not told again."""
        data = flow(ask("a"), ask("b", "a"), sub("s", "b", steps=[ask("k")]))
        played = lived(self.house(tmp_path), data, Receiver())
        told = Counter(event.step for event in played.events if isinstance(event, StepFinished))
        if played.lives == 1:
            assert told == {"a": 1, "b": 1, "s": 1, "s.k": 1}
        else:  # who dies between writing and telling has told nothing
            assert all(number <= 1 for number in told.values())


def key(run_id: str, path: str, number: int) -> str:
    """Return the idempotency key of an attempt."""
    return sha256(f"{run_id}/{path}/{number}".encode()).hexdigest()
