"""What a database costs and what it carries, into docs/scale.md: `make bench-scale`, or `SOAK=10000 make bench-scale` for the long run.

Everything in one run on one machine, with a PostgreSQL of its own: steps that do nothing, in runs beside each other on two workers; steps of four
seconds; the same workflow with the journal in a file, and with none; and very many runs.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio
from machine import commit, described

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agentloom.checkpointing import FileCheckpointer  # noqa: E402
from agentloom.cli.durable import equip  # noqa: E402
from agentloom.core.engine import WorkflowEngine  # noqa: E402
from agentloom.core.loader import load_workflow  # noqa: E402
from agentloom.durable.dbos.archive import Archive  # noqa: E402
from agentloom.durable.dbos.orders import QUEUE, order_for  # noqa: E402
from agentloom.durable.dbos.place import place_of  # noqa: E402
from tests.durable.crew import Workers  # noqa: E402
from tests.durable.postgres import Server, programs  # noqa: E402
from tests.scale.receiver import build  # noqa: E402
from tests.scale.soak import soak, thirds  # noqa: E402

STEPS = 10
SOAK = int(os.environ.get("SOAK", "1000"))
PAGE = ROOT / "docs" / "scale.md"
PART = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- /measured -->)", re.DOTALL)


def carried(server: Server, folder: Path, file: Path, count: int, concurrency: int, seconds: float = 0.0) -> float:
    """Return how long two workers take for so many runs that are asked for at once, in seconds."""
    workers = Workers(server.database(), folder, seconds)
    workers.options = ("--concurrency", str(concurrency))
    try:
        workers.begin(2)
        document = load_workflow(file)
        with closing(Archive(place_of(workers.url))) as archive:
            for number in range(4):  # what is done once in a process is done
                archive.put(order_for(load_workflow(build(folder, 1, 1, "nothing")), {}, f"warm{number}"), 1, QUEUE)
            for number in range(4):
                archive.client.retrieve_workflow(f"warm{number}~1").get_result(polling_interval_sec=0.05)
            began = perf_counter()
            segments = [archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(count)]
            for segment in segments:
                archive.client.retrieve_workflow(segment).get_result(polling_interval_sec=0.05)
            took = perf_counter() - began
            assert all(archive.ended(segment).code == 0 for segment in segments)
            return took
    finally:
        workers.end()


def in_this_process(file: Path, times: int) -> tuple[float, float]:
    """Return how long a run takes in this process with its journal and checkpoint in files, and with nothing kept, in seconds."""
    document = load_workflow(file)
    kept: list[float] = []
    bare: list[float] = []

    async def once(checkpointer: FileCheckpointer | None) -> float:
        gateway, tools = equip(document)
        began = perf_counter()
        result = await WorkflowEngine(document, gateway, tools, checkpointer).run({})
        took = perf_counter() - began
        assert result.status == "success", result.error
        return took

    with TemporaryDirectory() as folder:
        for _ in range(times):  # in turns, so that a busy machine slows both alike
            kept.append(anyio.run(once, FileCheckpointer(folder)))
            bare.append(anyio.run(once, None))
    return statistics.median(kept), statistics.median(bare)


def main() -> None:
    """Measure, print, and write the page."""
    rows: list[tuple[str, str]] = []

    def told(what: str, value: str) -> None:
        print(f"{what}: {value}", flush=True)
        rows.append((what, value))

    with TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        server = Server(programs())
        try:
            nothing = build(folder, STEPS, 1, "nothing")
            wait = build(folder, 11, 1, "wait")
            kept, bare = in_this_process(nothing, 41)
            short_kept, short_bare = in_this_process(build(folder, STEPS, 1, "short"), 21)
            took = carried(server, folder, nothing, 200, 100)
            rate = 200 * STEPS / took
            per_step = 1000 * 2 / rate  # two workers
            told("200 runs at once on 2 workers, steps that do nothing", f"{rate:.0f} steps a second")
            told("a worker's time for such a step", f"{per_step:.1f} ms")
            told("the same with the journal in a file, one run in one process", f"{1000 * kept / STEPS:.1f} ms")
            told("the same with nothing kept", f"{1000 * bare / STEPS:.1f} ms")
            told("the journal in a file beside nothing kept, steps of 20 ms", f"{short_kept / short_bare:.2f} ×")
            slow = carried(server, folder, wait, 200, 100, 4.0)
            told(
                "200 runs at once on 2 workers, 11 steps of 4 s each (ideal: 44 s)", f"{slow:.0f} s, {slow / 44:.2f} ×"
            )
            workers = Workers(server.database(), folder, 0.0)
            try:
                workers.begin(2)
                samples = soak(workers.url, nothing, SOAK, workers.running)
            finally:
                workers.end()
            first, last = thirds(samples)
            rate = SOAK * STEPS / samples[-1].at_s
            told(f"{SOAK:,} runs of {STEPS} steps on 2 workers", f"{samples[-1].at_s:.0f} s, {rate:.0f} steps a second")
            for what, values in (
                (
                    "memory of both workers, at most, first and last third",
                    [max(s.memory_mb for s in part) for part in (first, last)],
                ),
                (
                    "connections, at most, first and last third",
                    [max(s.connections for s in part) for part in (first, last)],
                ),
                (
                    "threads of both workers, at most, first and last third",
                    [max(s.threads for s in part) for part in (first, last)],
                ),
            ):
                unit = " MB" if what.startswith("memory") else ""
                told(what, f"{values[0]:.0f}{unit}, {values[1]:.0f}{unit}")
        finally:
            server.close()
    table = "\n".join(f"| {what} | {value} |" for what, value in rows)
    text = f"Measured by `make bench-scale`: {described()}, {commit(ROOT)}.\n\n| | |\n|---|---|\n{table}\n"
    page = PAGE.read_text(encoding="utf-8")
    assert PART.search(page), "docs/scale.md has lost its marks"
    PAGE.write_text(PART.sub(lambda _: text, page), encoding="utf-8")


if __name__ == "__main__":
    main()
