"""Journals and orders that were written in every version of them: made here, held in `golden/N`, never written again once a version is out.

``python -m tests.durable.golden_runs`` records those of today's version, if there are none yet.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from agentloom.analysis.document import WorkflowDocument
from agentloom.checkpointing import FileCheckpointer
from agentloom.checkpointing.base import now
from agentloom.core.engine import WorkflowEngine
from agentloom.core.keeping import INTERRUPTED, journal_of, load_run
from agentloom.core.keeping.runs import seed_of
from agentloom.core.kinds import Tools
from agentloom.core.loader import load_data
from agentloom.core.results import WorkflowResult
from agentloom.durable.dbos.feed import STREAM, recorded_of
from agentloom.durable.dbos.orders import HERE, Order, order_for, segment_id
from agentloom.durable.dbos.place import place_of
from agentloom.durable.dbos.worker import Worker
from agentloom.durable.journal import VERSION
from agentloom.errors import ProviderError
from agentloom.providers.base import BaseProvider, OnDelta, Request, Response, ToolCall, Usage
from agentloom.providers.gateway import ProviderGateway
from tests.engine.world import Shelf, ask, flow, route, sub, use

FOLDER = Path(__file__).parent / "golden"

PRICE = 0.25
"""What a call costs, in US dollars."""

BUSY = 503
"""An answer that is an error which may pass."""


def _quick(**more: Any) -> dict[str, Any]:
    return {"backoff_base": 0.01, "jitter": False, **more}


def _call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"call": tool, "arguments": arguments}


GATE = {"type": "approval_gate", "output": "verdict"}
CASES: Mapping[str, Mapping[str, Any]] = {
    "children": {
        "workflow": flow(
            ask("a", output="x.a"),
            sub(
                "s",
                "a",
                steps=[ask("k1", output="k"), sub("t", "k1", steps=[ask("i"), ask("j", "i")]), ask("k2", "t")],
                output="child",
                return_keys=["k", "x"],
            ),
            sub("u", "a", steps=[ask("k1"), ask("k2", "k1")]),
            ask("end", "s", "u", prompt="{state.child.k} {state.x.a}", output="done"),
            state={"n": 1},
        )
    },
    "routers": {
        "workflow": flow(
            ask("a", output="x"),
            route("r", "a", left="state.x == 'a'", default="right"),
            ask("left", "r", output="l"),
            ask("right", "r"),
            route("q", "left", up="state.l == 'nothing'"),
            ask("up", "q"),
            ask("end", "left", output="done"),
        )
    },
    "retries": {
        "workflow": flow(
            ask("flop", retry=_quick(max_retries=3)),
            ask("bad", retry=_quick(max_retries=1)),
            ask("after", "bad"),
            sub(
                "s",
                "flop",
                steps=[ask("i"), ask("j", "i")],
                child={"config": {"max_retries": 0}},
                retry=_quick(max_retries=2),
            ),
            ask("end", "flop", "s", output="done"),
        ),
        "answers": {"flop": [BUSY, BUSY, "at last"], "bad": [BUSY], "s.j": [BUSY, "j"]},
    },
    "gates": {
        "workflow": flow(
            {"id": "g", **GATE},
            ask("side", output="side"),
            sub("s", steps=[ask("i"), {"id": "g", **GATE, "depends_on": ["i"]}, ask("k", "g")]),
            ask("end", "g", "s", prompt="{state.verdict} {state.side}", output="done"),
        ),
        "segments": [{}, {"decisions": {"g": "approved"}}, {"decisions": {"s.g": "rejected"}}],
    },
    "agents": {
        "workflow": flow(
            use("lookup", "echo", tool_args={"text": "{state.topic}"}, output="found"),
            {
                "id": "desk",
                "type": "agent",
                "agent": "desk",
                "input": "{state.found}",
                "depends_on": ["lookup"],
                "output": "reply",
            },
            ask("end", "desk", prompt="{state.reply}", output="done"),
            state={"topic": "weather"},
            agents={
                "clerk": {"description": "Knows it.", "system_prompt": "Look it up.", "tools": ["echo"]},
                "desk": {"system_prompt": "Help.", "tools": ["echo", {"agent": "clerk"}]},
            },
        ),
        "answers": {
            "desk": [_call("echo", text="one"), _call("clerk", input="which?"), "It rains."],
            "desk::clerk": [_call("echo", text="two"), "Rain."],
        },
    },
    "conversations": {
        "workflow": flow(
            ask("a", conversation="talk", speaker="Ann", prompt="one"),
            ask("b", "a", conversation="talk", speaker="Bob", prompt="two", output="o"),
            ask(
                "c",
                "b",
                prompt="Decide: {state.o}",
                response_schema={"type": "json_schema", "schema": {"type": "object", "required": ["day"]}},
                output="day",
            ),
            ask("end", "c", conversation="talk", prompt="{state.day.day}", output="done"),
        ),
        "answers": {"c": ["Monday, I say", '{"day": "Monday"}']},
    },
    "redaction": {
        "workflow": flow(
            ask("a", output="token"),
            sub("s", "a", steps=[ask("i", output="token"), ask("j", "i", prompt="{state.token}")], output="kid"),
            ask("end", "s", prompt="{state.given} and {state.token}", output="done"),
            state={"given": "none"},
            state_schema={"token": {"redact": True}, "given": {"redact": True}, "done": {"redact": True}},
        ),
        "answers": {"a": ["hush-token"], "s.i": ["hush-inside"]},
        "segments": [{"state": {"given": "hush-given"}}],
    },
    "budget": {
        "workflow": flow(
            ask("a"),
            ask("b", "a"),
            sub("s", "b", steps=[ask("i"), ask("j", "i"), ask("k", "j")]),
            ask("end", "s", output="done"),
            config={"budget_usd": 0.9, "max_concurrent_steps": 1},
        ),
        "segments": [{}, {"config": {"budget_usd": 20}}],
    },
    "cut": {
        "workflow": flow(
            ask("a", output="x"),
            sub("s", "a", steps=[ask("i"), ask("j", "i")]),
            ask("flop", "s", retry=_quick(max_retries=2)),
            ask("end", "flop", prompt="{state.x}", output="done"),
        ),
        "answers": {"flop": [BUSY, "at last"]},
        "segments": [{}, {"cut": 8, "config": {"budget_usd": 9}}, {"cut": 4}],
    },
}
"""What is run: workflows with answers by step, and in which segments: with what decisions, what changed in `config`, what in the state; ``cut`` is
the number of lines after which the segment before was killed, those that it went on from not counted."""


class Player(BaseProvider):
    """Answers as a case says, also in the middle of a run: how far a step has come stands in the request, or in the ``lines`` of its journal."""

    name = "mock"

    def __init__(self, answers: Mapping[str, Sequence[Any]], lines: Sequence[str] = ()) -> None:
        self.answers = answers
        self.calls: Counter[str] = Counter()
        failed = [json.loads(line) for line in lines]
        self._failed = Counter(str(line["path"]) for line in failed if line.get("kind") == "failed")

    async def complete(self, request: Request, on_delta: OnDelta | None = None) -> Response:
        """Answer with the step's name, unless something else was said."""
        step = request.step_id
        answers = self.answers.get(step, [step.rpartition(".")[2]])
        if BUSY in answers:
            at = self._failed[step] + self.calls[step]
        else:
            at = sum(message.role == "assistant" for message in request.messages)
        self.calls[step] += 1
        answer = answers[min(at, len(answers) - 1)]
        if answer == BUSY:
            raise ProviderError("busy", status_code=BUSY)
        made: tuple[ToolCall, ...] = ()
        if isinstance(answer, Mapping):
            made, answer = (ToolCall(f"c{at}", answer["call"], answer["arguments"]),), ""
        return Response(
            answer, "m", self.name, Usage(3, 4, 7), PRICE, "tool_calls" if made else "stop", tool_calls=made
        )


def gateway_of(player: Player) -> ProviderGateway:
    """Return a gateway with nothing but the player."""
    gateway = ProviderGateway()
    gateway.register(player, max_rpm=None, max_tpm=None, circuit_fail_threshold=10**9)
    return gateway


def tools() -> Tools:
    """Return the tools of the cases."""
    return Shelf({"echo": lambda text: f"echo {text}"})


def plain(result: WorkflowResult) -> Any:
    """Return what of a result doesn't depend on the clock, nor on how often a call had to be paid."""
    steps = {name: [step.status, step.output, step.error] for name, step in result.step_results.items()}
    return json.loads(json.dumps([result.status, steps, result.final_state, result.error]))


class Database:
    """A worker on a SQLite file whose providers are players."""

    def __init__(self, url: str) -> None:
        self.player = Player({})
        self.worker = Worker(place_of(url), self._equip, alone=True)

    def perform(self, order: Order, number: int, player: Player) -> WorkflowResult:
        """Have a segment performed, and return its result."""
        self.player = player
        segment = segment_id(str(order.input["run_id"]), number)
        self.worker.own[segment] = order
        archive = self.worker.archive
        archive.put(order, number, HERE)
        archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.01)
        ended = archive.ended(segment)
        assert ended.result is not None, ended.error
        return ended.result

    def _equip(self, document: WorkflowDocument) -> tuple[ProviderGateway, Tools | None]:
        return gateway_of(self.player), tools()


@contextmanager
def database(folder: Path) -> Iterator[Database]:
    """Open a database in a folder."""
    found = Database(f"sqlite:///{folder / 'runs.db'}")
    found.worker.start()
    try:
        yield found
    finally:
        found.worker.stop()


def record(name: str, case: Mapping[str, Any], base: Database) -> dict[str, Any]:
    """Run a case in a database and in files, and return what is held of it: for each segment the order, the lines in both, and its end."""
    answers = case.get("answers", {})
    segments: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        for number, given in enumerate(case.get("segments", [{}]), start=1):
            before: Mapping[str, Any] = segments[-1] if segments else {"order": {"lines": []}, "lines": [], "file": []}
            cut = given.get("cut")
            left = [] if cut is None else [*before["order"]["lines"], *before["lines"][:cut]]
            order = _order(name, case, given, number, base, left)
            result = base.perform(order, number, Player(answers, left))
            if cut is not None:
                left = before["file"][: len(left)]
                journal_of(FileCheckpointer(Path(folder)), name).write_text("".join(f"{line}\n" for line in left))
                FileCheckpointer(Path(folder)).path(name).unlink()
            lines, here = _in_files(name, case, given, number, Path(folder), Player(answers, left))
            assert plain(here) == plain(result)
            written = base.worker.archive.lines(segment_id(name, number))
            segments.append(
                {
                    "order": order.input,
                    "secrets": order.secrets,
                    "lines": written,
                    "file": lines,
                    "end": plain(result),
                    "output": base.worker.archive.status(segment_id(name, number)).output,
                    "events": _events(base, segment_id(name, number)),
                }
            )
    return {"answers": answers, "segments": json.loads(json.dumps(segments))}


def _order(
    name: str, case: Mapping[str, Any], given: Mapping[str, Any], number: int, base: Database, lines: list[str]
) -> Order:
    state, decisions = given.get("state", {}), given.get("decisions", {})
    if number == 1:
        document = load_data(deepcopy(case["workflow"]))
        return order_for(document, {**case["workflow"].get("state", {}), **state}, name)
    recorded = recorded_of(lines)
    data = base.worker.archive.find(name).data if recorded is None else seed_of(recorded, name, INTERRUPTED, now())
    data.workflow_definition["config"].update(given.get("config", {}))
    document = load_data(data.workflow_definition, f"<run {name}>")
    return order_for(document, {**data.state, **state}, name, seed=data, decisions=decisions, lines=lines)


def _in_files(
    name: str, case: Mapping[str, Any], given: Mapping[str, Any], number: int, folder: Path, player: Player
) -> tuple[list[str], WorkflowResult]:
    """Run a segment with its journal in a file, and return that with the result: a second name of the file outlives the run."""
    store = FileCheckpointer(folder)
    journal, copy = journal_of(store, name), folder / f"segment{number}"

    async def keep(event: Any) -> None:
        if not copy.exists() and journal.exists():
            os.link(journal, copy)

    async def go() -> WorkflowResult:
        gateway = gateway_of(player)
        if number == 1:
            document = load_data(deepcopy(case["workflow"]))
            engine = WorkflowEngine(document, gateway, tools(), store, name, keep)
            return await engine.run(given.get("state"))
        data = load_run(store, name)
        data.workflow_definition["config"].update(given.get("config", {}))
        engine = await WorkflowEngine.from_checkpoint(data, store, gateway, tools(), given.get("decisions"), keep)
        return await engine.run(given.get("state"))

    result = anyio.run(go)
    return copy.read_text(encoding="utf-8").splitlines(), result


def _events(base: Database, segment: str) -> list[Any]:
    values = base.worker.archive.client.read_stream(segment, STREAM)
    return [event for value in values for event in value.get("events", ())]


def timeless(text: str) -> str:
    """Return lines or orders without times and process ids; keys and their order stay."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?", "TIME", text)
    return re.sub(
        r'("(?:pid|duration_ms|latency_ms|time_to_first_token_ms|total_duration_ms)":) ?[\d.e+-]+', r"\1 0", text
    )


def differences(held: Mapping[str, Any], made: Mapping[str, Any]) -> list[str]:
    """Return where what is written today differs from what is held, a sentence each: names, their order, values."""
    found: list[str] = []
    if len(held["segments"]) != len(made["segments"]):
        return [f"{len(made['segments'])} segments instead of {len(held['segments'])}"]
    for number, (old, new) in enumerate(zip(held["segments"], made["segments"], strict=True), start=1):
        for part in ("order", "end"):
            before, after = (timeless(json.dumps(_parsed(segment[part]))) for segment in (old, new))
            if before != after:
                found.append(f"segment {number}, {part}:\n  held:  {before}\n  today: {after}")
        for part in ("lines", "file"):
            olds, news = ([timeless(json.dumps(json.loads(line))) for line in segment[part]] for segment in (old, new))
            for at, (before, after) in enumerate(zip(olds, news, strict=False), start=1):
                if before != after:
                    found.append(f"segment {number}, {part}, line {at}:\n  held:  {before}\n  today: {after}")
                    break
            else:
                if len(olds) != len(news):
                    found.append(f"segment {number}, {part}: {len(news)} lines instead of {len(olds)}")
    return found


def lost(held: Any, made: Any, where: str = "") -> list[str]:
    """Return what of data that others read is missing today, or different, a sentence each. More may be there: readers leave it out."""
    if isinstance(held, dict) and isinstance(made, dict):
        return [fault for name in held for fault in lost(held[name], made.get(name, "nothing"), f"{where}.{name}")]
    if isinstance(held, list) and isinstance(made, list) and len(held) == len(made):
        return [fault for at, pair in enumerate(zip(held, made, strict=True)) for fault in lost(*pair, f"{where}.{at}")]
    before, after = (timeless(json.dumps({where.rpartition(".")[2]: value})) for value in (held, made))
    return [] if before == after else [f"{where}: held {before}, today {after}"]


def _parsed(order: Any) -> Any:
    """Return an order with the lines that it holds as data; an end as it is."""
    return {**order, "lines": [json.loads(line) for line in order["lines"]]} if isinstance(order, dict) else order


def read(version: int, name: str) -> dict[str, Any]:
    """Return what is held of a case in a version."""
    found: dict[str, Any] = json.loads((FOLDER / str(version) / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _written(case: Mapping[str, Any]) -> str:
    """Return a case as JSON, a line for each part of a segment."""
    segments = (
        ",\n".join(f"  {json.dumps(part)}: {json.dumps(value, ensure_ascii=False)}" for part, value in segment.items())
        for segment in case["segments"]
    )
    listed = ",\n".join(f" {{\n{segment}\n }}" for segment in segments)
    return f'{{"answers": {json.dumps(case["answers"])},\n"segments": [\n{listed}\n]}}\n'


def main() -> None:
    """Record today's version."""
    folder = FOLDER / str(VERSION)
    if folder.exists():
        sys.exit(f"{folder} is there already; what a version has written is never written again: raise `VERSION` first")
    with TemporaryDirectory() as place, database(Path(place)) as base:
        made = {name: record(name, case, base) for name, case in CASES.items()}
    folder.mkdir(parents=True)
    for name, case in made.items():
        (folder / f"{name}.json").write_text(_written(case), encoding="utf-8")
    print(f"recorded {len(made)} runs in {folder}")


if __name__ == "__main__":
    main()
