"""Limits of providers over real workers, measured at a receiver, while workers die and the database goes away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.counters import Counter, InDatabase
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import Place, place_of
from agentloom.durable.dbos.turns import AllTurns
from agentloom.providers.rates import Limit
from tests.durable.crew import Workers
from tests.durable.metering import Lateness, Meter, Slow, calls, most_within, project, results, together
from tests.durable.metering import database as database
from tests.durable.metering import open_turns as open_turns
from tests.durable.postgres import Server
from tests.wire.server import KEY, WireServer

PAUSE = threading.Event()


def test_calls_wait_for_a_database_that_is_away(
    database: Place, server: Server, open_turns: Callable[[Counter], AllTurns]
) -> None:
    """It stops in the middle of calls: these go on and hold their slots again; others wait, and no slot is given twice."""
    meter = Meter()
    limit = Limit(requests=60_000, concurrent=2)
    workers = [open_turns(InDatabase(database)) for _ in range(2)]
    stop = threading.Thread(target=lambda: (server.stop("immediate"), server.start()))

    def restart() -> None:
        while len(meter.began) < 2:
            PAUSE.wait(0.01)
        stop.start()
        stop.join()

    together(
        restart,
        *(lambda turns=turns: calls(turns, limit, 2, 4.0, meter) for turns in workers),  # type: ignore[misc]
    )
    assert len(meter.began) == 4
    assert meter.most == 2


def test_five_a_second_and_four_at_once_over_three_workers(tmp_path: Path, workers: Workers) -> None:
    """120 calls of three workers; one of them is killed with SIGKILL while it calls, and its places are free at once."""
    slow = Slow(0.7)
    workers.environment["BOX_KEY"] = KEY
    with WireServer(slow) as box, Lateness() as late:
        document = load_workflow(project(tmp_path, box.url, 20, max_concurrent=4, max_rpm=300))
        workers.begin(3)
        with closing(Archive(place_of(workers.url))) as archive:
            segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(6)]
            box.wait_for(30, 120)
            busy = {
                status.executor_id
                for status in archive.client.list_workflows(status="PENDING", load_input=False, load_output=False)
            }
            next(each for each in workers.running if any(f"-{each.pid}-" in str(name) for name in busy)).kill()
            assert [result.status for result in results(archive, segments)] == ["success"] * 6
        assert 120 <= len(box.requests) <= 120 + 4
        assert slow.most == 4
        # A call may be on its way a little longer than the next ones: that's what the one more is for.
        for seconds in (1, 2, 5, 10):
            assert most_within(slow.began, seconds) <= 5 * (seconds + late.worst_s) + 1 + 1


def test_cancelled_runs_stop_calling(tmp_path: Path, workers: Workers) -> None:
    """Two runs are in the middle of calls that take 20 seconds; cancelled, they hang up within seconds, and give their places to the third."""
    slow = Slow(20.0)
    workers.environment["BOX_KEY"] = KEY
    with WireServer(slow) as box:
        document = load_workflow(project(tmp_path, box.url, 2, max_concurrent=4))
        workers.begin(2)
        with closing(Archive(place_of(workers.url))) as archive:
            segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(2)]
            box.wait_for(4, 60)
            third = archive.put(order_for(document, {}, "third"), 1, QUEUE)
            while archive.status(third).status != "PENDING":
                PAUSE.wait(0.05)
            cancelled = time.monotonic()
            for segment in segments:
                archive.cancel(segment)
            box.wait_for(6, 60)
            # Two seconds are what an idle machine takes at most; ours does other things meanwhile.
            assert time.monotonic() - cancelled < 10
            assert slow.most == 4
            archive.cancel(third)
            while slow.now():
                PAUSE.wait(0.05)
            assert time.monotonic() - cancelled < 18


LINGERING = """
import os
import anyio
from agentloom.tools.base import tool

def note(word):
    handle = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{word}\\n".encode())
    os.close(handle)

@tool("linger", "Takes its time, and more of it when it is stopped.")
async def linger(step: str) -> str:
    note(f"began {step}")
    try:
        await anyio.sleep(600)
    finally:
        note(f"stops {step}")
        with anyio.CancelScope(shield=True):
            await anyio.sleep(600)
    return step
"""


def test_nothing_starts_after_a_budget_stop_and_a_kill(tmp_path: Path, workers: Workers) -> None:
    """A child spends the money of all, and its siblings are being stopped when the worker is killed: the next one starts nothing."""
    (tmp_path / "lingering.py").write_text(LINGERING, encoding="utf-8")
    (tmp_path / "prices.yaml").write_text("m: {input: 1.0, output: 1.0}\n", encoding="utf-8")
    workers.environment |= {"BOX_KEY": KEY, "AGENTLOOM_PRICING_FILE": str(tmp_path / "prices.yaml")}
    with WireServer("slow") as box:
        file = project(tmp_path, box.url, 1)
        settings = tmp_path / "agentloom.toml"
        settings.write_text('tools = ["lingering"]\n' + settings.read_text(encoding="utf-8"), encoding="utf-8")
        lingers = [
            {"id": name, "type": "tool", "tool_name": "linger", "tool_args": {"step": name}} for name in ("x", "y")
        ]
        spends = [
            {"id": "wait", "type": "llm_call", "prompt": "Say something."},
            {"id": "more", "type": "llm_call", "prompt": "Say more.", "depends_on": ["wait"]},
        ]
        children = [
            {"id": name, "type": "subworkflow", "workflow_inline": {"name": name, "steps": inside}}
            for name, inside in (("one", lingers), ("two", lingers), ("money", spends))
        ]
        last = {"id": "last", "type": "llm_call", "prompt": "Sum up.", "depends_on": ["one", "two", "money"]}
        config = {"provider": "box", "model": "m", "budget_usd": 0.000001}
        file.write_text(json.dumps({"name": "spends", "config": config, "steps": [*children, last]}), encoding="utf-8")
        workers.begin(1)
        with closing(Archive(place_of(workers.url))) as archive:
            segment = archive.put(order_for(load_workflow(file), {}, "b"), 1, QUEUE)
            for word in ("began", "stops"):
                while not workers.effects.exists() or workers.effects.read_text().count(word) < 4:
                    PAUSE.wait(0.05)
                box.wait_for(1)
                box.let_go()
            assert archive.status(segment).status == "PENDING"
            workers.running[0].kill()
            workers.begin(1)
            (result,) = results(archive, [segment])
        assert result.status == "budget_exceeded"
        assert workers.effects.read_text().count("began") == 4
        assert len(box.requests) == 1
