"""Which files are checked: names, folders, patterns, settings, and what of it is said to be missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentloom.cli.collect import Target, collect

FILES = (
    "a.loom.yaml",
    "b.yml",
    "B.YAML",
    "notes.txt",
    "flows/c.yaml",
    "flows/deep/d.yaml",
    "flows/node_modules/x/e.yaml",
    "flows/.hidden/f.yaml",
    "flows/.g.yaml",
    ".github/h.yaml",
    "c d.yaml",
    "-x.yaml",
    "[z].yaml",
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of every kind, as the working directory."""
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("name: w\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(*names: str) -> list[str]:
    """Return what the names stand for, with forward slashes."""
    found = collect(names)
    assert found.problems == ()
    return [target.shown.replace(os.sep, "/") for target in found.targets]


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["b.yml", "a.loom.yaml"], ["b.yml", "a.loom.yaml"]),
        (["notes.txt"], ["notes.txt"]),
        (["a.loom.yaml", "c d.yaml", "-x.yaml"], ["a.loom.yaml", "c d.yaml", "-x.yaml"]),
        (["a.loom.yaml", "./a.loom.yaml", "flows/../a.loom.yaml"], ["a.loom.yaml"]),
        (["flows"], ["flows/.g.yaml", "flows/c.yaml", "flows/deep/d.yaml"]),
        (["flows/"], ["flows/.g.yaml", "flows/c.yaml", "flows/deep/d.yaml"]),
        (["flows/deep", "flows"], ["flows/deep/d.yaml", "flows/.g.yaml", "flows/c.yaml"]),
        (
            ["."],
            [
                "-x.yaml",
                "B.YAML",
                "[z].yaml",
                "a.loom.yaml",
                "b.yml",
                "c d.yaml",
                "flows/.g.yaml",
                "flows/c.yaml",
                "flows/deep/d.yaml",
            ],
        ),
        ([".github"], [".github/h.yaml"]),
        (["*.yml"], ["b.yml"]),
        (["flows/*.yaml"], ["flows/c.yaml"]),
        (["flows/**/*.yaml"], ["flows/c.yaml", "flows/deep/d.yaml"]),
        (["flows/*"], ["flows/c.yaml", "flows/deep/d.yaml"]),
        (["flows/**"], ["flows/c.yaml", "flows/deep/d.yaml"]),
        (["flows/node_modules/**/*.yaml"], ["flows/node_modules/x/e.yaml"]),
        (["[z].yaml"], ["[z].yaml"]),
        (["nothing-*.yaml"], []),
    ],
    ids=lambda value: " ".join(value) if value else "none",
)
def test_names(names: list[str], expected: list[str]) -> None:
    """Order as named, sorted inside folders, each file once, nothing hidden or installed."""
    assert shown(*names) == expected


@pytest.mark.usefixtures("tree")
def test_a_named_file_is_named_even_if_a_folder_brought_it_first() -> None:
    """`validate flows flows/c.yaml` checks `c.yaml` whatever it looks like."""
    found = {target.shown: target.named for target in collect(["flows", os.path.join("flows", "c.yaml")]).targets}
    assert found[os.path.join("flows", "c.yaml")] is True
    assert found[os.path.join("flows", "deep", "d.yaml")] is False


@pytest.mark.usefixtures("tree")
def test_missing_names_are_said_and_the_others_stay() -> None:
    """One wrong name costs nothing but itself."""
    found = collect(["gone.yaml", "b.yml"])
    assert found.problems == (("gone.yaml", "no such file or folder"),)
    assert [target.shown for target in found.targets] == ["b.yml"]


def test_a_link_to_nowhere_is_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    """It exists by name, so the reader says what is wrong with it."""
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "gone")
    assert collect([str(link)]).targets == (Target(str(link), str(link)),)


def test_a_ring_of_links_ends(tmp_path: Path) -> None:
    """Folders behind links are not walked, so a link to the folder above is no endless way."""
    (tmp_path / "a.yaml").write_text("", encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert [Path(t.path).name for t in collect([str(tmp_path)]).targets] == ["a.yaml"]


@pytest.mark.usefixtures("tree")
def test_settings_add_files_of_other_suffixes() -> None:
    """A `workflows` glob makes a file ours, so a folder brings it."""
    Path("agentloom.toml").write_text('workflows = ["flows/**/*.flow"]\n', encoding="utf-8")
    Path("flows/deep/x.flow").write_text("", encoding="utf-8")
    Path("x.flow").write_text("", encoding="utf-8")
    assert "flows/deep/x.flow" in shown(".")
    assert "x.flow" not in shown(".")


def test_standard_input_is_read_once_and_called_what_the_user_says() -> None:
    """Twice `-` is once; its name and folder are those of `--stdin-filename`."""
    assert collect(["-", "-"]).targets == (Target("<stdin>", "", is_stdin=True),)
    assert collect(["-"], "flows/new.yaml").targets == (Target("flows/new.yaml", "flows/new.yaml", is_stdin=True),)
