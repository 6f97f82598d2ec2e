"""Work spread over processes: same results, same order, and no result is lost in silence."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentloom.cli.parallel import can_fork, processors, spread
from tests.cli.conftest import environment

HERE = os.getpid()


def _lost(item: object, why: str) -> str:
    return f"{item}: {why}"


def _where(item: int) -> tuple[int, int]:
    return item * item, os.getpid()


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_order_is_that_of_the_items(workers: int, count: int) -> None:
    """However many processes there are."""
    results = list(spread(_where, range(count), workers, lambda item, why: (item, -1)))
    assert [value for value, _ in results] == [n * n for n in range(count)]
    if workers > 1 and count > 1 and can_fork():
        pids = {pid for _, pid in results}
        assert HERE not in pids
        assert len(pids) == min(workers, count)


def test_results_larger_than_a_pipe() -> None:
    """A process that has more to say than a pipe holds waits until it is its turn."""
    results = list(spread(lambda n: "x" * (n * 100_000), range(12), 2, _lost))
    assert [len(result) for result in results] == [n * 100_000 for n in range(12)]


DEATH = """
import os, signal
from agentloom.cli.parallel import spread

def work(item):
    if item == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return str(item)

for result in spread(work, range(6), 2, lambda item, why: f"{item}: {why}"):
    print(result)
"""


def test_a_process_that_dies_is_said_for_each_of_its_items() -> None:
    """A reader in C that crashes costs its own share and nothing else; the caller is told which files."""
    done = subprocess.run([sys.executable, "-c", DEATH], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "0",
        "1",
        "2: the process that checked it ended too early",
        "3",
        "4: the process that checked it ended too early",
        "5",
    ]
    assert done.stderr == ""


STOPPED = """
import os
from itertools import islice
from agentloom.cli.parallel import spread

results = spread(lambda n: n, range(10_000), 2, lambda n, why: -1)
print(list(islice(results, 3)))
results.close()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no process left")
"""


def test_stopping_early_leaves_no_process() -> None:
    """A caller that stops listening ends the others, busy or not. In a program of its own: this one has other children."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[0, 1, 2]", "no process left"]
    assert done.stderr == ""


def test_processors() -> None:
    """At least the one that runs this."""
    assert processors() >= 1
