"""Workers, a database and whoever asks for runs on hosts of their own: links are cut and healed, hosts die, processes freeze."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.durable.crew import Workers
from tests.durable.postgres import Server
from tests.scale.hosts import Network
from tests.scale.site import SIDE_BY_SIDE, Site, site_of


@pytest.fixture
def site(tmp_path: Path, network: Network, far_server: Server) -> Iterator[Site]:
    """Workers to be started, each for one run at a time, on a new database."""
    workers = Workers(far_server.database(), tmp_path, 1.0)
    workers.options = ("--concurrency", "1")
    with site_of(workers) as site:
        try:
            yield site
        finally:
            for name in network.addresses:
                network.heal(name)


def test_a_link_is_cut_for_half_a_minute(site: Site, network: Network) -> None:
    """Others go on with what the cut worker had; it writes nothing more, and serves again. Who follows from a cut desk is told everything once."""
    site.start(a=network.on("a"), b=network.on("b"), c=network.on("c"))
    site.begun(asked := site.follow("seen", network.on("desk")))
    segments = ["seen~1", *site.put("one", "two")]
    site.until_under_way(segments)
    [lost] = site.segments_of("c", segments)
    network.cut("c")
    network.cut("desk")
    began = monotonic()
    took = site.until(lambda: site.performer(lost) in ("a", "b"))
    site.for_seconds(began + 30 - monotonic())
    network.heal("c")
    network.heal("desk")
    again = site.came_again(segments, SIDE_BY_SIDE)
    assert "can't be reached; waits for it" in site.told_once(asked)
    more = site.put("three", "four", "five")
    site.until(lambda: site.segments_of("c", more))
    print(f"a cut link: its run went on elsewhere after {took:.1f} s; {again} steps came again")


def test_the_link_of_the_database_is_cut(site: Site, network: Network) -> None:
    """All workers are cut off from it at once. They come back, and go on."""
    site.start(a=network.on("a"), b=network.on("b"), c=network.on("c"))
    segments = site.put("one", "two", "three")
    site.until_under_way(segments)
    network.cut("db")
    site.for_seconds(20)
    network.heal("db")
    took = site.until(lambda: all(len(site.outcomes(segment)) >= 8 for segment in segments))
    again = site.came_again(segments, 3 * SIDE_BY_SIDE)
    print(f"the database's link: on the way again after {took:.1f} s; {again} steps came again")


def test_a_host_dies_without_a_word(site: Site, network: Network) -> None:
    """No end of its connections reaches the database, as when a machine loses its power: its lock is free all the same."""
    site.start(a=network.on("a"), b=network.on("b"))
    segments = site.put("one", "two")
    site.until_under_way(segments)
    [lost] = site.segments_of("b", segments)
    network.cut("b")
    site.hosts["b"].kill()
    took = site.until(lambda: site.performer(lost) == "a" or site.archive.status(lost).status == "ENQUEUED")
    again = site.came_again(segments, SIDE_BY_SIDE)
    print(f"a dead host: its run was free after {took:.1f} s; {again} steps came again")


def test_a_frozen_worker_is_replaced(site: Site, network: Network) -> None:
    """Its host still answers for it, but the database hears nothing from it. Awake again, it finds its run gone: what comes late counts for nothing."""
    site.start(a=network.on("a"), b=network.on("b"))
    segments = site.put("one", "two")
    site.until_under_way(segments)
    [frozen] = site.segments_of("b", segments)
    process = site.hosts["b"]
    process.send_signal(signal.SIGSTOP)
    began = monotonic()
    took = site.until(lambda: site.performer(frozen) == "a")
    site.for_seconds(began + 20 - monotonic())
    process.send_signal(signal.SIGCONT)
    again = site.came_again(segments, SIDE_BY_SIDE)
    print(f"a frozen worker: its run went on elsewhere after {took:.1f} s; {again} steps came again")
