"""`lsp/README.md`: set-up of editors that can't be had here is at least well formed, starts our server, and names real options."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agentloom_lsp.options import OPTIONS, read_options
from tests.editors.documents import GUIDE, snippets

COMMAND = ["agentloom", "lsp"]


def helix() -> Mapping[str, Any]:
    """Helix's `languages.toml`."""
    (text,) = snippets("Helix", "toml")
    return tomllib.loads(text)


def data(editor: str) -> Mapping[str, Any]:
    """The JSON of an editor."""
    (text,) = snippets(editor, "json")
    found: Mapping[str, Any] = json.loads(text)
    return found


def test_helix() -> None:
    """The server is defined, and the language YAML uses it beside the usual one."""
    settings = helix()
    server = settings["language-server"]["agentloom"]
    assert [server["command"], *server["args"]] == COMMAND
    (language,) = settings["language"]
    assert language["name"] == "yaml"
    assert "agentloom" in language["language-servers"]


def test_kate_and_sublime_text() -> None:
    """Both start the server for YAML."""
    kate = data("Kate")["servers"]["yaml"]
    sublime = data("Sublime Text")["clients"]["agentloom"]
    assert kate["command"] == sublime["command"] == COMMAND
    assert sublime["enabled"] is True
    assert sublime["selector"] == "source.yaml"


def test_zed_reads_the_schema_that_the_text_writes() -> None:
    """The file that the command writes is the one that the settings name."""
    (schema,) = data("Zed")["lsp"]["yaml-language-server"]["settings"]["yaml"]["schemas"]
    assert f"agentloom schema workflow > {schema.removeprefix('./')}" in GUIDE.read_text(encoding="utf-8")


def test_settings_for_vs_code_name_an_option() -> None:
    """It is written with its whole name."""
    settings = data("VS Code")
    assert read_options(settings)[1] == []
    assert {name for name in settings if name.startswith("agentloom.")} <= {f"agentloom.{one.name}" for one in OPTIONS}


def named(table: Any, path: str = "") -> Iterator[str]:
    """Yield the dotted names of the values in nested tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from named(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


@pytest.mark.parametrize("editor", ["Helix", "Kate", "Sublime Text"])
def test_options_in_the_guide_are_options(editor: str) -> None:
    """What stands below `agentloom` is known, and of the right type."""
    at = {
        "Helix": lambda: helix()["language-server"]["agentloom"]["config"],
        "Kate": lambda: data("Kate")["servers"]["yaml"]["settings"],
        "Sublime Text": lambda: data("Sublime Text")["clients"]["agentloom"]["settings"],
    }
    settings = at[editor]()
    assert read_options(settings)[1] == []
    assert set(named(settings["agentloom"])) <= {option.name for option in OPTIONS}
