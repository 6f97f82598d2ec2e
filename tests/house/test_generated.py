"""Generated files are what their generators write today; `make update` (or `pytest --update`) writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.model.export import generated
from scripts import examples_page, format_pages, pictures, rule_pages
from tests.conftest import ROOT, Golden

FROM_THE_MODEL = sorted(path.relative_to(ROOT).as_posix() for path in generated())


@pytest.mark.parametrize("name", FROM_THE_MODEL)
def test_what_comes_from_the_model(name: str, golden: Golden) -> None:
    """The catalogue and the two schemas."""
    golden(ROOT / name, generated()[ROOT / name])


def test_the_examples_page(golden: Golden) -> None:
    """The table and the graphs of the examples."""
    golden(examples_page.PAGE, examples_page.page())


def test_the_page_on_workflow_files(golden: Golden) -> None:
    """The tables of blocks and keys."""
    golden(format_pages.PAGE, format_pages.page())


def test_the_rule_pages(golden: Golden) -> None:
    """A page for every rule, made from its docstring, its fixtures and the program's output, and no page besides."""
    pages = rule_pages.pages()
    for path, text in pages.items():
        golden(path, text)
    assert set(rule_pages.PAGES.glob("*.md")) == set(pages)


@pytest.mark.parametrize("name", [name for name, _, _ in pictures.PICTURES])
def test_pictures_show_the_real_output(name: str, golden: Golden) -> None:
    """The pictures in the README say what the program says today; times and run ids may differ."""
    path = pictures.IMAGES / name
    taken = pictures.take(name)
    held = path.read_text(encoding="utf-8") if path.exists() else ""
    golden(path, held if pictures.words(held) == pictures.words(taken) else taken)


def test_every_graph_is_drawn() -> None:
    """Each example stands on the page with every step and every dependency; a router's edges say what it asks."""
    text = examples_page.PAGE.read_text(encoding="utf-8")
    for path in examples_page.EXAMPLES.glob("*.loom.yaml"):
        document = examples_page.read(path)
        drawn = examples_page.mermaid(document)
        assert f"```mermaid\n{drawn}\n```" in text, path.name
        assert all(f"  {step.id}" in drawn for step in document.steps)
        edges = sum(len(needs) for needs in document.graph.dependencies.values())
        assert drawn.count(" -->") == edges


def test_a_stale_file_is_noticed(tmp_path: Path, golden: Golden, request: pytest.FixtureRequest) -> None:
    """The comparison itself fails on a difference (unless it was asked to write)."""
    file = tmp_path / "file.txt"
    file.write_text("old\n", encoding="utf-8")
    if request.config.getoption("--update"):
        golden(file, "new\n")
        assert file.read_text(encoding="utf-8") == "new\n"
    else:
        with pytest.raises(pytest.fail.Exception, match="stale"):
            golden(file, "new\n")
