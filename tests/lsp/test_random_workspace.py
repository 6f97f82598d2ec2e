"""Hours of work on a whole workspace: files written, removed, opened, edited and closed, settings changed, in any order.

Whatever happened, the server says of every file what one says that has just been started.
"""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.peer import FULL, PULLING, Local

SEEDS = int(os.environ.get("WALK", "0")) // 500 or 3
"""How many days are spent; more with `make walk`."""
A = "  - id: a\n    type: llm_call\n    prompt: hi\n"
H = "name: w\nsteps:\n"
CHILD = "  - id: {0}\n    type: subworkflow\n    workflow_path: {1}\n"
FILES = (
    "one.loom.yaml",
    "two.loom.yaml",
    "three.yaml",
    "inner/four.loom.yaml",
    "inner/five.loom.yaml",
    "inner/deep/six.loom.yaml",
    "writer.agent.yaml",
    "compose.yaml",
)
SETTINGS = ("agentloom.toml", "inner/agentloom.toml", "inner/deep/pyproject.toml")
TABLES = (
    "",
    'ignore = ["AL205"]\n',
    'severity = {AL205 = "error"}\n',
    'ignore = ["foo"]\n',
    "tools = 3\n",
    "ignore = [\n",
    'known_state = ["x"]\n',
)


class Desk:
    """A folder, a server that has watched everything that happened in it, and what is open there."""

    def __init__(self, folder: Path, peer: Local, seed: int) -> None:
        self.folder = folder
        self.peer = peer
        self.random = random.Random(seed)
        self.open: dict[str, str] = {}

    def path(self, name: str) -> Path:
        return self.folder / name

    def text(self) -> str:
        """Return some file's content: good or bad, reading the state or other files."""
        parts = [H, A]
        for number in range(self.random.randint(0, 3)):
            target = "../" * self.random.randint(0, 2) + self.random.choice((*FILES, "missing.loom.yaml"))
            parts.append(
                self.random.choice(
                    (
                        CHILD.format(f"s{number}", target),
                        f"  - {{id: b{number}, type: llm_call, prompt: 'hi {{state.x}}', depends_on: [a, a]}}\n",
                        f"  - {{id: c{number}, type: llm_call, prompt: hi, depends_on: [zz]}}\n",
                        f"  - {{id: d{number}, type: agent, agent: w}}\n",
                    )
                )
            )
        if self.random.random() < 0.3:
            parts.append("agents:\n  w: writer.agent.yaml\n")
        return "".join(parts)

    def any_text(self) -> str:
        """Return a file's content, which may be none of ours."""
        return self.random.choice((*[self.text()] * 8, "", "x: y\n", "name: w\nsystem_prompt: hi\n", "a: [\n"))

    def something_happens(self) -> None:
        name = self.random.choice(FILES)
        kind = self.random.choice(
            (self.write, self.write, self.remove, self.edit, self.edit, self.close, self.settings)
        )
        kind(name)

    def write(self, name: str) -> None:
        self.on_disk(name, self.any_text())

    def remove(self, name: str) -> None:
        self.on_disk(name, None)

    def settings(self, _: str) -> None:
        name = self.random.choice(SETTINGS)
        table = self.random.choice(TABLES)
        if name.endswith("pyproject.toml"):
            table = f"[tool.agentloom]\n{table}"
        self.on_disk(name, self.random.choice((table, table, None)))

    def edit(self, name: str) -> None:
        """Open a document, or go on with it if it is open: what was ours stays ours then."""
        uri, text = self.path(name).as_uri(), self.text() if name in self.open else self.any_text()
        if name in self.open:
            self.peer.change(uri, text)
        else:
            self.peer.open(uri, text)
        self.open[name] = text

    def close(self, name: str) -> None:
        if self.open.pop(name, None) is not None:
            self.peer.close_document(self.path(name).as_uri())

    def on_disk(self, name: str, text: str | None) -> None:
        path = self.path(name)
        there = path.exists()
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            new.write_text(text)
            new.replace(path)
        if there or text is not None:
            kind = 3 if text is None else 2 if there else 1
            self.peer.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": kind}]})

    def as_from_the_start(self) -> None:
        """Ask a server that has just been started, and compare."""
        for _ in range(4):  # files that read each other are checked again after one another
            mine = everything(self.peer)
        published = published_by(self.peer)
        with Local() as fresh:
            fresh.initialize(PULLING, folder=self.folder)
            for name, text in self.open.items():
                fresh.open(self.path(name).as_uri(), text)
            for _ in range(4):  # and settings are looked at when all else is done
                theirs = everything(fresh)
            assert mine == theirs
            for name in self.open:
                uri = self.path(name).as_uri()
                assert published[uri] == theirs.get(uri, []), name
            for name in SETTINGS:
                uri = self.path(name).as_uri()
                told = published_by(fresh).get(uri)
                if told:
                    assert published[uri] == told, name
                elif not self.path(name).exists():
                    assert not published.get(uri), name
            assert fresh.leave() == 0


def published_by(peer: Local) -> dict[str, Any]:
    """Return the diagnostics that were sent last, of every file."""
    return {
        message["params"]["uri"]: message["params"]["diagnostics"]
        for message in peer.seen
        if message.get("method") == "textDocument/publishDiagnostics"
    }


def everything(peer: Local) -> dict[str, Any]:
    """Return the diagnostics of every file of ours, as they are now."""
    answer = peer.request("workspace/diagnostic", {"previousResultIds": []})
    return {item["uri"]: item["items"] for item in answer["items"]}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_work(seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A day on which a hundred things happen; every now and then, all is as from the start."""
    with Local() as peer:
        peer.answers["workspace/diagnostic/refresh"] = None
        peer.initialize(FULL, folder=tmp_path, initializationOptions={"debounce": 0})
        desk = Desk(tmp_path, peer, seed)
        for _ in range(10):
            for _ in range(10):
                desk.something_happens()
            desk.as_from_the_start()
        assert peer.leave() == 0
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
