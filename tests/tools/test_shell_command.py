"""`shell_command`: real processes, and nothing left of them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from agentloom.errors import ValidationError
from agentloom.tools import guard, shell_command
from agentloom.tools.catalogue import BUILTIN_TOOLS
from agentloom.tools.registry import ToolRegistry
from agentloom.tools.shell_command import MAX_OUTPUT_BYTES

pytestmark = pytest.mark.anyio


async def run(registry: ToolRegistry, command: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = await registry.call("shell_command", {"command": command, **more})
    return result


@pytest.mark.parametrize(
    ("command", "returncode", "stdout", "stderr"),
    [
        ("echo hello", 0, "hello\n", ""),
        ("echo out; echo err >&2; exit 3", 3, "out\n", "err\n"),
        ("printf 'a\\nb' | tr ab AB", 0, "A\nB", ""),
        ("cat", 0, "", ""),
        ("kill -9 $$", -9, "", ""),
        ("printf 'gr\\303\\274n \\377'", 0, "grün \ufffd", ""),
        ("no-such-program-here 2>/dev/null", 127, "", ""),
        ("", 0, "", ""),
    ],
)
async def test_what_comes_back(builtins: ToolRegistry, command: str, returncode: int, stdout: str, stderr: str) -> None:
    """Through a shell; a return code other than 0 is no error; there is no standard input to wait for."""
    result = await run(builtins, command)
    assert result == {"returncode": returncode, "stdout": stdout, "stderr": stderr}
    assert list(result) == list(BUILTIN_TOOLS["shell_command"].returns["properties"])


async def test_the_folder(builtins: ToolRegistry, tmp_path: Path) -> None:
    """`cwd`, and a word when it is none."""
    assert (await run(builtins, "pwd -P", cwd=str(tmp_path)))["stdout"] == f"{tmp_path.resolve()}\n"
    with pytest.raises(NotADirectoryError, match="`no-such-folder` is no folder to run in"):
        await run(builtins, "pwd", cwd="no-such-folder")


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800"])
async def test_characters_that_no_command_can_have(builtins: ToolRegistry, command: str) -> None:
    """NUL and half of a surrogate pair."""
    with pytest.raises(ValidationError, match="holds a character that no command line can have"):
        await run(builtins, command)


async def test_a_command_that_is_too_long(builtins: ToolRegistry) -> None:
    """The system's own limit, in a word."""
    with pytest.raises(OSError, match="the command can't be started: Argument list too long"):
        await run(builtins, "echo " + "x" * 4_000_000)


async def test_output_is_capped_on_both_sides(builtins: ToolRegistry) -> None:
    """The command runs to its end; a character at the cut is not torn."""
    size = MAX_OUTPUT_BYTES + 1000
    result = await run(
        builtins, f"head -c {size} /dev/zero | tr '\\0' x; yes ü | tr -d '\\n' | head -c {size + 1} >&2; echo; exit 5"
    )
    assert result["returncode"] == 5
    assert result["stdout"] == "x" * MAX_OUTPUT_BYTES + "\n[1001 more bytes left out]"
    assert result["stderr"] == "ü" * (MAX_OUTPUT_BYTES // 2) + "\n[1001 more bytes left out]"


async def test_both_outputs_may_be_large_at_once(builtins: ToolRegistry) -> None:
    """No pipe fills up and blocks."""
    result = await run(builtins, "for i in 1 2 3; do head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; done")
    assert (len(result["stdout"]), len(result["stderr"])) == (900_000, 900_000)


class Watched:
    """A named pipe through which processes tell their ids, and handles that know when those processes end."""

    def __init__(self, folder: Path) -> None:
        self.pipe = folder / "pids"
        os.mkfifo(self.pipe)
        self.handles: list[int] = []

    async def wait_for_start(self) -> None:
        """Wait until the command has told its processes' ids on one line."""
        line = await anyio.to_thread.run_sync(self.pipe.read_text)
        self.handles = [os.pidfd_open(int(word)) for word in line.split()]

    def all_ended(self) -> bool:
        """Tell whether every process is gone, or about to be reaped."""
        return all(select.select([handle], [], [], 10)[0] for handle in self.handles)

    def close(self) -> None:
        for handle in self.handles:
            os.close(handle)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules, sooner."""
    monkeypatch.setattr(shell_command, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(shell_command, "DRAIN_SECONDS", 0.1)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """Processes under watch."""
    watch = Watched(tmp_path)
    yield watch
    watch.close()


FAMILY = "sleep 300 & a=$!; sh -c 'sleep 301 & sleep 302' & b=$!; echo $$ $a $b > {pipe}; wait"
STUBBORN = "trap '' TERM; sleep 300 & a=$!; echo $$ $a > {pipe}; while :; do wait; done"
DETACHED = "sleep 300 & a=$!; echo $$ $a > {pipe}; read go < {pipe}"


@pytest.mark.parametrize("command", [FAMILY, STUBBORN])
async def test_a_timeout_kills_the_whole_family(builtins: ToolRegistry, watched: Watched, command: str) -> None:
    """Children and grandchildren, also such as don't want to end."""
    async with anyio.create_task_group() as group:
        group.start_soon(watched.wait_for_start)
        with pytest.raises(TimeoutError) as caught:
            await run(builtins, command.format(pipe=watched.pipe), timeout=0.5)
    assert str(caught.value) == "the command took longer than 0.5 s and was killed"
    assert len(watched.handles) >= 2
    assert watched.all_ended()


@pytest.mark.parametrize("command", [FAMILY, STUBBORN])
async def test_cancelling_kills_the_whole_family(builtins: ToolRegistry, watched: Watched, command: str) -> None:
    """Ctrl-C, a run's timeout, a sibling that goes over the budget."""
    async with anyio.create_task_group() as group:
        group.start_soon(run, builtins, command.format(pipe=watched.pipe))
        await watched.wait_for_start()
        group.cancel_scope.cancel()
    assert watched.all_ended()


async def test_nothing_stays_behind_a_command_that_ended(builtins: ToolRegistry, watched: Watched) -> None:
    """A background process ends with its command, and isn't waited for."""

    async def start_and_let_go() -> None:
        await watched.wait_for_start()
        await anyio.to_thread.run_sync(watched.pipe.write_text, "go\n")

    async with anyio.create_task_group() as group:
        group.start_soon(start_and_let_go)
        result = await run(builtins, f"echo before; {DETACHED.format(pipe=watched.pipe)}", timeout=60)
    assert result == {"returncode": 0, "stdout": "before\n", "stderr": ""}
    assert watched.all_ended()


async def test_a_process_that_left_the_group_is_not_waited_for(builtins: ToolRegistry, watched: Watched) -> None:
    """It keeps the output open, and costs no more than a moment."""
    script = f"setsid sh -c 'echo $$ > {watched.pipe}; exec sleep 300' & echo done; wait $!"
    async with anyio.create_task_group() as group:
        group.start_soon(watched.wait_for_start)
        with pytest.raises(TimeoutError):
            await run(builtins, script, timeout=0.5)
    os.kill(int(_pid_of(watched.handles[0])), 9)
    assert watched.all_ended()


def _pid_of(handle: int) -> str:
    for line in Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines():
        if line.startswith("Pid:"):
            return line.split()[1]
    raise AssertionError("no process")


async def test_no_limit(builtins: ToolRegistry) -> None:
    """`timeout: 0` means none; a negative one is refused."""
    assert (await run(builtins, "echo hi", timeout=0))["stdout"] == "hi\n"
    with pytest.raises(ValidationError, match="argument `timeout` must be a number from 0 up, not `-1`"):
        await run(builtins, "echo hi", timeout=-1)


async def test_commands_run_side_by_side(builtins: ToolRegistry, tmp_path: Path) -> None:
    """Two that wait for each other."""
    os.mkfifo(tmp_path / "a")
    results: list[str] = []

    async def keep(command: str) -> None:
        results.append((await run(builtins, command, cwd=str(tmp_path)))["stdout"])

    async with anyio.create_task_group() as group:
        group.start_soon(keep, "cat a")
        group.start_soon(keep, "echo through > a; echo sent")
    assert sorted(results) == ["sent\n", "through\n"]


# Four lanes that never stop to begin commands, each with a child of its own; all hold the pipe `held` open.
RESTLESS = """
import anyio
from agentloom.tools.shell_command import ShellCommand

async def lane():
    while True:
        try:
            await ShellCommand().execute("exec 3> held; echo . >&3; sleep 600 & wait", timeout=0.05)
        except TimeoutError:
            pass

async def main():
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(lane)

anyio.run(main)
"""


def test_commands_end_with_the_process_that_runs_them(tmp_path: Path) -> None:
    """SIGKILL at any moment, also while a command is just beginning: nothing of it is left."""
    os.mkfifo(tmp_path / "held")
    random = Random(7)
    root = Path(shell_command.__file__).parents[2]
    for _ in range(6):
        held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
        ours = os.open(tmp_path / "held", os.O_WRONLY)  # no end of the pipe before we let go of it
        process = subprocess.Popen(
            [sys.executable, "-c", RESTLESS], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}
        )
        try:
            for _ in range(random.randint(1, 30)):
                assert select.select([held], [], [], 30)[0]
                os.read(held, 1)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        while select.select([held], [], [], 30)[0]:
            if not os.read(held, 1024):
                break  # nobody holds it any more
        else:
            pytest.fail("a command is left")
        os.close(held)


async def test_a_guard_that_is_gone_is_replaced(builtins: ToolRegistry, watched: Watched) -> None:
    """The commands don't notice; those that are running have the new one for their guard too."""
    await run(builtins, "true")
    old = guard._guard
    assert old is not None
    async with anyio.create_task_group() as group:
        group.start_soon(run, builtins, FAMILY.format(pipe=watched.pipe))
        await watched.wait_for_start()
        old.send_signal(signal.SIGKILL)
        old.wait()
        assert await run(builtins, "cat; echo on") == {"returncode": 0, "stdout": "on\n", "stderr": ""}
        new = guard._guard
        assert new is not None
        assert new is not old
        guard._close()
        new.wait()  # what it does when we are gone: the first command is killed, and its step goes on
    assert watched.all_ended()
    assert (await run(builtins, "echo more"))["stdout"] == "more\n"


async def test_a_guard_that_is_stopped_stops_nobody(builtins: ToolRegistry) -> None:
    """More is written to it than its pipe takes."""
    await run(builtins, "true")
    assert guard._guard is not None
    guard._guard.send_signal(signal.SIGSTOP)
    try:
        for group in range(10**6, 10**6 + 10_000):
            guard.forget(group)
        assert await run(builtins, "echo on") == {"returncode": 0, "stdout": "on\n", "stderr": ""}
    finally:
        guard._guard.send_signal(signal.SIGCONT)


def test_a_copy_of_the_process_leaves_the_guard_alone() -> None:
    """After `fork`, the copy holds nothing of the guard's, and begins one of its own."""
    script = (
        "import os, anyio\n"
        "from agentloom.tools import guard\n"
        "from agentloom.tools.shell_command import ShellCommand\n"
        "run = lambda: print(anyio.run(ShellCommand().execute, 'echo on')['stdout'], end='', flush=True)\n"
        "run()\n"
        "way = guard._way\n"
        "if os.fork():\n"
        "    os.wait()\n"
        "else:\n"
        "    print(guard._way, guard._guard, flush=True)\n"
        "    run()\n"
        "run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False, timeout=60,
        cwd=Path(shell_command.__file__).parents[2],
    )  # fmt: skip
    assert (done.stderr, done.stdout) == ("", "on\n-1 None\non\non\non\n")
