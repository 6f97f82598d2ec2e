"""Settings: the nearest to the file wins, and what is wrong in them is said in plain words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentloom.analysis.settings import SettingsFinder, find_settings, matches_glob
from agentloom.diagnostics import Severity


def test_nearest_settings_win(tmp_path: Path) -> None:
    """A folder's own file hides those above it; `pyproject.toml` counts only with our table."""
    (tmp_path / "agentloom.toml").write_text('ignore = ["AL210"]')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.agentloom]\nselect = ["AL2"]\n')
    (inner / "pyproject.toml").write_text("[tool.other]\nagentloom = 1\n")

    assert find_settings(tmp_path / "x.yaml").ignore == ("AL210",)
    assert find_settings(inner / "x.yaml").select == ("AL2",)
    assert find_settings(None).select == ()


def test_own_file_goes_before_pyproject(tmp_path: Path) -> None:
    """In one folder `agentloom.toml` is taken."""
    (tmp_path / "agentloom.toml").write_text('known_state = ["lang"]')
    (tmp_path / "pyproject.toml").write_text('[tool.agentloom]\nknown_state = ["other"]\n')

    assert find_settings(tmp_path / "x.yaml").known_state == ("lang",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ignor = []", "unknown setting `ignor`; did you mean `ignore`?"),
        ('ignore = "AL2"', "`ignore` must be a list of texts"),
        ('severity = {AL403 = "fatal"}', "`severity.AL403` must be one of `error`"),
        ("severity = 3", "`severity` must be a table"),
        ("providers = {x = 1}", "`providers.x` must be a table"),
        ('[providers.openai]\nbase = "x"', "unknown key `base` in `providers.openai`"),
        (
            '[providers.openai]\nbase_url = "ftp://x"',
            "`providers.openai.base_url` must be an address such as `https://host/v1`",
        ),
        ("providers = 3", "`providers` must be a table of providers"),
        ("[providers.openai]\nbase_url = 5", "`providers.openai.base_url` must be a text"),
        ("[providers.openai]\nmax_rpm = 0", "`providers.openai.max_rpm` must be a whole number from 1 up"),
        ("[providers.openai]\nmax_concurrent = true", "`providers.openai.max_concurrent` must be a whole number"),
        ("[providers.openai]\nmodels = 'gpt'", "`providers.openai.models` must be a list of texts"),
        ("[providers.openai]\nfallback = 'yes'", "`providers.openai.fallback` must be true or false"),
        (
            "[providers.openai]\nmodel_aliases = {a = 1}",
            "`providers.openai.model_aliases` must be a table of texts",
        ),
        (
            '[providers.openai]\nbase_url = "https://me:secret@host"',
            "`providers.openai.base_url` must not hold a user name or a password",
        ),
        ("[providers.opnai]", "unknown provider `opnai` in the settings; did you mean `openai`?"),
        ("[providers.zzz]", "an OpenAI-compatible server needs a `base_url`"),
        ("[providers.mock]", "`providers.mock` can't be set up in the settings"),
        ("= 1", "this is not valid TOML"),
        ('ignore = ["\xe9"]', "this is not UTF-8; save it as UTF-8"),
    ],
)
def test_problems_are_told_with_the_file(tmp_path: Path, text: str, words: str) -> None:
    """Each mistake gives one sentence that names the file; the rest of the settings still holds."""
    path = tmp_path / "agentloom.toml"
    path.write_text(text, encoding="latin-1")
    settings = find_settings(tmp_path / "x.yaml")

    assert len(settings.problems) == 1
    assert words in settings.problems[0]
    assert str(path) in settings.problems[0]


def test_settings_that_are_a_pipe_are_a_problem(tmp_path: Path) -> None:
    """Nobody may ever write to it, so it isn't read."""
    os.mkfifo(tmp_path / "agentloom.toml")
    (problem,) = find_settings(tmp_path / "x.yaml").problems
    assert problem.endswith("agentloom.toml: this can't be read: it is a pipe or a device")


def test_severity_and_providers(tmp_path: Path) -> None:
    """Severities become values, providers tables stay as written."""
    (tmp_path / "agentloom.toml").write_text(
        'severity = {AL403 = "error"}\n[providers.local]\nbase_url = "http://127.0.0.1:1"\n'
    )
    settings = find_settings(tmp_path / "x.yaml")

    assert settings.severity == {"AL403": Severity.ERROR}
    assert settings.providers["local"] == {"base_url": "http://127.0.0.1:1"}
    assert settings.problems == ()


def test_finder_remembers_until_told_to_forget(tmp_path: Path) -> None:
    """One reading per folder; a change is seen after ``forget``."""
    finder = SettingsFinder()
    assert finder.find(tmp_path / "x.yaml").ignore == ()
    (tmp_path / "agentloom.toml").write_text('ignore = ["AL2"]')
    assert finder.find(tmp_path / "y.yaml").ignore == ()
    finder.forget()
    assert finder.find(tmp_path / "x.yaml").ignore == ("AL2",)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("flows/*.yaml", "flows/a.yaml", True),
        ("flows/*.yaml", "flows/deep/a.yaml", False),
        ("flows/**/*.yaml", "flows/deep/a.yaml", True),
        ("flows/**/*.yaml", "flows/a.yaml", True),
        ("**/*.flow.yml", "x/y/z.flow.yml", True),
        ("a?.yaml", "ab.yaml", True),
        ("a?.yaml", "abc.yaml", False),
        ("a.yaml", "aXyaml", False),
    ],
)
def test_globs(tmp_path: Path, pattern: str, name: str, fits: bool) -> None:
    """Globs are relative to the settings file; one star stays inside a folder."""
    (tmp_path / "agentloom.toml").write_text(f'workflows = ["{pattern}"]')
    path = tmp_path / name

    assert matches_glob(path, find_settings(path)) is fits


@pytest.mark.parametrize(
    "table",
    ["[tool.agentloom]", "[ tool . agentloom ]", '["tool".agentloom]', "[tool]\nagentloom.x = 1\n[tool.agentloom]"],
)
def test_spellings_of_the_table(tmp_path: Path, table: str) -> None:
    """However TOML spells the table, it is found."""
    (tmp_path / "pyproject.toml").write_text(
        table.replace("agentloom.x = 1\n[tool.agentloom]", "[tool.agentloom]") + '\nignore = ["AL2"]\n'
    )

    assert find_settings(tmp_path / "x.yaml").ignore == ("AL2",)
