"""`agentloom graph` and `agentloom init`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import ROOT, Call

H = "name: w\nsteps:\n"
LOOP = H + "".join(
    f"  - {{id: {name}, type: llm_call, prompt: hi, depends_on: [{need}]}}\n" for name, need in ("ab", "bc", "ca", "da")
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_formats_by_option_and_by_ending(call: Call, here: Path) -> None:
    """Mermaid unless said otherwise; a file's ending says it too."""
    example = str(ROOT / "examples" / "incident-response.loom.yaml")
    assert call("graph", example).out.startswith("flowchart TD\n  runbook[")
    assert call("graph", "-f", "dot", example).out.startswith('digraph "incident-response" {')
    assert call("graph", example, "-o", "x.svg").out == ""
    assert ElementTree.parse(here / "x.svg").getroot().tag.endswith("svg")
    data = json.loads(call("graph", "-f", "json", example).out)
    assert (data["version"], data["name"]) == (1, "incident-response")
    assert {node["id"]: node["layer"] for node in data["nodes"]}["by_severity"] == 2
    asked = {(e["source"], e["target"]): e["label"] for e in data["edges"] if e["kind"] == "branch"}
    assert asked["by_severity", "write_ticket"] == "default"


def test_plain_text_and_the_other_name(call: Call, here: Path) -> None:
    """`visualize` is `graph`; as text, a step a line with what it waits for and what a router asks."""
    example = str(ROOT / "examples" / "support-triage.loom.yaml")
    done = call("visualize", "-f", "ascii", example)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "support-triage\nlayer 1\n  classify (llm_call)\nlayer 2\n  route (router) <- classify\n"
    )
    assert "  general_reply (llm_call) <- route [default]\n" in done.out
    assert done.out.isascii()
    assert call("visualize", "--format", "mermaid", example).out == call("graph", example).out
    (here / "w.yaml").write_text(LOOP, encoding="utf-8")
    assert "<- a [closes a cycle]" in call("graph", "-f", "ascii", "w.yaml").out
    assert call("graph", "w.yaml", "-o", "w.txt").code == 0
    assert (here / "w.txt").read_text(encoding="utf-8").startswith("w\nlayer 1\n")


def test_workflows_with_mistakes_are_drawn(call: Call, here: Path) -> None:
    """A cycle is cut where it closes, and drawn there as a dashed arrow; the errors are counted beside it."""
    (here / "w.yaml").write_text(LOOP, encoding="utf-8")
    done = call("graph", "w.yaml")
    assert done.code == 0
    assert done.out.count("-.->") == 1
    assert "  a -.-> c" in done.out
    assert "  a --> d" in done.out
    assert done.err == "w.yaml: 1 error; `agentloom validate` shows what is wrong\n"


def test_nothing_to_draw(call: Call, here: Path) -> None:
    """A file without steps, standard input too."""
    done = call("graph", "-", stdin="name: w\n")
    assert (done.code, done.out) == (1, "")
    assert "<stdin> has no steps to draw" in done.err


def test_a_project_is_started(call: Call, here: Path) -> None:
    """What is written has no findings, runs offline, and its settings and hooks are taken."""
    done = call("init", "shop/flows")
    assert done.code == 0
    assert done.out.endswith("Next: cd shop/flows && agentloom run hello.loom.yaml\n")
    os.chdir("shop/flows")
    checked = call("validate", "--strict", "--severity", "hint", ".")
    assert (checked.code, checked.out) == (0, "1 file checked: no findings\n")
    ran = json.loads(call("run", "--json", "hello.loom.yaml").out)
    assert ran["status"] == "success"
    assert ran["final_state"]["simple"].startswith("Air bounces blue light")
    assert {name: step["status"] for name, step in ran["step_results"].items()}["publish"] == "skipped"


@pytest.mark.parametrize("name", ["hello.loom.yaml", ".vscode/extensions.json", "agentloom.toml"])
def test_nothing_is_overwritten(call: Call, here: Path, name: str) -> None:
    """One file that is there, and nothing is written."""
    (here / name).parent.mkdir(exist_ok=True)
    (here / name).write_text("mine", encoding="utf-8")
    before = sorted(path for path in here.rglob("*"))
    done = call("init")
    assert done.code == 2
    assert done.err == f"error: `{name}` is there already; nothing was written\n"
    assert sorted(path for path in here.rglob("*")) == before
    assert (here / name).read_text(encoding="utf-8") == "mine"


def test_half_a_project_is_taken_back(call: Call, here: Path) -> None:
    """When a file can't be written, those before it go, too."""
    (here / "recordings").write_text("a file where the folder belongs", encoding="utf-8")
    done = call("init")
    assert done.code == 2
    assert [path.name for path in here.iterdir()] == ["recordings"]
