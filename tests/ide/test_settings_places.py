"""Where the problems of a settings file stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.analysis.rules.registry import settings_problems
from agentloom.analysis.settings import Problem, Settings, find_settings
from agentloom.ide.settings_places import keys_in, place_of

FILES = {
    'selct = ["AL2"]\n': "selct",
    '# a comment\nignore = ["AL205", "foo"]\n': "foo",
    'ignore = [\n  "AL205",  # why\n  "foo",\n]\n': "foo",
    "ignore = [ 'foo' ]\n": "foo",
    'severity = {AL205 = "loud"}\n': "AL205",
    '[severity]\nAL205 = "loud"\n': "AL205",
    '[severity]\n"AL205" = "loud"\n': "AL205",
    'severity.AL999 = "error"\n': "AL999",
    "severity = 3\n": "severity",
    "[providers.x]\nurl = 3\n": "url",
    "[providers.x]\nbase_url = 'ftp://x'\n": "base_url",
    "[providers]\nx = 3\n": "x",
    "tools = 3\n": "tools",
    'known_state = ["a", 3]\n': "known_state",
    'known_state = [\n"a",\n': ",",
    "select = [\n": "[",
    "x = = 3\n": "= 3",
    '# 😀 é\nignore = ["foo"]\r\n': "foo",
}


@pytest.mark.parametrize(("text", "word"), FILES.items(), ids=range(len(FILES)))
@pytest.mark.parametrize("project", [False, True], ids=["agentloom.toml", "pyproject.toml"])
def test_a_problem_stands_at_its_word(tmp_path: Path, text: str, word: str, project: bool) -> None:
    """Both files, keys written in every way; a fault of TOML itself at the place that the reader names."""
    name = "agentloom.toml"
    if project:
        name = "pyproject.toml"
        text = "[project]\nseverity = 1\nignore = ['foo']\n\n[tool.agentloom]\n" + text.replace(
            "[se", "[tool.agentloom.se"
        ).replace("[providers", "[tool.agentloom.providers")
    (tmp_path / name).write_bytes(text.encode())
    settings = find_settings(tmp_path / "x.yaml")
    problem, *_ = settings_problems(settings)
    span = place_of(text, settings, problem)
    assert text[span.start : span.end] == word
    if project and "TOML" not in problem:
        assert span.start > text.index("[tool")


def test_a_table_that_is_none(tmp_path: Path) -> None:
    """`tool.agentloom` itself is what is wrong."""
    text = "[tool]\nagentloom = 3\n"
    (tmp_path / "pyproject.toml").write_text(text)
    settings = find_settings(tmp_path / "x.yaml")
    (problem,) = settings_problems(settings)
    span = place_of(text, settings, problem)
    assert text[span.start : span.end] == "agentloom"


TOML = st.lists(
    st.sampled_from(
        [
            "[",
            "]",
            "{",
            "}",
            "=",
            ".",
            '"',
            "'",
            '"""',
            "'''",
            "\\",
            "#",
            "\n",
            "\r\n",
            ",",
            " ",
            "a",
            "ignore",
            "foo",
            "3",
            "é",
            "[[",
        ]
    ),
    max_size=40,
).map("".join)


@given(TOML)
def test_any_text_has_places_inside_it(text: str) -> None:
    """No text is too broken, and every place lies in it, on one line."""
    for key in keys_in(text):
        assert 0 <= key.span.start <= key.span.end <= len(text)
        assert 0 <= key.value.start <= key.value.end <= len(text)
    problem = Problem("agentloom.toml: `foo` in `ignore` is no diagnostic code")
    problem.where = ("ignore", "foo")
    span = place_of(text, Settings(path=Path("agentloom.toml")), problem)
    assert 0 <= span.start <= span.end <= len(text)
    assert "\n" not in text[span.start : span.end]


@pytest.mark.parametrize(
    "text", ["[" * 5000, "a = " + "[" * 5000, "a = " + "{b = " * 5000, "a" * 100_000, "a." * 50_000]
)
def test_no_text_takes_long_or_deep(text: str) -> None:
    """Brackets without end, names without end."""
    assert len(list(keys_in(text))) <= 60
