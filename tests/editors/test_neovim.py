"""A real Neovim, without a screen: set up as `lsp/README.md` says, driven by keys and commands, asked what it showed.

One of today with `vim.lsp.config`, and Debian's 0.7 with `vim.lsp.start_client`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.editors.documents import NAME, RUNS, TICKETS, drive, snippets

SCRIPT = Path(__file__).parent / "drive.lua"
ACTS = ("diagnose", "hover", "outline", "define", "fix", "type", "complete", "rename")
NEWER = ("menu", "colours", "hints")
"""What only the newer one can do."""


def neovim(
    program: Path, init: str, acts: tuple[str, ...], folder: Path, path: str, text: str = TICKETS
) -> dict[str, Any]:
    """Do some acts in a fresh Neovim with that `init.lua`, and return what was to be seen."""
    config = folder / "config" / "nvim"
    config.mkdir(parents=True)
    (config / "init.lua").write_text(init, encoding="utf-8")
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    command = [program, "--headless", "-i", "NONE", "-n", NAME, "-c", f"luafile {SCRIPT}"]
    return drive(command, acts, folder, path, homes, text)


@pytest.fixture(scope="module")
def new(new_neovim: Path, search_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a Neovim of today showed."""
    setup, extras, *_ = snippets("Neovim", "lua")
    return neovim(new_neovim, setup + extras, (*ACTS, *NEWER), tmp_path_factory.mktemp("new"), search_path)


@pytest.fixture(scope="module")
def old(old_neovim: Path, search_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an older Neovim showed."""
    *_, setup = snippets("Neovim", "lua")
    return neovim(old_neovim, setup, ACTS, tmp_path_factory.mktemp("old"), search_path)


@pytest.fixture(params=["new", "old"])
def seen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What each of them showed."""
    shown: dict[str, Any] = request.getfixturevalue(request.param)
    return shown


def test_the_front_page_is_enough(new_neovim: Path, search_path: str, tmp_path: Path) -> None:
    """The few lines of the project's front page start the server."""
    (init,) = snippets("In your editor", "lua", ROOT / "README.md")
    shown = neovim(new_neovim, init, ("diagnose",), tmp_path, search_path)
    assert shown["diagnostics"][0]["under"] == "temprature"


def test_options_of_the_editor_reach_the_server(new_neovim: Path, search_path: str, tmp_path: Path) -> None:
    """A hint that is switched off where the guide says so is gone, and the others are there."""
    setup, extras, *_ = snippets("Neovim", "lua")
    assert setup.count("agentloom = {}") == 1
    init = setup.replace("agentloom = {}", "agentloom = { hints = { layer = false } }") + extras
    shown = neovim(new_neovim, init, ("hints",), tmp_path, search_path)
    assert set(shown["hints"]) == {"gpt-4o-mini (mock)"}


def test_a_mistake_is_underlined(seen: dict[str, Any]) -> None:
    """The diagnostic is there on the wrong word, with code and source."""
    first = seen["diagnostics"][0]
    assert (first["code"], first["source"], first["under"]) == ("AL102", "agentloom", "temprature")


def test_a_fix_is_applied(seen: dict[str, Any]) -> None:
    """The code action under the cursor mends the text, and the diagnostic goes."""
    assert seen["choices"][0] == "change to `temperature`"
    assert "    temperature: 0\n" in seen["text"]


def test_hover_explains(seen: dict[str, Any]) -> None:
    """A key is explained in the editor's own window."""
    assert seen["hover"].startswith("`output`: text")


def test_the_outline_lists_the_steps(seen: dict[str, Any]) -> None:
    """Each step is in the editor's list."""
    assert [line for line in seen["outline"] if line.startswith("[Function]")] == [
        "[Function] classify",
        "[Function] answer",
        "[Function] check",
    ]


def test_definition_goes_to_where_a_state_key_is_written(seen: dict[str, Any]) -> None:
    """From a template to the step's output."""
    assert seen["defined"] == "    output: category"


def test_typing_behind_an_emoji_is_underlined_in_its_place(seen: dict[str, Any]) -> None:
    """Editor and server count alike, whatever they count; and what is taken back leaves nothing behind."""
    typed = seen["typed"]
    assert typed["under"] == "{"
    assert "never closed" in typed["message"]
    assert "😀" not in seen["text"]


def test_names_in_templates_have_colours(new: dict[str, Any]) -> None:
    """A state key inside a text is a variable, not part of the text."""
    assert new["colours"] == ["variable"]


def test_a_dependency_is_completed(seen: dict[str, Any]) -> None:
    """The names of the other steps are offered, the step itself is not; the chosen one stands where it should."""
    assert seen["offers"] == ["answer", "classify"]
    assert seen["chosen"] == "classify"
    assert seen["completed"] == "    depends_on: [classify]"


def test_a_step_is_renamed_where_it_is_named(seen: dict[str, Any]) -> None:
    """Its own line, and each dependency on it."""
    assert "  - id: sort\n" in seen["text"]
    assert "    depends_on: [sort]\n    temperature: 0\n" in seen["text"]
    assert "classify" not in seen["text"]


def test_hints_stand_in_the_text(new: dict[str, Any]) -> None:
    """The layer of each step, and the model that it inherits."""
    assert [hint for hint in new["hints"] if hint.startswith("layer")] == ["layer 1", "layer 2", "layer 2"]
    assert "gpt-4o-mini (mock)" in new["hints"]


def test_the_menu_opens_while_typing(new: dict[str, Any]) -> None:
    """With what the guide says of completion: the state keys come behind the dot, without a key for it."""
    assert {"ticket", "category", "reply"} <= set(new["menu"])


@pytest.fixture(scope="module")
def runs(new_neovim: Path, search_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a Neovim of today showed of runs that were started, cancelled, resumed and approved by lenses."""
    setup, extras, lenses, _ = snippets("Neovim", "lua")
    folder = tmp_path_factory.mktemp("runs")
    return neovim(
        new_neovim, setup + extras + lenses, ("run", "cancel", "resume", "approve"), folder, search_path, RUNS
    )


def test_a_run_by_the_lens(runs: dict[str, Any]) -> None:
    """The lens on the cursor's line starts it; the status line tells the step; the lens that ends it is there."""
    assert runs["lenses"] == ["▶ Run", "▶ Run with mock"]
    assert "Running tickets: step 2 of 4: wait" in runs["status"]
    assert [hint[0] for hint in runs["running"]] == ["✓", "…"]
    assert runs["lenses while running"][0].startswith("■ Cancel ")
    assert runs["steps"] == ["▶ Run up to here"] * 4


def test_a_slow_run_is_cancelled_and_resumed(runs: dict[str, Any]) -> None:
    """By lenses, too: what was done stays done, what was cut off comes again, and a gate is approved."""
    assert [hint.split()[0] for hint in runs["cancelled"]] == ["✓", "✗"]
    assert runs["lenses after cancel"][2].startswith("⏵ Resume ")
    assert [hint.split()[0] for hint in runs["paused"]] == ["✓", "✓", "‖"]
    assert runs["lenses at the gate"][2].startswith("✓ Approve ")
    assert [hint.split()[0] for hint in runs["done"]] == ["✓"] * 4
    assert runs["lenses when done"] == ["▶ Run", "▶ Run with mock"]


def test_an_older_one_runs_by_lenses_too(old_neovim: Path, search_path: str, tmp_path: Path) -> None:
    """They are asked for by hand; the message tells where the run waits, and the lens that approves lets it go on to its end."""
    *_, setup = snippets("Neovim", "lua")
    shown = neovim(old_neovim, setup, ("gate",), tmp_path, search_path, RUNS)
    assert shown["lenses"] == ["▶ Run", "▶ Run with mock"]
    assert "`tickets` waits at `ask`" in shown["said"]
    assert [title.split()[1] for title in shown["lenses at the gate"][2:]] == ["Approve", "Reject"]
    assert shown["lenses when done"] == ["▶ Run", "▶ Run with mock"]
    (kept,) = (tmp_path / "work" / ".agentloom" / "checkpoints").glob("*.json")
    run = json.loads(kept.read_text(encoding="utf-8"))
    assert (run["status"], run["step_results"]["ask"]["output"]) == ("success", "approved")
