"""What the user sets in the editor: every shape in which it comes, and nonsense."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom_lsp.options import OPTIONS, Option, Options, read_options
from tests.lsp.peer import ROOT

PAGE = (ROOT / "lsp" / "README.md").read_text(encoding="utf-8")


def test_the_table_is_complete() -> None:
    """Every value in force has its line in the table, with the same default."""
    assert [option.attribute for option in OPTIONS] == list(Options._fields)
    defaults = {option.attribute: option.default for option in OPTIONS}
    assert Options(**defaults) == Options() == read_options()[0]
    for option in OPTIONS:
        assert option.meaning
        if option.default is not None:
            assert option.read(option.default) == option.default


@pytest.mark.parametrize("option", OPTIONS, ids=[option.name for option in OPTIONS])
def test_the_table_in_the_documents(option: Option) -> None:
    """Each setting has its line in the server's README, with its default and meaning."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{option.name}` |")]
    _, default, meaning = (cell.strip() for cell in line.strip("|").split("|"))
    assert default == f"`{json.dumps(option.default)}`"
    assert meaning.startswith(option.meaning.partition(";")[0])


@pytest.mark.parametrize(
    "written",
    [
        {"hints": {"layer": False}},
        {"hints.layer": False},
        {"agentloom": {"hints": {"layer": False}}},
        {"agentloom.hints.layer": False},
        {"agentloom": {"hints.layer": False}},
        {"agentloom.hints": {"layer": False}},
    ],
)
def test_every_shape(written: Any) -> None:
    """Tables in tables or dotted keys, with and without the section's name: all mean the same."""
    assert read_options(written) == (Options(hint_layer=False), [])


@pytest.mark.parametrize(
    "sent", [None, 3, [], "x", {"agentloom": None}, {"hints": 3}, {"hints": None}, {"debounce": None}]
)
def test_nothing_said_is_the_default(sent: Any) -> None:
    """Null says nothing, and neither does what is no table."""
    assert read_options(sent) == (Options(), [])


@pytest.mark.parametrize("value", ["soon", -1, True, float("inf"), float("nan"), [], {}])
def test_a_wrong_type_is_told_and_the_default_holds(value: Any) -> None:
    """A value that is none is named, and what stands below it in `initialize` holds."""
    problem = "the setting `agentloom.debounce` must be a number of milliseconds"
    assert read_options({"debounce": value}) == (Options(), [problem])
    assert read_options({"debounce": value}, {"debounce": 100}) == (Options(debounce=0.1), [problem])


def test_the_configuration_goes_before_the_options_of_initialize() -> None:
    """Both say something: the configuration wins, for each setting by itself."""
    found, problems = read_options({"debounce": 0}, {"debounce": 100, "hints": {"model": False}})
    assert found == Options(debounce=0.0, hint_model=False)
    assert not problems
