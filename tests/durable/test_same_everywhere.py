"""A run gives the same wherever it lives: every example, and every workflow of the documents, here and with `--on`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import ROOT, Call, call, environment
from tests.house.documents import Block, blocks, documents

__all__ = ["call"]

EXAMPLES = sorted((ROOT / "examples").glob("*.loom.yaml"))


def is_whole(block: Block) -> bool:
    """Tell whether a block of a document is a workflow that can be run, and not a part of one, or a mistake."""
    words = (re.search(rf"^{word}:", block.text, re.MULTILINE) for word in ("name", "steps"))
    return block.words == ("yaml",) and all(words)


WHOLE = [block for path in documents(ROOT) for block in blocks(path) if is_whole(block)]

LOGGED = ("Run ID:", "warning: ")
"""Where a run lives makes a difference for these: what is logged stands in the log of whoever performs it."""


class Told(NamedTuple):
    """What a run gave, without what depends on the clock, or on which of two steps side by side was faster."""

    code: int
    result: Any
    events: list[str]
    lines: list[str]


_local: dict[str, Told] = {}
"""What runs in this process gave, by workflow: asked for once."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def worked_on(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database that a worker, a process of its own, works on."""
    folder = tmp_path_factory.mktemp("worker")
    if request.param == "sqlite":
        url = f"sqlite:///{folder / 'runs.db'}"
    else:
        new: Callable[[], str] = request.getfixturevalue("new_postgres")
        url = new()
    worker = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "agentloom", "worker", "--on", url, "--drain", "0", "--shared", "/"],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert worker.stdout is not None
        line = worker.stdout.readline()
        assert line.startswith("takes runs from"), line + worker.stdout.read()
        yield url
    finally:
        worker.terminate()
        worker.communicate()


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples' folder, where the workflows of the documents find the files that they name."""
    folder = tmp_path_factory.mktemp("documents") / "examples"
    shutil.copytree(ROOT / "examples", folder)
    return folder


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name.split(".")[0])
def test_an_example_with_a_worker(call: Call, worked_on: str, tmp_path: Path, example: Path) -> None:
    """Result, events, what is said, and exit code, also of examples that wait at a gate or fail."""
    assert told(call, tmp_path, example, "--on", worked_on, "--shared", "/") == here(call, tmp_path, example)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name.split(".")[0])
def test_an_example_without_a_worker(call: Call, sqlite: str, tmp_path: Path, example: Path) -> None:
    """On a file the command is its own worker."""
    assert told(call, tmp_path, example, "--on", sqlite) == here(call, tmp_path, example)


@pytest.mark.parametrize("block", WHOLE, ids=str)
def test_a_workflow_of_the_documents(call: Call, worked_on: str, tmp_path: Path, examples: Path, block: Block) -> None:
    """The same, with a provider that needs no key."""
    file = examples / f"{re.sub('[^a-z0-9]+', '-', str(block).lower())}.loom.yaml"
    file.write_text(block.text, encoding="utf-8")
    mock = ("--provider", "mock")
    assert told(call, tmp_path, file, *mock, "--on", worked_on, "--shared", "/") == here(call, tmp_path, file, *mock)


def here(call: Call, folder: Path, workflow: Path, *options: str) -> Told:
    """Run a workflow in this process, or say what that gave."""
    name = " ".join([str(workflow), *options])
    if name not in _local:
        _local[name] = told(call, folder, workflow, *options)
    return _local[name]


def told(call: Call, folder: Path, workflow: Path, *options: str) -> Told:
    """Run a workflow."""
    events = folder / "events.jsonl"
    events.write_text("", encoding="utf-8")
    done = call("run", str(workflow), "--json", "--events", str(events), *options)
    said = [line for line in done.err.splitlines() if not line.startswith(LOGGED)]
    return Told(
        done.code,
        timeless(json.loads(done.out)) if done.out else None,
        sorted(json.dumps(timeless(json.loads(line))) for line in events.read_text(encoding="utf-8").splitlines()),
        sorted(re.sub(r"(in|after) [0-9.]+m?s", r"\1 0ms", line) for line in said),
    )


def timeless(data: dict[str, Any]) -> dict[str, Any]:
    """Return a result or an event without times and the run's id."""
    for part in (data, *data.get("step_results", {}).values()):
        for name in ("time", "duration_ms", "total_duration_ms", "time_to_first_token_ms", "run_id"):
            part.pop(name, None)
    return data
