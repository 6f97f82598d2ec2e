"""Files and folders that move: what names them follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.diagnostics import apply_edits
from agentloom.ide.moves import Move, paths_after
from tests.ide.project import FOLDER, Files

PARENT = """\
name: p
config: {responses_file: "r.json", sandbox: {allowed_paths: [./work, ./parts]}}
agents: {w: './agents/w.agent.yaml'}
steps:
  - {id: a, type: subworkflow, workflow_path: parts/c.yaml}
  - {id: b, type: agent, agent: w, input: hi}
  - id: i
    type: llm_call
    prompt: hi
    attachments: [{source: parts/x.png}, {source: "https://example.com/parts/c.yaml"}, {source: "{state.f}"}]
"""
CHILD = "name: c\nsteps:\n  - {id: a, type: agent, agent: ../agents/w.agent.yaml, input: hi}\n"
AGENT = "name: w\nsystem_prompt: hi\ntools: [{agent: ./v.agent.yaml}]\n"
TEXTS = {
    "p.yaml": PARENT,
    "parts/c.yaml": CHILD,
    "parts/x.png": "",
    "agents/w.agent.yaml": AGENT,
    "agents/v.agent.yaml": AGENT,
    "r.json": "{}",
}


@pytest.mark.parametrize(
    ("moves", "becomes"),
    [
        ({"parts/c.yaml": "parts/d.yaml"}, {"p.yaml": PARENT.replace("path: parts/c", "path: parts/d")}),
        ({"r.json": "a b/#.json"}, {"p.yaml": PARENT.replace("r.json", "a b/#.json")}),
        (
            {"agents/w.agent.yaml": "w.agent.yaml"},
            {
                "p.yaml": PARENT.replace("./agents/w", "./w"),
                "parts/c.yaml": CHILD.replace("../agents/w", "../w"),
                "agents/w.agent.yaml": AGENT.replace("./v", "agents/v").replace("agents/v", "./agents/v"),
            },
        ),
        (
            {"parts": "pieces"},
            {
                "p.yaml": PARENT.replace("path: parts/", "path: pieces/")
                .replace("source: parts/", "source: pieces/")
                .replace("./parts]", "./pieces]")
            },
        ),
        (
            {"p.yaml": "flows/deep/p.yaml"},
            {
                "p.yaml": PARENT.replace('"r.json"', '"../../r.json"')
                .replace("./agents", "../../agents")
                .replace("path: parts", "path: ../../parts")
                .replace("source: parts/x", "source: ../../parts/x")
            },
        ),
        ({"parts": "a/parts", "agents": "a/agents", "p.yaml": "a/p.yaml", "r.json": "a/r.json"}, {}),
        (
            {"parts": "q", "parts/x.png": "x.png"},
            {
                "p.yaml": PARENT.replace("path: parts/", "path: q/")
                .replace("source: parts/x", "source: x")
                .replace("./parts]", "./q]")
            },
        ),
        ({"elsewhere.yaml": "nowhere.yaml"}, {}),
    ],
)
def test_paths_follow(moves: dict[str, str], becomes: dict[str, str]) -> None:
    """Workflows, agents, recordings, attachments, whole folders; quotes and `./` are kept, and addresses left alone."""
    files = Files(TEXTS)
    changes = paths_after(files, [Move(FOLDER / old, FOLDER / new) for old, new in moves.items()])
    found = {
        str(Path(change.source.uri).relative_to(FOLDER)): apply_edits(change.source.text, change.edits)
        for change in changes
    }
    assert found == becomes
