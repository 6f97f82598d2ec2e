"""The promise: the command line, the engine's loader and the real server say the same about every file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from agentloom.core.loader import load_workflow
from agentloom.errors import InvalidWorkflow
from benchmarks.client import Client
from tests.conftest import ROOT
from tests.house.corpus import files

SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}
Said = dict[str, list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def command_line() -> Said:
    """What `validate --format json` says, by file: code, severity, range, message."""
    names = [str(path.relative_to(ROOT)) for path in files()]
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "validate", "--severity", "hint", "--format", "json", *names],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'lsp'}", "PATH": "/usr/bin:/bin"},
    )
    said: Said = {name: [] for name in names}
    for d in json.loads(done.stdout)["diagnostics"]:
        place = (d["line"] - 1, d["column"] - 1, d["end_line"] - 1, d["end_column"] - 1)
        said[d["path"]].append((d["code"], SEVERITIES[d["severity"]], place, d["message"]))
    assert sum(map(len, said.values())) > 50
    return said


@pytest.fixture(scope="module")
def server() -> Said:
    """What a real server over stdio says to each file when it is opened. Columns in UTF-32 units, which are code points."""
    said: Said = {}
    with Client(ROOT, {"debounce": 0}, encoding="utf-32") as client:
        for path in files():
            document = {"uri": path.as_uri()}
            text = path.read_bytes().decode("utf-8")
            client.notify(
                "textDocument/didOpen", {"textDocument": {**document, "languageId": "yaml", "version": 1, "text": text}}
            )
            items = client.request("textDocument/diagnostic", {"textDocument": document})["items"]
            client.notify("textDocument/didClose", {"textDocument": document})
            said[str(path.relative_to(ROOT))] = [
                (
                    d["code"],
                    d["severity"],
                    (
                        *(d["range"]["start"][k] for k in ("line", "character")),
                        *(d["range"]["end"][k] for k in ("line", "character")),
                    ),
                    d["message"],
                )
                for d in items
            ]
    return said


def test_the_server_says_what_the_command_line_says(command_line: Said, server: Said) -> None:
    """The same codes, severities, ranges and messages, file by file."""
    assert {name: sorted(said, key=repr) for name, said in server.items()} == {
        name: sorted(said, key=repr) for name, said in command_line.items()
    }


def test_the_engine_refuses_what_has_an_error(command_line: Said) -> None:
    """The loader takes a file exactly if it has no error; a refusal carries the same diagnostics."""
    for name, said in command_line.items():
        if name.endswith(".agent.yaml"):
            continue
        try:
            load_workflow(ROOT / name)
            refused = False
        except InvalidWorkflow as error:
            refused = True
            lines = error.document.lines
            told = [
                (d.code, int(d.severity), (*lines.position(d.span.start), *lines.position(d.span.end)), d.message)
                for d in error.document.diagnostics
            ]
            assert sorted(told, key=repr) == sorted(said, key=repr), name
        assert refused == any(severity == 1 for _, severity, _, _ in said), name
