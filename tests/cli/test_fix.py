"""`agentloom validate --fix`, `--diff`: what is written, what is only shown, and what is never touched."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Call

H = "name: w\nsteps:\n"
B = "  - {id: b, type: llm_call, prompt: hi}\n"
TWICE = H + "  - id: a # why\n    type: llm_call\n    prompt: hi 😀\n    depends_on: [b, b]\n" + B
ONCE = TWICE.replace("[b, b]", "[b]")
UNSAFE = H + "  - {id: a, type: llm_call, promt: hi}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_fixes_are_written(call: Call, here: Path) -> None:
    """Safe fixes only; what is left is printed; the exit code is about what is left."""
    (here / "a.yaml").write_text(TWICE, encoding="utf-8")
    done = call("validate", "--fix", "--strict", "a.yaml")
    assert done.code == 0
    assert done.out.startswith("1 file checked: 1 fixed, no findings left\n")
    assert (here / "a.yaml").read_text(encoding="utf-8") == ONCE


def test_unsafe_fixes_need_a_word(call: Call, here: Path) -> None:
    """A fix that may change what is meant is carried out with `--unsafe-fixes` only."""
    (here / "a.yaml").write_text(UNSAFE, encoding="utf-8")
    assert call("validate", "--fix", "a.yaml").code == 1
    assert (here / "a.yaml").read_text(encoding="utf-8") == UNSAFE
    done = call("validate", "--fix", "--unsafe-fixes", "a.yaml")
    assert (done.code, done.out.splitlines()[0]) == (0, "1 file checked: 1 fixed, no findings left")
    assert (here / "a.yaml").read_text(encoding="utf-8") == UNSAFE.replace("promt", "prompt")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-mark", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_outside_the_edits_stay(call: Call, here: Path, encoding: str, newline: str) -> None:
    """Encoding, byte order mark and line ends are those of the file."""
    text, name = (TWICE, encoding)
    if encoding == "utf-16-be-mark":
        text, name = "\ufeff" + TWICE, "utf-16-be"
    data = text.replace("\n", newline).encode(name)
    (here / "a.yaml").write_bytes(data)
    assert call("validate", "--fix", "a.yaml").code == 0
    assert (here / "a.yaml").read_bytes() == text.replace("[b, b]", "[b]").replace("\n", newline).encode(name)


def test_a_difference_is_shown_and_nothing_written(call: Call, here: Path) -> None:
    """`--diff` prints what `patch` takes, and nothing else on standard output; the exit code tells that something would change."""
    text = TWICE.rstrip("\n")
    (here / "a.yaml").write_text(text, encoding="utf-8")
    done = call("validate", "--diff", "a.yaml")
    assert done.code == 1
    assert done.err == "1 file would change: 1 fix\n"
    assert (here / "a.yaml").read_text(encoding="utf-8") == text
    subprocess.run(["git", "apply", "-p0"], input=done.out.encode(), cwd=here, check=True)
    assert (here / "a.yaml").read_text(encoding="utf-8") == ONCE.rstrip("\n")
    again = call("validate", "--diff", "a.yaml")
    assert (again.code, again.out, again.err) == (0, "", "")
    piped = call("validate", "--diff", "-", stdin=TWICE)
    assert piped.out.splitlines()[:2] == ["--- <stdin>", "+++ <stdin>"]


@pytest.mark.parametrize(
    "name", ["c d.yaml", 'q"uo\\te.yaml', "li\nne.yaml", " .yaml", "ü 日.yaml", os.fsdecode(b"b\xffd.yaml")]
)
@pytest.mark.parametrize("program", [["patch", "-p0"], ["git", "apply", "-p0"]])
def test_a_difference_of_a_file_with_an_odd_name(process: Call, here: Path, name: str, program: list[str]) -> None:
    """Spaces, quotes, line breaks and bytes that are no text arrive at `patch` and git."""
    (here / name).write_text(TWICE, encoding="utf-8")
    done = process("validate", "--diff", "--", name)
    subprocess.run(program, input=done.out.encode(), cwd=here, check=True, capture_output=True)
    assert (here / name).read_text(encoding="utf-8") == ONCE


def test_links_modes_and_neighbours(call: Call, here: Path) -> None:
    """A link stays a link, a file keeps its mode, and nothing is left beside it."""
    target = here / "real" / "a.yaml"
    target.parent.mkdir()
    target.write_text(TWICE, encoding="utf-8")
    target.chmod(0o640)
    (here / "link.yaml").symlink_to(target)
    assert call("validate", "--fix", "link.yaml").code == 0
    assert (here / "link.yaml").is_symlink()
    assert target.read_text(encoding="utf-8") == ONCE
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(target.parent) == ["a.yaml"]


def test_a_file_that_cannot_be_written(process: Call, here: Path) -> None:
    """It is named with the reason, the others are fixed, and the exit code is 2; a clean file needs no writing."""
    (here / "full").mkdir()
    for name in ("full/a.yaml", "b.yaml"):
        (here / name).write_text(TWICE, encoding="utf-8")
    (here / "run.py").write_text(
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))\n"
        "from agentloom.cli.app import app\n"
        "app.main(['validate', '--fix', 'full/a.yaml'])\n"
    )
    import sys

    from tests.cli.conftest import environment

    done = subprocess.run(
        [sys.executable, "run.py"], cwd=here, env=environment(), capture_output=True, check=False, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "error: full/a.yaml: it can't be written: file too large\n"
    assert (here / "full" / "a.yaml").read_text(encoding="utf-8") == TWICE
    assert os.listdir(here / "full") == ["a.yaml"]


def test_wrong_bytes_are_never_written(call: Call, here: Path) -> None:
    """What can't be decoded can't be written back either: such a file is told, not fixed."""
    data = TWICE.encode() + b"# \xff\n"
    (here / "a.yaml").write_bytes(data)
    assert call("validate", "--fix", "a.yaml").code == 1
    assert (here / "a.yaml").read_bytes() == data


def test_many_files(process: Call, here: Path) -> None:
    """Spread over processes, each file is fixed once."""
    filler = "".join(f"  - {{id: s{n}, type: llm_call, prompt: 'step {n} of many'}}\n" for n in range(150))
    for number in range(40):
        (here / f"f{number:02}.loom.yaml").write_text(TWICE + filler, encoding="utf-8")
    done = process("validate", "--fix", ".", cwd=here)
    assert (done.code, done.out) == (0, "40 files checked: 40 fixed, no findings left\n")
    assert {path.read_text(encoding="utf-8") for path in here.glob("*.yaml")} == {ONCE + filler}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--unsafe-fixes", "a.yaml"], "`--unsafe-fixes` goes with `--fix` or `--diff`"),
        (["--diff", "--format", "json", "a.yaml"], "`--diff` prints a difference; leave out `--format`"),
        (["--fix", "-"], "`--fix` changes files; for standard input there is `--diff`"),
        (["--statistics", "--format", "json", "a.yaml"], "`--statistics` is a text of its own"),
    ],
)
def test_what_cannot_go_together(call: Call, here: Path, arguments: list[str], words: str) -> None:
    """Said before anything is read."""
    (here / "a.yaml").write_text(TWICE, encoding="utf-8")
    done = call("validate", *arguments)
    assert done.code == 2
    assert words in done.err


def test_a_file_changed_meanwhile_is_left_alone(here: Path) -> None:
    """What an editor saved between reading and writing is not overwritten."""
    from agentloom.files import Changed, replace_file

    (here / "a.yaml").write_bytes(b"new")
    with pytest.raises(Changed, match="changed meanwhile"):
        replace_file(here / "a.yaml", b"fixed", expected=b"old")
    assert (here / "a.yaml").read_bytes() == b"new"
