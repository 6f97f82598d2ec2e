"""Documents tell the truth: their commands are typed, their examples checked, their links followed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agentloom.analysis.analyze import analyze
from agentloom.analysis.context import Context
from agentloom.analysis.settings import read_settings_file
from agentloom.text import Source
from tests.conftest import ROOT, Golden
from tests.house.documents import LINK, Block, Typed, anchors, blocks, documents, session

DOCUMENTS = documents(ROOT)
ALL = [block for path in DOCUMENTS for block in blocks(path)]
CONSOLE = [path for path in DOCUMENTS if any(block.words[:1] == ("console",) for block in blocks(path))]
# Lines of `sh` blocks are not typed by the tests, so only these kinds may stand there.
UNTYPED = re.compile(
    r"(?:pip|pipx|uv tool) install \S+|git clone \S+( && cd \S+)?|cd \S+|make [\w-]+( \S+)*|pre-commit install|code --install-extension \S+|export \w+=\S+|#.*"
)


def kind(*words: str) -> list[Block]:
    """Return the blocks that carry these words."""
    return [block for block in ALL if block.words == words]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH that holds `agentloom`, run from this checkout."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "agentloom"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agentloom "$@"\n')
    script.chmod(0o755)
    return folder


def type_in(commands: list[Typed], folder: Path, program: Path) -> list[tuple[int, str]]:
    """Type commands in a shell, one after the other; return each one's exit code and what it printed."""
    path = os.pathsep.join([str(program), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'lsp'}", "COLUMNS": "100"}
    environment.pop("AGENTLOOM_RUNS_DIR", None)  # each block has a folder, and so a history, of its own
    results = []
    for typed in commands:
        done = subprocess.run(
            ["bash", "-c", typed.command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        results.append((done.returncode, done.stdout))
    return results


@pytest.mark.parametrize("path", CONSOLE, ids=lambda path: path.name)
def test_what_is_typed_prints_what_is_shown(path: Path, tmp_path: Path, program: Path, golden: Golden) -> None:
    """Every `console` block works in a fresh checkout; `exit=N` after the word tells its last exit code."""
    text = path.read_text(encoding="utf-8")
    parts: list[str] = []
    at = 0
    for number, block in enumerate(blocks(path)):
        if block.words[:1] != ("console",):
            continue
        folder = tmp_path / str(number)
        for name in ("examples", "docs", "schema"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("out", "agentloom_runs"))
        commands = session(block)
        results = type_in(commands, folder, program)
        wanted = next((int(word[5:]) for word in block.words if word.startswith("exit=")), 0)
        assert [code for code, _ in results] == [0] * (len(results) - 1) + [wanted], f"{block}: {results[-1]}"
        said = [
            f"$ {typed.command}\n" + (typed.output if typed.matches(printed) else tidy(printed, typed))
            for typed, (_, printed) in zip(commands, results, strict=True)
        ]
        parts.append(text[at : block.start])
        parts.append("".join(said))
        at = block.start + len(block.text)
    golden(path, "".join([*parts, text[at:]]))


def tidy(printed: str, typed: Typed) -> str:
    """Return output as a document holds it: no blanks at line ends, and a blank line before the next command where there was one."""
    lines = "".join(line.rstrip() + "\n" for line in printed.rstrip("\n").splitlines())
    return lines + ("\n" if typed.output.endswith("\n\n") else "")


def checked(block: Block) -> list[tuple[str, str]]:
    """Return what the check says to a YAML block, as if it stood among the examples."""
    context = Context(settings=read_settings_file(ROOT / "pyproject.toml") or Context().settings)
    document = analyze(Source(str(ROOT / "examples" / "block.loom.yaml"), block.text), context)
    return [(d.code, d.message) for d in document.diagnostics if d.severity <= 2]


@pytest.mark.parametrize("block", kind("yaml"), ids=str)
def test_yaml_is_right(block: Block) -> None:
    """A whole workflow has no finding at all; a part of one, or another tool's file, is at least good YAML."""
    if re.search(r"^steps:", block.text, re.MULTILINE) and re.search(r"^name:", block.text, re.MULTILINE):
        assert checked(block) == []
    else:
        codes = [code for code, _ in checked(block)]
        assert not {"AL001", "AL002", "AL006"} & set(codes), codes


def test_yaml_marked_as_bad_is_bad() -> None:
    """An example of a mistake is one."""
    assert [str(block) for block in kind("yaml", "bad") if not checked(block)] == []


@pytest.mark.parametrize("block", kind("toml"), ids=str)
def test_settings_are_right(block: Block, tmp_path: Path) -> None:
    """TOML parses, and the settings in it are ones we know."""
    tomllib.loads(block.text)
    if "[tool.agentloom" not in block.text and not block.text.startswith("# agentloom.toml"):
        return  # another program's
    name = "pyproject.toml" if "[tool.agentloom" in block.text else "agentloom.toml"
    (tmp_path / name).write_text(block.text, encoding="utf-8")
    settings = read_settings_file(tmp_path / name)
    assert settings is not None
    assert settings.problems == ()


@pytest.mark.parametrize("block", kind("json"), ids=str)
def test_json_is_json(block: Block) -> None:
    """JSON parses."""
    json.loads(block.text)


@pytest.mark.parametrize("block", kind("sh"), ids=str)
def test_what_is_not_typed_is_little(block: Block) -> None:
    """Only installing and the make targets go untyped, and the targets exist."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in filter(None, block.text.splitlines()):
        assert UNTYPED.fullmatch(line), f"{line}: use a `console` block, so that the command is tried"
        if line.startswith("make "):
            assert f"\n{line.split()[1]}:" in makefile, line


def test_every_block_says_what_it_is() -> None:
    """No block escapes by having no language or an unknown one."""
    known = {"console", "yaml", "toml", "json", "sh", "text", "lua", "mermaid", "elisp", "js", "python", "bash", ""}
    odd = [str(block) for block in ALL if (block.words[0] if block.words else "") not in known]
    assert odd == []
    unnamed = [str(block) for block in ALL if not block.words and re.search(r"^\$ |^steps:", block.text, re.MULTILINE)]
    assert unnamed == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Links inside the project name files and headings that exist."""
    broken = []
    for hit in LINK.finditer(path.read_text(encoding="utf-8")):
        target = hit["target"] or hit["image"]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_first_page_leads_to_every_page() -> None:
    """Whoever begins with README.md finds each page of `docs/` from there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted((ROOT / "docs").glob("*.md")) if f"](docs/{path.name}" not in text] == []


def test_every_command_has_its_help_in_the_documents() -> None:
    """`docs/cli.md` shows the help of each command (and the test above keeps it true)."""
    from agentloom.cli.app import COMMANDS

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [entry.name for entry in COMMANDS if f"$ agentloom {entry.name} --help\n" not in text] == []


def test_the_checker_of_sessions_can_fail() -> None:
    """Other output, missing lines and extra lines are noticed; times, ids and `...` are not."""
    typed = Typed("x", "one 12 ms\n...\nlast\n")
    assert typed.matches("one 340 ms\nlast\n")
    assert typed.matches("one 3.1 s\na\nb\nlast\n")
    assert not typed.matches("one 3.1 s\na\nb\n")
    assert not typed.matches("two 3.1 s\nlast\n")
    assert not Typed("x", "a\n").matches("a\nb\n")
    assert Typed("x", "run 0123456789ab\n").matches("run ba9876543210\n")
