"""The program as a whole: help, wrong commands, what reaches the top, and outputs that nobody reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom import __version__
from agentloom.cli import app as app_module
from agentloom.cli.app import COMMANDS, app
from agentloom.cli.parallel import processors
from tests.cli.conftest import Call, environment

NAMES = [entry.name for entry in COMMANDS]


def test_version(call: Call) -> None:
    """The version of the package."""
    assert call("--version").out == f"agentloom {__version__}\n"


def test_help_lists_every_command(call: Call) -> None:
    """Without loading them."""
    done = call("--help")
    assert done.code == 0
    for entry in COMMANDS:
        assert f"  {entry.name}" in done.out
        assert entry.summary in done.out


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_in_its_own_words(call: Call, name: str) -> None:
    """`-h` works too."""
    assert call(name, "--help").out == call(name, "-h").out
    assert call(name, "--help").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["valdate"], "did you mean `validate`?"),
        (["zzz"], "`agentloom --help` lists them"),
        (["validate"], "Missing argument 'FILE...'"),
        (["validate", "--formt", "json", "x"], "--format"),
        (["validate", "--format", "xml", "x"], "'text', 'json'"),
        (["--nope"], "--nope"),
    ],
    ids=" ".join,
)
def test_wrong_calls_exit_2_and_say_what_is_meant(call: Call, arguments: list[str], words: str) -> None:
    """Usage goes to standard error, nothing to standard output."""
    done = call(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert words in done.err


def test_a_fault_of_ours_is_one_line_and_exit_70(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback reaches a user who didn't ask for one; who does, gets it."""

    def broken(name: str) -> None:
        raise KeyError(f"no\n{name}")

    monkeypatch.setattr(app_module, "import_module", broken)
    done = call("info")
    assert done.code == 70
    assert done.err.startswith(
        "error: internal error: KeyError: 'no\\nagentloom.cli.info'\nThis is a fault in agentloom."
    )
    assert "Traceback" not in done.err
    assert "Traceback" in call("info", AGENTLOOM_LOG_LEVEL="debug").err


def test_python_m_agentloom(process: Call) -> None:
    """The module runs the same program."""
    assert process("--version").out == f"agentloom {__version__}\n"


def test_shell_completion_is_there(process: Call) -> None:
    """Shells can ask for what comes next."""
    done = process(_AGENTLOOM_COMPLETE="bash_complete", COMP_WORDS="agentloom v", COMP_CWORD="1")
    assert "validate" in done.out


# --- outputs that nobody reads --------------------------------------------------------------------------------------------


def shell(command: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell command line in which `loom` is the program."""
    script = f'loom() {{ "{sys.executable}" -m agentloom "$@"; }}\n{command}'
    return subprocess.run(["bash", "-c", script], capture_output=True, env=environment(**env), check=False, timeout=60)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("loom schema | true; exit ${PIPESTATUS[0]}", 141),
        ("loom schema | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}", None),
        ("loom --help >&-", 0),
        ("loom info >&- 2>&-", 0),
        ("loom valdate 2>&-", 2),
        ("loom info <&-", 0),
        ("loom info >/dev/full", 2),
        ("loom schema >/dev/full", 2),
    ],
)
def test_no_traceback_when_nobody_reads(command: str, code: int | None) -> None:
    """A reader that has gone, a closed channel and a full disk end the program quietly, or with one line."""
    done = shell(command)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    if code is not None:
        assert done.returncode == code, done.stderr
    if "/dev/full" in command:
        assert done.stderr == b"error: the output can't be written: No space left on device\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-16"])
def test_every_command_writes_to_any_encoding(encoding: str) -> None:
    """Where the terminal's encoding lacks a character, it is spelled out."""
    for name in ("info", "--help"):
        done = subprocess.run(
            [sys.executable, "-m", "agentloom", name],
            capture_output=True,
            env=environment(PYTHONIOENCODING=encoding, PYTHONUTF8="0"),
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        done.stdout.decode(encoding)


def test_commands_are_what_is_there(root: Path) -> None:
    """The list names modules that exist, each with a command of its name."""
    context = app.make_context("agentloom", ["info"])
    for name in NAMES:
        assert (root / "agentloom" / "cli" / f"{name.replace('-', '_')}.py").is_file()
        assert app.get_command(context, name) is not None
    assert app.get_command(context, "render") is None
    assert processors() <= (os.cpu_count() or 1)
