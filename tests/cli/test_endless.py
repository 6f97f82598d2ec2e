"""Names that lead to what has no end, or too much of it: refused in plain words; what a shell's `<(…)` gives is read."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.core.loader import load_workflow
from agentloom.errors import UsageError, WorkflowError
from agentloom.files import MOST_BYTES
from agentloom.providers.pricing import load_prices
from agentloom.providers.recording import load_recording
from tests.cli.conftest import Call, environment

FLOW = "name: w\nconfig: {provider: mock}\nsteps:\n  - {id: a, type: llm_call, prompt: hi, output: said}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a workflow, a pipe that nobody writes to, and a file that is too large."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    os.mkfifo(tmp_path / "pipe.yaml")
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("validate", "/dev/zero"), 2, "/dev/zero: it is a device"),
        (("validate", "large.yaml"), 2, "large.yaml: it is larger than 64 MiB"),
        (("run", "/dev/zero"), 1, "/dev/zero can't be read: it is a device"),
        (("run", "large.yaml"), 1, "large.yaml can't be read: it is larger than 64 MiB"),
        (("run", "flow.yaml", "--state-file", "/dev/zero"), 2, "`/dev/zero` can't be read: it is a device"),
        (("run", "flow.yaml", "--state-file", "large.yaml"), 2, "`large.yaml` can't be read: it is larger than 64 MiB"),
        (("run", "flow.yaml", "--mock-responses", "/dev/zero"), 1, "can't be read: it is a pipe or a device"),
        (("run", "flow.yaml", "--mock-responses", "pipe.yaml"), 1, "can't be read: it is a pipe or a device"),
        (("run", "flow.yaml", "--mock-responses", "large.yaml"), 1, "can't be read: it is larger than 64 MiB"),
        (("validate", "."), 2, "pipe.yaml: it is a pipe or a device"),
    ],
)
def test_what_has_no_end_is_refused(here: Path, call: Call, arguments: tuple[str, ...], code: int, says: str) -> None:
    """At once, whichever option names it."""
    done = call(*arguments)
    assert done.code == code, done
    assert says in done.err


def test_a_recording_named_in_the_file_is_no_pipe(here: Path, call: Call) -> None:
    """`responses_file` is written by whoever wrote the workflow: it must not hold up a run."""
    (here / "flow.yaml").write_text(FLOW.replace("mock}", "mock, responses_file: pipe.yaml}"), encoding="utf-8")
    done = call("run", "flow.yaml")
    assert done.code == 1
    assert "pipe.yaml` can't be read: it is a pipe or a device" in done.err


def test_standard_input_has_a_limit() -> None:
    """An endless standard input is given up at 64 MiB."""
    with open("/dev/zero", "rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "agentloom", "validate", "-"],
            stdin=endless,
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
    assert done.returncode == 2
    assert "it is larger than 64 MiB" in done.stderr


def test_what_a_shell_puts_in_place_of_a_command_is_read(here: Path) -> None:
    """`<(command)` is a pipe with somebody at its other end."""
    loom = f"{shlex.quote(sys.executable)} -m agentloom"
    for command, says in (
        (f"{loom} validate <(cat flow.yaml)", "steps"),
        (f"{loom} run <(cat flow.yaml) --state-file <(echo '{{k: 1}}') --json", '"k": 1'),
    ):
        done = subprocess.run(
            ["bash", "-c", command], cwd=here, capture_output=True, text=True, env=environment(), check=False
        )
        assert done.returncode == 0, done
        assert says in done.stdout


def test_python_callers_get_the_same_words(here: Path) -> None:
    """A workflow, a recording and a price table."""
    with pytest.raises(WorkflowError, match="`/dev/zero` can't be read: it is a device"):
        load_workflow("/dev/zero")
    with pytest.raises(WorkflowError, match="can't be read: it is a pipe or a device"):
        load_recording(here / "pipe.yaml")
    with pytest.raises(UsageError, match="can't be read: it is a pipe or a device"):
        load_prices(here / "pipe.yaml")


def test_a_file_of_the_largest_size_is_read(here: Path) -> None:
    """The bound itself is allowed."""
    os.truncate(here / "large.yaml", MOST_BYTES)
    with pytest.raises(WorkflowError, match="is not valid JSON"):
        load_recording(here / "large.yaml")
