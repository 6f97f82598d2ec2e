"""Links: what is one, where it stands, where it leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.ide.links import links
from agentloom.text import Source

HOME = Path("/x y/flows/w.loom.yaml")
THERE = {
    Path("/x y/flows/child.loom.yaml"): "name: k\nsteps: [{id: q, type: tool, tool_name: echo}]\n",
    Path("/x y/flows/é #1.json"): "{}",
    Path("/x y/pic.png"): "",
    Path("/x y/flows/a.agent.yaml"): "system_prompt: hi\n",
    Path("/x y/flows/workflow.schema.json"): "{}",
}


def found(text: str, uri: str = str(HOME)) -> list[tuple[str, str]]:
    """Return each link's text and target."""
    context = Context(read_text=lambda path: THERE[path], exists=lambda path: path in THERE)
    document = analyze(Source(uri, text), context, None, "workflow")
    return [(text[slice(*link.span)], str(link.target)) for link in links(document)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("config: {responses_file: 'é #1.json'}\n", [("é #1.json", "/x y/flows/é #1.json")]),
        ("config: {responses_file: gone.json}\n", []),
        ("config: {sandbox: {allowed_paths: [../pic.png]}}\n", []),
        (
            'steps:\n  - {id: s, type: subworkflow, workflow_path: "./chi\\x6cd.loom.yaml"}\n',
            [("./chi\\x6cd.loom.yaml", "/x y/flows/child.loom.yaml")],
        ),
        (
            "agents: {a: a.agent.yaml}\nsteps:\n  - {id: s, type: agent, agent: a, input: hi}\n"
            "  - {id: t, type: agent, agent: a.agent.yaml}\n",
            [("a.agent.yaml", "/x y/flows/a.agent.yaml")] * 2,
        ),
        (
            "steps:\n  - {id: s, type: llm_call, attachments: [{source: ../pic.png}, {source: '{state.p}'}, {source: '../{x}'}]}\n",
            [("../pic.png", "/x y/pic.png")],
        ),
        (
            "# yaml-language-server: $schema=workflow.schema.json\nname: w\n",
            [("workflow.schema.json", "/x y/flows/workflow.schema.json")],
        ),
        ("# yaml-language-server: $schema=gone.schema.json\nname: w\n", []),
        (
            "# yaml-language-server: $schema=https://a.test/workflow.schema.json\nname: w\n",
            [("https://a.test/workflow.schema.json",) * 2],
        ),
        (
            "steps:\n  - id: s\n    prompt: see https://a.test/b?c=d&e, (https://a.test/x_(y)) or https://a.test/{state.x}.\n",
            [("https://a.test/b?c=d&e",) * 2, ("https://a.test/x_(y)",) * 2],
        ),
        ("steps: [{id: s, attachments: [{source: https://a.test/p.png}]}]\n", [("https://a.test/p.png",) * 2]),
        ("x: https://\ny: http://,\n", []),
        (
            "steps:\n  - &s {id: s, type: subworkflow, workflow_path: child.loom.yaml}\n  - *s\n",
            [("child.loom.yaml", "/x y/flows/child.loom.yaml")],
        ),
        (
            "steps:\n  - id: o\n    type: subworkflow\n    workflow_inline:\n      steps:\n"
            "        - {id: s, type: subworkflow, workflow_path: child.loom.yaml}\n",
            [("child.loom.yaml", "/x y/flows/child.loom.yaml")],
        ),
        (
            "steps:\n  - {id: s, type: subworkflow, workflow_path: child.loom.yaml\n",
            [("child.loom.yaml", "/x y/flows/child.loom.yaml")],
        ),
    ],
)
def test_what_is_a_link(text: str, expected: list[tuple[str, str]]) -> None:
    """Files that are there, the schema, and addresses that are whole."""
    assert found(text) == expected


def test_paths_need_a_home() -> None:
    """A text that was never saved has no files beside it; addresses lead somewhere all the same."""
    text = "config: {responses_file: 'é #1.json'}\nx: https://a.test\n"
    assert found(text, "untitled:x") == [("https://a.test", "https://a.test")]


def test_what_is_no_path_is_none() -> None:
    """Texts that no file system takes are passed over."""
    picture = "iVBOR" * 1_000
    assert (
        found(f'steps: [{{id: s, type: llm_call, attachments: [{{source: "{picture}"}}, {{source: "a\\0b"}}]}}]\n')
        == []
    )
