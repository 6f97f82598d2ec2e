"""Between a worker and its database: latency, connections that break, end one way, or swallow everything and never answer."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from agentloom.core.loader import load_workflow
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.durable.crew import Workers
from tests.durable.postgres import Server
from tests.scale.proxy import Proxy
from tests.scale.site import SIDE_BY_SIDE, Site, site_of

BREAKS = 12
LOOKS = """\
import gc
from agentloom.tools.base import tool

@tool("look", "Tells whether garbage is collected.")
async def look() -> str:
    return str(gc.isenabled())
"""


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """What stands before the database."""
    with Proxy("127.0.0.1", server.port) as proxy:
        yield proxy


@pytest.fixture
def site(tmp_path: Path, server: Server) -> Iterator[Site]:
    """Workers to be started, each for one run at a time, on a new database."""
    workers = Workers(server.database(), tmp_path, 0.5)
    workers.options = ("--concurrency", "1")
    with site_of(workers) as site:
        yield site


def through(proxy: Proxy, server: Server, url: str) -> str:
    """Return the address of a database by way of the proxy."""
    return url.replace(f":{server.port}/", f":{proxy.port}/")


def test_slow_connections_break_at_random(site: Site, proxy: Proxy, server: Server) -> None:
    """An answer takes 50 ms, and again and again connections are reset or end: nothing is lost, asked for twice, or written twice."""
    random = Random(8)
    proxy.delay_s = 0.025
    site.start(**{f"w{number}": ("env", f"AGENTLOOM_ON={through(proxy, server, site.workers.url)}") for number in "ab"})
    over = threading.Event()

    def disturb() -> None:
        for number in range(BREAKS):
            if over.wait(0.5 + random.random()):
                return
            if number % 3 == 2:
                proxy.half_close()
            else:
                proxy.reset(random)

    breaker = threading.Thread(target=disturb)
    with closing(Archive(place_of(through(proxy, server, site.workers.url)))) as archive:
        near, site.archive = site.archive, archive
        breaker.start()
        try:
            segments = site.put(*(f"run{number}" for number in range(4)))
        finally:
            site.archive = near
            if breaker.is_alive():
                breaker.join()
            over.set()
    site.begun(asked := site.follow("seen", AGENTLOOM_ON=through(proxy, server, site.workers.url)))
    again = site.ended_well([*segments, "seen~1"])
    site.told_once(asked)
    print(f"{BREAKS} breaks, {proxy.connections} connections: {sum(again.values())} steps came again")


def test_connections_swallow_everything(site: Site, proxy: Proxy, server: Server) -> None:
    """What a worker writes is taken and never answered. Another one goes on with its run, and it gives its connections up and serves again."""
    far = ("env", f"AGENTLOOM_ON={through(proxy, server, site.workers.url)}")
    site.workers.environment["WORK_SECONDS"] = "1.5"
    site.start(near=(), far=far)
    asked = site.follow("seen", AGENTLOOM_ON=through(proxy, server, site.workers.url))
    leaving = site.follow("left", AGENTLOOM_ON=through(proxy, server, site.workers.url))
    site.begun(asked, leaving)
    segments = ["seen~1", "left~1"]
    site.until_under_way(segments)
    [lost] = site.segments_of("far", segments)
    proxy.silent = True
    leaving.send_signal(signal.SIGINT)
    took = site.until(lambda: site.performer(lost) == "near")
    proxy.silent = False
    site.came_again(segments, SIDE_BY_SIDE)
    site.told_once(asked)
    leaving.communicate()
    assert leaving.returncode == 130
    more = site.put("three", "four", "five", "six")
    back = site.until(lambda: site.segments_of("far", more))
    site.ended_well([*segments, *more])
    print(f"a silent connection: its run went on elsewhere after {took:.1f} s, it served again {back:.1f} s after that")


def test_a_worker_collects_its_garbage(site: Site) -> None:
    """Commands that are over in a moment don't; a worker may live for months, and every lost connection leaves rings of objects."""
    (site.workers.folder / "agentloom.toml").write_text('tools = ["looks"]\n', encoding="utf-8")
    (site.workers.folder / "looks.py").write_text(LOOKS, encoding="utf-8")
    file = site.workers.folder / "looks.loom.yaml"
    file.write_text(
        "name: looks\nsteps:\n  - {id: look, type: tool, tool_name: look, output: found}\n", encoding="utf-8"
    )
    site.start(one=())
    segment = site.archive.put(order_for(load_workflow(file), {}, "looks"), 1, QUEUE)
    site.until(lambda: site.archive.status(segment).status == "SUCCESS")
    result = site.archive.ended(segment).result
    assert result is not None
    assert result.final_state["found"] == "True"
