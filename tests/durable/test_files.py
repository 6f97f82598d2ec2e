"""Files of runs on a server: workers elsewhere, in folders of their own, have what the run was asked for with, or say what they lack."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom.durable.dbos.blobs import digest_of
from agentloom.durable.dbos.packing import Ways
from agentloom.durable.dbos.unpacking import home_of
from agentloom.errors import WorkflowError
from tests.cli.conftest import Call, call, served_by
from tests.durable.crew import Workers, workers
from tests.wire.server import WireServer

__all__ = ["call", "workers"]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
LOOK = "{id: look, type: llm_call, prompt: What is it?, attachments: [%s], output: seen}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of who asks for runs; the workers know nothing of it."""
    folder = tmp_path / "home" / "flows"
    (folder / "parts").mkdir(parents=True)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, workers: Workers) -> Workers:
    """The workers of a database, started in a folder of their own."""
    workers.folder = tmp_path / "elsewhere"
    workers.folder.mkdir()
    return workers


@pytest.fixture
def model() -> Iterator[WireServer]:
    """A model on loopback."""
    with WireServer() as found:
        yield found


def sent(model: WireServer) -> set[bytes]:
    """Return what came to the model as pictures."""
    found = set()
    for request in model.requests:
        for message in json.loads(request.body)["messages"]:
            for part in message["content"] if isinstance(message["content"], list) else ():
                if part["type"] == "image_url":
                    found.add(base64.b64decode(part["image_url"]["url"].partition(",")[2]))
    return found


def test_attachments_and_recordings_go_along(
    call: Call, elsewhere: Workers, home: Path, tmp_path: Path, model: WireServer
) -> None:
    """From the workflow's folder, from that of a child in another file, from outside, and by a path that the state has; also after a gate."""
    pictures = {name: PNG + name.encode() for name in ("own", "child", "outside", "stated")}
    (home / "own.png").write_bytes(pictures["own"])
    (home / "stated.png").write_bytes(pictures["stated"])
    (home / "parts" / "child.png").write_bytes(pictures["child"])
    (tmp_path / "outside.png").write_bytes(pictures["outside"])
    (home / "parts" / "part.loom.yaml").write_text(
        f"name: part\nconfig: {{model: gpt-4o}}\nsteps:\n  - {LOOK % '{source: child.png}'}\n"
    )
    named = f"{{source: ./own.png}}, {{source: '{{state.picture}}'}}, {{source: {tmp_path / 'outside.png'}}}"
    (home / "see.loom.yaml").write_text(
        f"name: see\nconfig: {{provider: openai, model: gpt-4o}}\nstate: {{picture: ''}}\nsteps:\n  - {LOOK % named}\n"
        "  - {id: gate, type: approval_gate, depends_on: [look]}\n"
        "  - {id: part, type: subworkflow, workflow_path: parts/part.loom.yaml, depends_on: [gate]}\n"
    )
    laid_out = tmp_path / "tmp"
    laid_out.mkdir()
    elsewhere.environment.update(served_by(model), TMPDIR=str(laid_out))
    elsewhere.begin(1)
    at = {"AGENTLOOM_ON": elsewhere.url, **served_by(model)}
    paused = call("run", str(home / "see.loom.yaml"), "-s", "picture=stated.png", "--run-id", "s", "--json", **at)
    assert (paused.code, json.loads(paused.out)["status"]) == (0, "paused"), paused.err
    for path in home.rglob("*.png"):
        path.unlink()  # what a run was asked for with stays with it
    done = call("resume", "s", "--approve", "--json", **at)
    assert (done.code, json.loads(done.out)["status"]) == (0, "success"), done.err
    assert sent(model) == set(pictures.values())
    assert list(laid_out.glob("agentloom-run-*")) == []
    shown = json.loads(call("runs", "show", "s", "--json", **at).out)
    assert shown["source"] == str(home / "see.loom.yaml")


def test_a_recording_goes_along(call: Call, elsewhere: Workers, home: Path, tmp_path: Path) -> None:
    """That of `--mock-responses`, wherever it lies."""
    (home / "ask.loom.yaml").write_text("name: ask\nsteps:\n  - {id: a, type: llm_call, prompt: Hello, output: said}\n")
    (tmp_path / "said.json").write_text(json.dumps({"a": {"content": "recorded words"}}))
    elsewhere.begin(1)
    done = call(
        "run", str(home / "ask.loom.yaml"), "--mock-responses", str(tmp_path / "said.json"), "--json", AGENTLOOM_ON=elsewhere.url
    )  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["final_state"]["said"] == "recorded words"


def test_large_files_go_by_a_folder_that_all_share(
    call: Call, elsewhere: Workers, home: Path, tmp_path: Path, model: WireServer
) -> None:
    """More than 1 MB is refused with the place and the cure; with `--blobs` it arrives, and a damaged copy is not taken for it."""
    large = PNG + os.urandom(1_200_000)
    (home / "large.png").write_bytes(large)
    (home / "small.png").write_bytes(PNG)
    (home / "see.loom.yaml").write_text(
        "name: see\nconfig: {provider: openai, model: gpt-4o}\nsteps:\n"
        f"  - {LOOK % '{source: large.png}, {source: small.png}'}\n"
    )
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    asked = ("run", str(home / "see.loom.yaml"), "--json")
    at = {"AGENTLOOM_ON": elsewhere.url, **served_by(model)}
    elsewhere.environment.update(served_by(model))
    elsewhere.begin(1)
    refused = call(*asked, **at)
    assert refused.code == 1
    assert "see.loom.yaml:4:76: AL707 `large.png` has 1.1 MB, and 1 MB of files in all goes" in refused.err
    assert "--blobs DIR" in refused.err
    lacking = call(*asked, "--blobs", str(blobs), **at)
    assert "`large.png` is in the folder of `--blobs`; start the workers with `--blobs DIR`" in lacking.err
    elsewhere.end()
    elsewhere.running.clear()
    elsewhere.options = ("--blobs", str(blobs))
    elsewhere.begin(1)
    done = call(*asked, "--blobs", str(blobs), **at)
    assert (done.code, sent(model)) == (0, {large, PNG}), done.err
    (kept,) = (path for path in blobs.rglob("*") if path.is_file())
    kept.write_bytes(large[:-1] + b"x")
    model.requests.clear()
    done = call(*asked, "--blobs", str(blobs), **at)  # whoever has the right one mends it
    assert (done.code, sent(model)) == (0, {large, PNG}), done.err


WRITES = """\
name: writes
steps:
  - {id: note, type: llm_call, prompt: x, output: note}
  - id: keep
    type: tool
    depends_on: [note]
    tool_name: file_write
    tool_args: {path: out/note.txt, content: "{state.note}"}
  - {id: back, type: tool, depends_on: [keep], tool_name: file_read, tool_args: {path: out/note.txt}, output: back}
  - {id: where, type: tool, depends_on: [keep], tool_name: shell_command, tool_args: {command: cat note.txt, cwd: out}, output: where}
config:
  provider: mock
  sandbox: {enabled: true, allowed_paths: [out], allowed_commands: [cat]}
"""


def test_a_shared_folder_stands_for_the_workflows_own(
    call: Call, elsewhere: Workers, home: Path, tmp_path: Path
) -> None:
    """Without one, a workflow that writes files is refused where it does; with one, its paths start there, and the sandbox allows them."""
    (home / "writes.loom.yaml").write_text(WRITES)
    for name in ("mounted-here", "mounted-there"):
        (tmp_path / name).mkdir()
    here, there = tmp_path / "mounted-here", tmp_path / "mounted-there"
    at = {"AGENTLOOM_ON": elsewhere.url}
    elsewhere.begin(1)
    for command in (("run",), ("validate",)):
        refused = call(*command, str(home / "writes.loom.yaml"), **at)
        assert refused.code == 1
        told = refused.err + refused.out
        assert "writes.loom.yaml:8:23: error[AL707] local-path: `out/note.txt` is a file of whichever worker" in told
        assert "give a folder that is the same on all machines, with `--shared DIR`" in told
    assert call("validate", str(home / "writes.loom.yaml"), "--shared", str(here), **at).code == 0
    assert call("validate", str(home / "writes.loom.yaml")).code == 0
    lacking = call("run", str(home / "writes.loom.yaml"), "--shared", str(here), **at)
    assert lacking.code == 1
    assert "the run needs the shared folder; start the workers with `--shared DIR`" in lacking.err
    elsewhere.end()
    elsewhere.running.clear()
    elsewhere.options = ("--shared", str(there))
    elsewhere.begin(1)
    done = call("run", str(home / "writes.loom.yaml"), "--shared", str(here), "--json", **at)
    assert done.code == 0, done.err + done.out
    state = json.loads(done.out)["final_state"]
    assert (there / "out" / "note.txt").read_text() == state["note"] == state["back"] == state["where"]["stdout"]


def test_a_workflow_in_the_shared_folder_keeps_its_place(call: Call, elsewhere: Workers, tmp_path: Path) -> None:
    """Its paths start beside it there too, those of its children beside them, and the settings are those that lie there."""
    for machine in ("here", "there"):
        (tmp_path / machine / "flows" / "parts").mkdir(parents=True)
        (tmp_path / machine / "flows" / "said.json").write_text(json.dumps({"a": {"content": machine}}))
        (tmp_path / machine / "agentloom.toml").write_text('tools = ["own_tools"]\n')
        (tmp_path / machine / "own_tools.py").write_text(
            f'from agentloom.tools.base import tool\n@tool("place", "Where.")\ndef place() -> str:\n    return "{machine}"\n'
        )
    flow = tmp_path / "here" / "flows" / "flow.loom.yaml"
    flow.write_text(
        "name: flow\nconfig: {provider: mock, responses_file: said.json}\nsteps:\n  - {id: a, type: llm_call, prompt: x, output: a}\n"
        "  - {id: b, type: tool, tool_name: place, output: b}\n"
        "  - {id: c, type: tool, tool_name: file_read, tool_args: {path: said.json}, output: c}\n"
    )
    elsewhere.options = ("--shared", str(tmp_path / "there"))
    elsewhere.begin(1)
    done = call("run", str(flow), "--shared", str(tmp_path / "here"), "--json", AGENTLOOM_ON=elsewhere.url)
    assert done.code == 0, done.err
    state = json.loads(done.out)["final_state"]
    assert (state["a"], state["b"], json.loads(state["c"])) == ("there", "there", {"a": {"content": "there"}})


def test_what_a_sandbox_confines_does_not_go_along_from_outside(
    call: Call, elsewhere: Workers, home: Path, tmp_path: Path
) -> None:
    """Nor does what the state names there: a worker has no such place."""
    (tmp_path / "outside.png").write_bytes(PNG)
    path = str(tmp_path / "outside.png")
    elsewhere.begin(1)
    sandbox = f"config: {{provider: mock, sandbox: {{enabled: true, readable_paths: [{tmp_path}]}}}}\n"
    for config, source, why in (
        (sandbox, path, "the sandbox is on"),
        ("config: {provider: mock}\n", "'{state.x}'", "its path is made from the state"),
    ):
        (home / "see.loom.yaml").write_text(f"name: see\n{config}steps:\n  - {LOOK % f'{{source: {source}}}'}\n")
        done = call("run", str(home / "see.loom.yaml"), "-s", f"x={path}", AGENTLOOM_ON=elsewhere.url)
        assert done.code == 1
        assert f"AL707 `{path}` lies outside of the workflow's folder, and {why}" in done.err


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"../x": {}}, "`../x` is no path"),
        ({"/etc/x": {}}, "`/etc/x` is no path"),
        ({"a/../../x": {}}, "is no path"),
        ({"a\0": {}}, "is no path"),
        ({"a": {"sha256": "../../etc/passwd"}}, "file `a` of the order can't be read"),
        ({"a": {"sha256": digest_of(b"a"), "data": "Yg=="}}, "file `a` of the order is damaged"),
        ({"a": {"sha256": digest_of(b"a"), "data": 5}}, "file `a` of the order is damaged"),
        ({"a": {"sha256": digest_of(b"a")}}, "`a` isn't in `--blobs"),
        ({"a": {"sha256": digest_of(b"b")}}, "`a` is damaged in `--blobs"),
        ({"a": {"sha256": digest_of(b"a"), "data": "YQ=="}, "a/b": {"sha256": digest_of(b"a"), "data": "YQ=="}}, "`a/b` can't be written"),
        ({"a" * 300: {"sha256": digest_of(b"a"), "data": "YQ=="}}, "can't be written"),
        ({"\ud800": {"sha256": digest_of(b"a"), "data": "YQ=="}}, "can't be written"),
        ([], "`files` of the order can't be read"),
    ],
)  # fmt: skip
def test_files_of_an_order_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Any, why: str) -> None:
    """Paths lead down only, content is what its hash says, and nothing is left behind."""
    (tmp_path / digest_of(b"b")[:2]).mkdir()
    (tmp_path / digest_of(b"b")[:2] / digest_of(b"b")).write_bytes(b"c")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with (
        pytest.raises(WorkflowError, match=re.escape(why)),
        home_of({"source": None, "files": files or [1]}, Ways(blobs=tmp_path)),
    ):
        pass
    assert list(tmp_path.glob("agentloom-run-*")) == []


@pytest.mark.parametrize(
    ("start", "why"),
    [("..", "is no path"), ("/", "is no path"), (5, "is no path"), ("none", "`none` is no folder in `--shared")],
)
def test_the_place_in_the_shared_folder_is_checked(tmp_path: Path, start: Any, why: str) -> None:
    """An order leads nowhere but into it."""
    with pytest.raises(WorkflowError, match=re.escape(why)), home_of({"source": None, "shared": start}, Ways(tmp_path)):
        pass
    with home_of({"source": "C:\\flows\\x.loom.yaml", "shared": "."}, Ways(tmp_path)) as home:
        assert home == tmp_path / "x.loom.yaml"
