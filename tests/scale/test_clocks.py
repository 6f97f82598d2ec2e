"""Workers whose clocks are two hours ahead or behind: what waits, waits its time, and nothing comes before its time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from agentloom.core.loader import load_text, load_workflow
from agentloom.durable.dbos.orders import QUEUE, order_for
from tests.durable.crew import Workers
from tests.durable.metering import Lateness, Slow, most_within, project, results
from tests.durable.postgres import Server, missing
from tests.scale.site import Site, site_of
from tests.wire.server import KEY, Exchange, WireServer, ok

GATE = """\
name: gated
steps:
  - {id: draft, type: llm_call, prompt: Write., output: draft}
  - {id: gate, type: approval_gate, depends_on: [draft], output: verdict, timeout_seconds: SECONDS, on_timeout: approve}
config: {provider: mock}
"""
AN_HOUR, SOON = 3600, 2
LIMITED = """\
name: limited
steps:
  - {id: ask, type: llm_call, prompt: Ask., output: reply, retry: {max_retries: 3}}
config: {provider: box, model: m}
"""


SLEEP = """\
import select, time

def sleep(seconds):
    select.select([], [], [], seconds)

time.sleep = sleep  # libfaketime takes the moment until which Python 3.11 sleeps for one of the other clock
"""


def off(hours: int) -> tuple[str, ...]:
    """Return what stands before the command of a process whose clock is wrong. The clock that only counts stays as it is."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        missing("faketime")
    # What the program `faketime` does, which stays as a process in between and passes no signals on.
    return ("env", f"LD_PRELOAD={found[0]}", "FAKETIME_DONT_FAKE_MONOTONIC=1", f"FAKETIME={hours:+d}h")


@pytest.fixture
def site(tmp_path: Path, server: Server) -> Iterator[Site]:
    """Workers to be started, on a new database."""
    workers = Workers(server.database(), tmp_path, 0.3)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(SLEEP, encoding="utf-8")
    workers.environment["PYTHONPATH"] = f"{tmp_path / 'first'}{os.pathsep}{workers.environment['PYTHONPATH']}"
    with site_of(workers) as site:
        yield site


def put(site: Site, text: str, name: str) -> str:
    """Ask for a run of a workflow."""
    return site.archive.put(order_for(load_text(text), {}, name), 1, QUEUE)


def listed(site: Site) -> list[dict[str, Any]]:
    """Return what `agentloom runs` says."""
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "runs", "--json"],
        cwd=site.workers.folder, env=site.workers.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("pauses", "watches"), [(2, -2), (-2, 2)])
def test_a_gate_waits_its_time(site: Site, pauses: int, watches: int) -> None:
    """One worker's clock says when it began to wait, another's when that is over: neither counts."""
    site.start(first=off(pauses))
    long, short = (
        put(site, GATE.replace("SECONDS", str(seconds)), name) for seconds, name in ((AN_HOUR, "long"), (SOON, "short"))
    )
    site.until(lambda: all(site.archive.status(segment).status == "SUCCESS" for segment in (long, short)))
    site.hosts["first"].send_signal(signal.SIGTERM)
    assert site.hosts["first"].wait() == 0
    site.start(second=off(watches))
    site.until(lambda: site.archive.find("short").data.status == "success")
    put(site, GATE.replace("SECONDS", str(SOON)), "again")
    site.until(lambda: site.archive.find("again").data.status == "success")
    assert site.archive.find("long").data.status == "paused"
    found = listed(site)
    assert [run["run_id"] for run in found] == ["again", "short", "long"], "the latest comes first"
    for run in found:
        for name in ("created_at", "updated_at"):
            age = datetime.now(UTC) - datetime.fromisoformat(run[name])
            assert timedelta(0) < age < timedelta(minutes=15), (name, run[name])


def test_a_run_goes_from_one_clock_to_the_other(site: Site) -> None:
    """It begins two hours ahead, its worker is killed, and it ends two hours behind: its events go forward in time."""
    site.workers.environment["WORK_SECONDS"] = "1"
    site.start(ahead=off(2))
    site.begun(asked := site.follow("seen"))
    site.until_under_way(["seen~1"])
    site.hosts["ahead"].kill()
    began = monotonic()
    site.start(behind=off(-2))
    site.ended_well(["seen~1"])
    out, err = asked.communicate()
    assert asked.returncode == 0, err
    times = [datetime.fromisoformat(json.loads(line)["time"]) for line in out.splitlines()]
    assert max(times) - min(times) < timedelta(minutes=15)
    assert all(later - earlier > timedelta(seconds=-1) for earlier, later in pairwise(times))
    result = site.archive.ended("seen~1").result
    assert result is not None
    assert result.total_duration_ms < (monotonic() - began + 600) * 1000


@pytest.mark.parametrize("hours", [2, -2])
def test_a_provider_says_when_to_ask_again(site: Site, hours: int) -> None:
    """It gives a moment, by its own clock: that is in two seconds, and neither in two hours nor over. The run's time doesn't count the hours either."""

    async def later(exchange: Exchange) -> None:
        now = datetime.now(UTC)
        error = exchange.server.format.error(429, "slow down", "rate_limit")
        moments = {"Date": now, "Retry-After": now + timedelta(seconds=2)}
        await exchange.whole(
            429, json.dumps(error).encode(), **{name: format_datetime(at, usegmt=True) for name, at in moments.items()}
        )

    began: list[float] = []

    async def answers(exchange: Exchange) -> None:
        began.append(monotonic())
        await (later if len(began) == 1 else ok)(exchange)

    site.workers.environment["BOX_KEY"] = KEY
    with WireServer(answers) as box:
        project(site.workers.folder, box.url, 1)
        site.start(off=off(hours))
        file = site.workers.folder / "limited.loom.yaml"
        file.write_text(LIMITED, encoding="utf-8")
        segment = site.archive.put(order_for(load_workflow(file), {}, "asks"), 1, QUEUE)
        [result] = results(site.archive, [segment])
        assert result.status == "success", result.error
    assert len(began) == 2
    assert began[1] - began[0] >= 1


def test_limits_hold_over_wrong_clocks(site: Site) -> None:
    """Five calls a second and four at once, over two workers four hours apart."""
    slow = Slow(0.5)
    site.workers.environment["BOX_KEY"] = KEY
    site.workers.options = ("--concurrency", "1")
    with WireServer(slow) as box, Lateness() as late:
        document = load_workflow(project(site.workers.folder, box.url, 15, max_concurrent=4, max_rpm=300))
        site.start(ahead=off(2), behind=off(-2))
        segments = [site.archive.put(order_for(document, {}, f"run{number}"), 1, QUEUE) for number in range(2)]
        assert [result.status for result in results(site.archive, segments)] == ["success"] * 2
    assert len(slow.began) == 30
    assert slow.most <= 4
    for seconds in (1, 2):
        assert most_within(slow.began, seconds) <= 5 * (seconds + late.worst_s) + 1 + 1
