"""Agents in files of their own are checked with the workflow that names them: what the check says is what a run refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.document import WorkflowDocument
from agentloom.analysis.effort import effort
from agentloom.text import Source
from tests.analysis.checking import ANY_STATE

WORKFLOW = {
    "name": "t",
    "agents": {"named": {"system_prompt": "x"}},
    "steps": [{"id": "s", "type": "agent", "agent": "./a.agent.yaml", "input": "go"}],
}


def check(folder: Path, name: str = "w.yaml", **files: Any) -> WorkflowDocument:
    """Write files, and return one of them as a document; ``a`` is `a.agent.yaml`, ``w`` the workflow."""
    for key, data in {"w": WORKFLOW, "a": {"system_prompt": "x"}, **files}.items():
        if data is not None:
            path = folder / ("w.yaml" if key == "w" else f"{key}.agent.yaml")
            path.write_text(json.dumps(data))
    path = folder / name
    return analyze(Source(str(path), path.read_text()), Context(settings=ANY_STATE))


def told(document: WorkflowDocument) -> list[tuple[str, str]]:
    """Return codes and messages of the errors."""
    return [(found.code, found.message) for found in document.diagnostics if found.severity == 1]


def calling(*names: str) -> dict[str, Any]:
    """Return an agent that may call others."""
    return {"system_prompt": "x", "tools": [{"agent": name} for name in names]}


def test_a_sound_file_has_nothing_to_tell(tmp_path: Path) -> None:
    """It is one of the files that the workflow's verdict depends on; so are those that it names."""
    document = check(tmp_path, a=calling("b.agent.yaml", "named"), b={"system_prompt": "x"})
    assert told(document) == []
    assert {path.name for path in document.files} == {"a.agent.yaml", "b.agent.yaml"}


@pytest.mark.parametrize(
    ("files", "code", "message"),
    [
        ({"a": {"system_prompt": "x", "bogus": 1}}, "AL702", "`./a.agent.yaml` has an error; mend it first"),
        ({"a": {"tools": []}}, "AL702", "`./a.agent.yaml` has an error; mend it first"),
        ({"a": {"system_prompt": "{"}}, "AL702", "`./a.agent.yaml` has an error; mend it first"),
        (
            {"a": {"system_prompt": "x", "loop_policy": {"exit_condition": "repl == 1"}}},
            "AL702",
            "`./a.agent.yaml` has an error; mend it first",
        ),
        ({"a": calling("gone.agent.yaml")}, "AL702", "`./a.agent.yaml` has an error; mend it first"),
        (
            {"a": calling("nobody")},
            "AL608",
            "`./a.agent.yaml` calls agent `nobody`, which is not defined; define it under `agents`",
        ),
        (
            {"a": calling("mine"), "w": {**WORKFLOW, "agents": {"mine": calling("./a.agent.yaml")}}},
            "AL609",
            "agents call each other in a ring: `a.agent.yaml -> mine -> a.agent.yaml`; take one of the calls out",
        ),
        (
            {"a": {"system_prompt": "x"}, "w": {**WORKFLOW, "agents": {"short": "b.agent.yaml"}}},
            "AL701",
            "file `b.agent.yaml` does not exist; did you mean `a.agent.yaml`?",
        ),
    ],
)
def test_what_is_wrong_in_a_file(tmp_path: Path, files: dict[str, Any], code: str, message: str) -> None:
    """Told where the workflow names it."""
    found = told(check(tmp_path, **files))
    assert found[0][0] == code
    assert found[0][1].split(";")[0] == message.split(";")[0]


def test_a_ring_of_files_is_told_in_each(tmp_path: Path) -> None:
    """In the agent's own file, too."""
    files = {"a": calling("b.agent.yaml"), "b": calling("a.agent.yaml")}
    assert [code for code, _ in told(check(tmp_path, **files))] == ["AL702"]
    alone = told(check(tmp_path, "a.agent.yaml", **files))
    ring = "agents call each other in a ring: `a.agent.yaml -> b.agent.yaml -> a.agent.yaml`; take one of the calls out"
    assert alone == [("AL609", ring)]


def test_a_key_goes_before_a_file_of_that_name(tmp_path: Path) -> None:
    """Names are looked up among the keys first."""
    agents = {"a.agent.yaml": {"system_prompt": "inline"}}
    steps = [{"id": "s", "type": "agent", "agent": "a.agent.yaml", "input": "x"}]
    document = check(tmp_path, w={**WORKFLOW, "agents": agents, "steps": steps}, a={"broken": 1})
    assert told(document) == []


def test_a_file_says_how_long_a_turn_may_take(tmp_path: Path) -> None:
    """The worst case reads it there."""
    document = check(tmp_path, a={"system_prompt": "x", "constraints": {"max_latency_ms": 2500}})
    found = effort(document).efforts["s"]
    assert (found.limit, found.limited_by) == (2.5, "max_latency_ms")


def test_a_pattern_in_a_file(tmp_path: Path) -> None:
    """A pattern that is no regular expression is told in the agent's own file, and where the workflow names that."""
    files = {"a": {"system_prompt": "x", "constraints": {"forbidden_patterns": ["[[a-z]", "(a"]}}}
    assert [code for code, _ in told(check(tmp_path, **files))] == ["AL702"]
    words = "`(a` is no regular expression: missing ), unterminated subpattern at position 0; correct it"
    assert told(check(tmp_path, "a.agent.yaml", **files)) == [("AL610", words)]


def test_conditions_of_agents_know_the_reply(tmp_path: Path) -> None:
    """`state` and `reply`; the word that stands for no call is no expression."""
    for condition, codes in (
        ("no_tool_call", []),
        ("'DONE' in reply and state.n > 1", []),
        ("reply.strip() == 'x'", []),
        ("answer == 1", ["AL303"]),
        ("reply ==", ["AL301"]),
        ("[x for x in reply]", ["AL302"]),
    ):
        agents = {"named": {"system_prompt": "x", "loop_policy": {"exit_condition": condition}}}
        found = [code for code, _ in told(check(tmp_path, w={**WORKFLOW, "agents": agents}))]
        assert found == codes, condition


def test_routers_know_no_reply(tmp_path: Path) -> None:
    """There is none."""
    steps = [
        {"id": "r", "type": "router", "conditions": [{"expression": "reply == 1", "target": "s"}]},
        *WORKFLOW["steps"],
    ]  # type: ignore[misc]
    assert "AL303" in [code for code, _ in told(check(tmp_path, w={**WORKFLOW, "steps": steps}))]
