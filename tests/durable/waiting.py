"""Runs that wait at gates in a database, callback servers over it, and what tests ask them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentloom.core.loader import load_text
from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.orders import QUEUE, order_for
from agentloom.durable.dbos.place import place_of
from tests.callbacks.conftest import Server as Page
from tests.cli.conftest import start as start  # a fixture
from tests.durable.crew import Workers

Serve = Callable[..., Page]
pause = threading.Event()


def timed(then: str | None, seconds: int = 1) -> str:
    """Return a workflow that waits so long for a decision."""
    on_timeout = "" if then is None else f", on_timeout: {then}"
    return (
        "name: timed\nconfig: {provider: mock}\nsteps:\n"
        f"  - {{id: gate, type: approval_gate, output: verdict, timeout_seconds: {seconds}{on_timeout}}}\n"
        "  - {id: send, type: llm_call, depends_on: [gate], prompt: '{state.verdict}', output: sent}\n"
    )


@pytest.fixture
def serve(start: Any, tmp_path: Path) -> Serve:
    """Return a function that starts a callback server over a database."""

    def begin(url: str, *options: str) -> Page:
        return Page(
            start(
                "callback-server", "--port", "0", *options, cwd=tmp_path,
                env={"AGENTLOOM_ON": url}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip

    return begin


@pytest.fixture
def archive(workers: Workers) -> Iterator[Archive]:
    """The database of the workers, prepared."""
    with Archive(place_of(workers.url), migrate=True) as found:
        yield found


def put(archive: Archive, text: str, *names: str) -> None:
    """Ask for runs of a workflow."""
    for name in names:
        archive.put(order_for(load_text(text), {}, name), 1, QUEUE)


def until(archive: Archive, run_id: str, *statuses: str) -> Any:
    """Wait until a run has one of these statuses, and return its checkpoint."""
    while (data := archive.find(run_id).data).status not in statuses:
        pause.wait(0.05)
    return data


def both(pages: list[Page], questions: list[tuple[str, str]]) -> list[Any]:
    """Ask several servers at the same moment, in turn."""
    barrier = threading.Barrier(len(questions))

    def one(at: int) -> Any:
        barrier.wait()
        return pages[at % len(pages)].ask(*questions[at])

    with ThreadPoolExecutor(len(questions)) as pool:
        return list(pool.map(one, range(len(questions))))
