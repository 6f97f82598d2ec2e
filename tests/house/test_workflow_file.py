"""What the documents say about the workflow file, from the outside: files in, the program's answer out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.core.loader import load_text
from agentloom.errors import InvalidWorkflow
from agentloom.model.catalogue import catalogue
from tests.conftest import ROOT
from tests.house.corpus import check

CALL = "  - id: a\n    type: llm_call\n    prompt: Hello.\n"


def loom(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "agentloom", *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'lsp'}", "PATH": "/usr/bin:/bin"},
    )


def codes(text: str) -> list[str]:
    """Return the codes of a text's errors."""
    return [d.code for d in check(text).diagnostics if d.severity == 1]


def test_name_is_the_one_key_that_must_be_there() -> None:
    """Everything else at the top has a default, but a workflow without steps has nothing to do."""
    assert codes(f"name: w\nsteps:\n{CALL}") == []
    assert codes(f"steps:\n{CALL}") == ["AL101"]
    assert codes("- a list\n") == ["AL008"]


UNKNOWN = {
    "at the top": f"name: w\nstates: {{}}\nsteps:\n{CALL}",
    "in config": f"name: w\nconfig: {{budgt_usd: 1}}\nsteps:\n{CALL}",
    "in the sandbox of config": f"name: w\nconfig: {{sandbox: {{enabld: true}}}}\nsteps:\n{CALL}",
    "in a step": f"name: w\nsteps:\n{CALL}    outptu: x\n",
    "in retry": f"name: w\nsteps:\n{CALL}    retry: {{max_retry: 1}}\n",
    "in a condition": "name: w\nsteps:\n  - {id: r, type: router, default: a, conditions: [{expr: 'True', target: a}]}\n"
    "  - {id: a, type: llm_call, prompt: hi, depends_on: [r]}\n",
    "in a child": "name: w\nsteps:\n  - id: s\n    type: subworkflow\n"
    "    workflow_inline: {name: c, step: [], steps: [{id: a, type: llm_call, prompt: hi}]}\n",
}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_a_key_nobody_knows_is_refused(text: str) -> None:
    """On every level; and the engine's loader refuses the file for it."""
    assert "AL102" in codes(text)
    with pytest.raises(InvalidWorkflow):
        load_text(text)


def test_a_misspelled_field_stops_the_file_before_anything_runs(tmp_path: Path) -> None:
    """A step that would leave a trace stands before the misspelled one: it doesn't run."""
    (tmp_path / "w.yaml").write_text(
        "name: w\nsteps:\n  - {id: t, type: tool, tool_name: file_write, tool_args: {path: trace.txt, content: x}}\n"
        "  - {id: a, type: llm_call, promt: hi}\n",
        encoding="utf-8",
    )
    done = loom(tmp_path, "run", "w.yaml", "-p", "mock")
    assert done.returncode == 1
    assert "`promt`" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.yaml"]


def test_validate_runs_nothing(tmp_path: Path) -> None:
    """A step that would leave a trace is checked and leaves none."""
    (tmp_path / "w.yaml").write_text(
        "name: w\nsteps:\n  - {id: t, type: tool, tool_name: file_write, tool_args: {path: trace.txt, content: x}}\n",
        encoding="utf-8",
    )
    done = loom(tmp_path, "validate", "w.yaml")
    assert done.returncode == 0, done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.yaml"]


def test_there_are_seven_step_types() -> None:
    """And any other is refused."""
    seven = {"llm_call", "router", "tool", "subworkflow", "approval_gate", "embed", "agent"}
    assert set(catalogue().steps) == seven
    assert codes("name: w\nsteps:\n  - {id: a, type: loop}\n") == ["AL103"]


def test_every_step_type_takes_the_common_keys() -> None:
    """`id`, `type`, `depends_on`, `output`, `retry` and `timeout`."""
    for type_ in catalogue().steps:
        block = catalogue().step(type_)
        assert block is not None
        assert {"id", "type", "depends_on", "output", "retry", "timeout"} <= set(block.fields), type_


def test_an_unknown_dependency_is_an_error_at_load() -> None:
    """With the place, and the engine refuses."""
    text = f"name: w\nsteps:\n{CALL}    depends_on: [b]\n"
    assert codes(text) == ["AL202"]
    with pytest.raises(InvalidWorkflow, match="b"):
        load_text(text)


def test_a_ring_is_an_error_at_load() -> None:
    """Of two and of three, and on oneself."""
    assert codes(f"name: w\nsteps:\n{CALL}    depends_on: [a]\n") == ["AL203"]
    two = f"name: w\nsteps:\n{CALL}    depends_on: [b]\n{CALL.replace('id: a', 'id: b')}    depends_on: [a]\n"
    assert codes(two) == ["AL204"]
    with pytest.raises(InvalidWorkflow):
        load_text(two)


def test_the_state_of_the_command_line_wins(tmp_path: Path) -> None:
    """`--state` adds keys and replaces those of the file; values that are JSON keep their type."""
    (tmp_path / "w.yaml").write_text(
        f"name: w\nconfig: {{provider: mock}}\nstate: {{kept: file, replaced: file}}\nsteps:\n{CALL}", encoding="utf-8"
    )
    done = loom(tmp_path, "run", "w.yaml", "--json", "-s", "replaced=line", "-s", "added=[1, 2]")
    state = json.loads(done.stdout)["final_state"]
    assert (state["kept"], state["replaced"], state["added"]) == ("file", "line", [1, 2])


def test_a_run_prints_a_summary_or_everything(tmp_path: Path) -> None:
    """For people the outcome of each step; with `--json` the whole result and nothing else on standard output."""
    (tmp_path / "w.yaml").write_text(
        f"name: w\nconfig: {{provider: mock}}\nsteps:\n{CALL}    output: said\n", encoding="utf-8"
    )
    summary = loom(tmp_path, "run", "w.yaml")
    assert summary.returncode == 0
    assert "[OK]" in summary.stdout
    assert "said" in summary.stdout
    result = json.loads(loom(tmp_path, "run", "w.yaml", "--json").stdout)
    assert result["final_state"]["said"] == "Mock response"
    assert result["step_results"]["a"]["status"] == "success"
    assert {"run_id", "total_tokens", "total_cost_usd", "total_duration_ms", "error"} <= set(result)
