"""A real Emacs with eglot in batch mode: set up as `lsp/README.md` says, driven by its commands, asked what it showed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.editors.documents import drive, snippets

SCRIPT = Path(__file__).parent / "drive.el"
ACTS = ("diagnose", "hover", "outline", "define", "fix", "type", "complete", "rename", "run")
STEPS = ("classify", "answer", "check")


@pytest.fixture(scope="module")
def seen(emacs: Path, search_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Emacs showed."""
    folder = tmp_path_factory.mktemp("emacs")
    init = folder / "init.el"
    init.write_text("".join(snippets("Emacs (eglot)", "elisp")), encoding="utf-8")
    command = [emacs, "--batch", "--eval", "(package-initialize)", "--load", init, "--load", SCRIPT]
    return drive(command, ACTS, folder, search_path, {})


def test_files_of_ours_get_their_mode(seen: dict[str, Any]) -> None:
    """The file's name is enough to start the server."""
    assert seen["mode"] == "agentloom-mode"


def test_a_mistake_is_underlined(seen: dict[str, Any]) -> None:
    """The diagnostic is there on the wrong word."""
    first = seen["diagnostics"][0]
    assert first["under"] == "temprature"
    assert "AL102" in first["message"]


def test_a_fix_is_applied(seen: dict[str, Any]) -> None:
    """The code action under the cursor mends the text, and the diagnostic goes."""
    assert seen["choices"][0] == "change to `temperature`"
    assert "    temperature: 0\n" in seen["text"]


def test_hover_explains(seen: dict[str, Any]) -> None:
    """A key is explained in the echo area."""
    assert seen["hover"].startswith("`output`: text")


def test_the_outline_lists_the_steps(seen: dict[str, Any]) -> None:
    """Each step is in the index of the buffer."""
    assert [name for name in seen["outline"] if name in STEPS] == list(STEPS), seen["outline"]


def test_definition_goes_to_where_a_state_key_is_written(seen: dict[str, Any]) -> None:
    """From a template to the step's output."""
    assert seen["defined"] == "    output: category"


def test_typing_behind_an_emoji_is_underlined_in_its_place(seen: dict[str, Any]) -> None:
    """Editor and server count alike, whatever they count; and what is taken back leaves nothing behind."""
    typed = seen["typed"]
    assert typed["under"] == "{"
    assert "never closed" in typed["message"]
    assert "😀" not in seen["text"]


def test_a_dependency_is_completed(seen: dict[str, Any]) -> None:
    """The names of the other steps are offered, the step itself is not; the chosen one stands where it should."""
    assert seen["offers"] == ["answer", "classify"]
    assert seen["completed"] == "    depends_on: [answer]"


def test_a_step_is_renamed_where_it_is_named(seen: dict[str, Any]) -> None:
    """Its own line, and each dependency on it."""
    assert "  - id: sort\n" in seen["text"]
    assert "    depends_on: [sort]\n    temperature: 0\n" in seen["text"]
    assert "classify" not in seen["text"]


def test_a_run_tells_what_came_of_it(seen: dict[str, Any]) -> None:
    """The command of the guide runs the buffer, which was never saved; the echo area tells the end."""
    assert "`tickets` is done: 3 steps, " in seen["run"]
