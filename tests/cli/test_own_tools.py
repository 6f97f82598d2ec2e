"""A project's own tools on the command line: checked like the built-in ones, whatever their modules do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentloom.core.loader import load_workflow
from tests.cli.conftest import Call

TOOLS = """\
from typing import Literal
from agentloom.tools.base import tool

print("noise")


@tool("weather", "Tell the weather.")
def weather(city: str, days: int = 1, unit: Literal["C", "F"] = "C") -> str:
    return f"{city}: {days} {unit}"
"""
FLOW = """\
name: w
config: {provider: mock, model: m, max_retries: 0}
steps:
  - {id: a, type: tool, tool_name: weather, tool_args: {town: Oslo}}
  - {id: b, type: tool, tool_name: weather, tool_args: {city: Oslo, days: many, unit: K}}
  - {id: c, type: tool, tool_name: wether, tool_args: {city: Oslo}}
  - {id: d, type: tool, tool_name: fetch_page}
  - {id: e, type: tool, tool_name: file_read}
"""
SAID = [
    ("AL605", 4, "`weather` takes no `town`; it takes `city`, `days`, `unit`"),
    ("AL605", 4, "`weather` needs `city`; add it"),
    ("AL605", 5, "`days` of `weather` is a whole number, not a text"),
    ("AL605", 5, "`unit` of `weather` is one of `C`, `F`, not `K`"),
    ("AL604", 6, "tool `wether` is not known; did you mean `weather`?"),
    (
        "AL604",
        7,
        "tool `fetch_page` is not known; correct the name, or name the module that registers it under `tools` in the settings",
    ),
    ("AL605", 8, "`file_read` needs `path`; add it"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a module of tools; the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    sys.modules.pop("cli_tools_of_the_test", None)  # of a run in this process
    (tmp_path / "agentloom.toml").write_text('tools = ["cli_tools_of_the_test"]\n')
    (tmp_path / "cli_tools_of_the_test.py").write_text(TOOLS)
    (tmp_path / "w.loom.yaml").write_text(FLOW)
    return tmp_path


def said(call: Call, *names: str) -> list[tuple[str, int, str]]:
    """What `validate` says: code, line, message."""
    found: list[dict[str, Any]] = json.loads(call("validate", *names, "--format", "json").out)["diagnostics"]
    return [(d["code"], d["line"], d["message"]) for d in found]


def test_own_tools_are_checked_like_the_built_in_ones(here: Path, call: Call) -> None:
    """Unknown names, unknown, missing and mistyped arguments; nothing is imported here, and nothing printed."""
    done = call("validate", "w.loom.yaml", "--format", "json")
    found = json.loads(done.out)["diagnostics"]
    assert sorted((d["code"], d["line"], d["message"]) for d in found) == sorted(SAID)
    assert "noise" not in done.out + done.err
    assert "cli_tools_of_the_test" not in sys.modules


def test_the_loader_says_the_same(here: Path) -> None:
    """The engine's door is that of the command line."""
    from agentloom.errors import InvalidWorkflow

    with pytest.raises(InvalidWorkflow) as caught:
        load_workflow(here / "w.loom.yaml")
    assert sorted(d.message for d in caught.value.document.diagnostics) == sorted(message for *_, message in SAID)


def test_a_module_that_changes_is_looked_at_again(here: Path, call: Call) -> None:
    """Within one process, too."""
    (here / "w.loom.yaml").write_text(FLOW.partition("  - {id: b")[0])
    assert len(said(call, "w.loom.yaml")) == 2
    (here / "cli_tools_of_the_test.py").write_text(
        TOOLS.replace("city: str, ", "town: str, ").replace("{city}", "{town}")
    )
    assert said(call, "w.loom.yaml") == []


def test_a_module_that_cannot_be_used_is_a_problem_of_the_settings(here: Path, call: Call) -> None:
    """Told once with the settings file's name; slips of names are told all the same, unknown names no more."""
    (here / "cli_tools_of_the_test.py").write_text("import nowhere\n")
    (here / "w2.loom.yaml").write_text(FLOW)
    why = "tools module `cli_tools_of_the_test` can't be imported: ModuleNotFoundError: No module named 'nowhere'"
    done = call("validate", "w.loom.yaml", "w2.loom.yaml")
    assert done.code == 2
    assert done.err.count(f"{here / 'agentloom.toml'}: {why}") == 1
    assert said(call, "w.loom.yaml") == []
    (here / "w.loom.yaml").write_text(FLOW.replace("wether", "http_reqest"))
    assert [message for *_, message in said(call, "w.loom.yaml")] == [
        "tool `http_reqest` is not known; did you mean `http_request`?"
    ]
    ran = call("run", "w.loom.yaml")
    assert ran.code == 2
    assert why in ran.err


def test_a_run_uses_them(here: Path, call: Call) -> None:
    """With the arguments that the check found right, in a run and below it."""
    (here / "w.loom.yaml").write_text(
        "name: w\nconfig: {provider: mock, model: m}\nsteps:\n"
        "  - {id: a, type: tool, tool_name: weather, tool_args: {city: Oslo, days: '2', unit: F}, output: a}\n"
    )
    assert said(call, "w.loom.yaml") == []
    assert json.loads(call("run", "w.loom.yaml", "--json").out)["final_state"]["a"] == "Oslo: 2 F"
