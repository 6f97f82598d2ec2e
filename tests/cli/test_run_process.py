"""`agentloom run` as a process: terminals, pipes, signals, and a real server on the other end of the wire."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from select import poll, select
from typing import Any

import pytest

from tests.cli.conftest import environment
from tests.cli.terminal import Terminal
from tests.wire.server import KEY, REPLY, WireServer

# The second step never ends by itself.
ENDLESS = """\
name: endless
config: {provider: mock, model: m, latency_ms: 600000}
steps:
  - {id: first, type: router, conditions: [], default: second}
  - {id: second, type: llm_call, depends_on: [first], prompt: hi}
"""
WIDE = "name: wide\nconfig: {provider: mock, model: m, latency_ms: 150}\nsteps:\n" + "".join(
    f"  - {{id: step{n:02}, type: llm_call, prompt: hi}}\n" for n in range(14)
)
ONLINE = (
    "name: online\nconfig: {provider: openai, model: gpt-4o-mini}\nsteps:\n  - {id: ask, type: llm_call, prompt: hi}\n"
)


def flow(folder: Path, text: str) -> str:
    """Write a workflow; return its name."""
    (folder / "flow.loom.yaml").write_text(text, encoding="utf-8")
    return "flow.loom.yaml"


def online(server: WireServer) -> dict[str, str]:
    """Return the environment that leads to a server."""
    return {"OPENAI_BASE_URL": server.host, "OPENAI_API_KEY": KEY}


# --- signals ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_signal_ends_the_run_with_130(tmp_path: Path, start: Any, number: signal.Signals, options: list[str]) -> None:
    """No traceback, nothing on standard output of `--json`, and the process is gone at once."""
    events = tmp_path / "events"
    os.mkfifo(events)
    arguments = ["run", flow(tmp_path, ENDLESS), "--events", "events", *options]
    child = start(*arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with events.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if event["event"] == "step_started" and event["step"] == "second":
                child.send_signal(number)
                break
        out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"Traceback" not in err
    assert err.rstrip().endswith(b"interrupted")
    assert (out == b"") == bool(options)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [["run", "-"], ["resume", "latest"]])
def test_a_signal_ends_a_run_with_130_from_its_first_moments(
    tmp_path: Path, start: Any, number: signal.Signals, command: list[str]
) -> None:
    """EX-1: while the program is still being loaded, long before the first step."""
    child = start(*command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not catches(child.pid, signal.SIGTERM):
        assert child.poll() is None
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def catches(pid: int, number: signal.Signals) -> bool:
    """Tell whether a process handles a signal by now."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_ctrl_c_on_a_terminal_leaves_it_as_it_was(tmp_path: Path) -> None:
    """A running step has a spinner. After Ctrl-C the drawing is gone, the cursor is back, the exit code is 130."""
    with Terminal("run", flow(tmp_path, ENDLESS), cwd=tmp_path) as terminal:
        terminal.wait_for(" second")
        assert any(f"{frame} second" in terminal.output for frame in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
        terminal.send_key(b"\x03")
        assert terminal.wait() == 130
        assert terminal.cursor_shown
        assert "Traceback" not in terminal.output
        assert not any("second" in line for line in terminal.screen)


# --- pipes --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("loom run flow.loom.yaml --json 2>/dev/null | python -m json.tool > x.json; cat x.json | head -c 1", b"{"),
        ("loom run flow.loom.yaml | head -n 1", b"Running workflow: wide\n"),
        ("loom run flow.loom.yaml --events - 2>/dev/null | head -c 14", b'{"version": 1,'),
        ("loom run flow.loom.yaml --json 2>&- | head -c 1", b"{"),
    ],
)
def test_case_pipes_get_what_they_ask_for(tmp_path: Path, command: str, out: bytes) -> None:
    """`run --json | json.tool` works: standard output is JSON only. A reader that leaves early costs no traceback."""
    flow(tmp_path, WIDE.replace("150", "0"))
    script = f'loom() {{ "{sys.executable}" -m agentloom "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n{command}'
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, env=environment(), check=False, timeout=60
    )
    assert done.stdout == out
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_a_run_goes_on_when_its_watcher_leaves(tmp_path: Path, start: Any) -> None:
    """A pager that is closed doesn't stop a run that costs money: the steps after that still run."""
    (tmp_path / "events").touch()
    child = start(
        "run", flow(tmp_path, WIDE), "--events", "events", cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout.readline() == b"Running workflow: wide\n"
    child.stdout.close()
    assert b"Traceback" not in child.stderr.read()
    child.wait(30)
    events = [json.loads(line) for line in (tmp_path / "events").read_text(encoding="utf-8").splitlines()]
    assert sum(event["event"] == "step_finished" for event in events) == 14
    assert events[-1]["event"] == "run_finished"


# --- terminals ------------------------------------------------------------------------------------------------------------------


def test_a_terminal_shows_the_running_steps_and_then_the_summary(tmp_path: Path) -> None:
    """While it runs: marks for the steps that ended, and where the run is. At the end only the summary."""
    text = WIDE.replace("latency_ms: 150", "latency_ms: 150, max_concurrent_steps: 5")
    with Terminal("run", flow(tmp_path, text), cwd=tmp_path) as terminal:
        assert terminal.wait() == 0
        assert "layer 1 of 1" in terminal.output
        assert "of 14 steps" in terminal.output
        assert "\x1b[32m✓ step" in terminal.output
        assert terminal.cursor_shown
        screen = [line for line in terminal.screen if line]
        assert screen[0] == "Running workflow: wide"
        assert screen[1] == "[OK] wide"
        assert sum("[OK]     step" in line for line in screen) == 14


def test_a_small_terminal_is_never_overrun(tmp_path: Path) -> None:
    """With more steps than lines and names longer than lines, what is drawn is taken away again completely."""
    text = WIDE.replace("id: step", "id: a_rather_long_name_for_a_step_on_a_small_terminal_")
    with Terminal("run", flow(tmp_path, text), cwd=tmp_path, columns=40, lines=10) as terminal:
        assert terminal.wait() == 0
        screen = [line for line in terminal.screen if line]
        assert screen[:2] == ["Running workflow: wide", "[OK] wide"]


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}])
def test_terminals_that_can_less(tmp_path: Path, env: dict[str, str]) -> None:
    """No drawing on a dumb one, no colours where they aren't wanted, no character that it lacks."""
    with Terminal("run", flow(tmp_path, WIDE), cwd=tmp_path, **env) as terminal:
        assert terminal.wait() == 0
        if "TERM" in env:
            assert "step00: started" in terminal.output
            assert "\x1b" not in terminal.output
        if "NO_COLOR" in env:
            assert "\x1b[36m" not in terminal.output
            assert "\x1b[?25l" in terminal.output
        if "PYTHONIOENCODING" in env:
            assert terminal.output.isascii()
            assert "+ step" in terminal.output


def test_log_lines_stand_above_the_drawing(tmp_path: Path) -> None:
    """A warning during the run stays on the screen, and the drawing doesn't tear."""
    (tmp_path / "rec.json").write_text('{"_version": 2}', encoding="utf-8")
    text = WIDE.replace("latency_ms", "responses_file: rec.json, latency_ms")
    with Terminal("run", flow(tmp_path, text), cwd=tmp_path, columns=200) as terminal:
        assert terminal.wait() == 0
        screen = [line for line in terminal.screen if line]
        assert sum(line.startswith("warning: ") for line in screen) == 14
        assert screen[15] == "[OK] wide"


# --- a real server --------------------------------------------------------------------------------------------------------------


def test_tokens_stream_to_the_terminal_while_the_server_writes(tmp_path: Path) -> None:
    """The first words are on the terminal while the server still holds the rest; the whole reply stays there."""
    with (
        WireServer("slow-stream") as server,
        Terminal("run", flow(tmp_path, ONLINE), "--stream", cwd=tmp_path, **online(server)) as terminal,
    ):
        terminal.wait_for(REPLY[:8])
        server.let_go()
        assert terminal.wait() == 0
        screen = "\n".join(terminal.screen)
        assert f"--- ask\n{REPLY}\n" in screen
        assert "[OK] online" in screen


def test_tokens_stream_into_a_pipe_too(tmp_path: Path, start: Any) -> None:
    """As they come, not in blocks."""
    with WireServer("slow-stream") as server:
        child = start(
            "run", flow(tmp_path, ONLINE), "--stream", cwd=tmp_path, env=online(server), stdout=subprocess.PIPE
        )
        seen = b""
        while REPLY[:8].encode() not in seen:
            piece = os.read(child.stdout.fileno(), 4096)
            assert piece, seen
            seen += piece
        server.let_go()
        rest, _ = child.communicate(timeout=30)
        assert REPLY in (seen + rest).decode()
        assert child.returncode == 0


def test_a_key_is_never_shown(tmp_path: Path, start: Any) -> None:
    """Not in errors that repeat it, not in events, not in the log at its most talkative."""
    with WireServer("echo-key") as server:
        env = {**online(server), "AGENTLOOM_LOG_LEVEL": "DEBUG"}
        for options in (["--json"], ["--events", "-"]):
            child = start(
                "run",
                flow(tmp_path, ONLINE),
                *options,
                cwd=tmp_path,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            out, _ = child.communicate(timeout=30)
            assert child.returncode == 1
            assert b"401" in out
            assert KEY.encode() not in out
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "info"],
        env=environment(OPENAI_API_KEY=KEY),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "OPENAI_API_KEY          set\n" in done.stdout
    assert KEY[:6] not in done.stdout
    assert KEY[-4:] not in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_case_no_orphan_is_left_behind(tmp_path: Path, start: Any, number: signal.Signals) -> None:
    """Ctrl-C, SIGTERM and a closed terminal end the shell command that a step is running, and what that one started."""
    os.mkfifo(tmp_path / "pids")
    text = (
        "name: shell\nconfig: {provider: mock, model: m}\nsteps:\n  - id: wait\n    type: tool\n    tool_name: shell_command\n"
        "    tool_args: {command: 'sleep 600 & echo $$ $! > pids; wait', timeout: 0}\n"
    )
    child = start("run", flow(tmp_path, text), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pids = [int(word) for word in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    assert len(pids) == 2
    child.send_signal(number)
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (130, b"interrupted\n")
    assert [pid for pid in pids if is_running(pid)] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_leaves_no_orphan_either(tmp_path: Path, start: Any, number: signal.Signals) -> None:
    """A command that ignores the polite signal is given time to end; who doesn't want to wait gets rid of it as well."""
    os.mkfifo(tmp_path / "held")
    os.mkfifo(tmp_path / "asked")
    text = (
        "name: shell\nconfig: {provider: mock, model: m}\nsteps:\n  - id: wait\n    type: tool\n    tool_name: shell_command\n"
        "    tool_args: {command: 'trap \"echo > asked\" TERM; exec 3> held; sleep 60 & while :; do wait; done', timeout: 0}\n"
    )
    child = start("run", flow(tmp_path, text), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with (tmp_path / "held").open("rb") as held:
        child.send_signal(number)
        (tmp_path / "asked").read_bytes()
        child.send_signal(number)
        _, err = child.communicate(timeout=30)
        assert (child.returncode, err) == (130, b"interrupted\n")
        assert select([held], [], [], 20)[0]
        assert held.read() == b""  # the end of the pipe: nobody holds it any more


@pytest.mark.parametrize(
    ("sandbox", "command"),
    [
        ("", "exec < held; (cat; sleep 600) & cat & sleep 600"),
        (", sandbox: {enabled: true, allowed_commands: [cat], readable_paths: [.]}", "cat held"),
    ],
)
def test_a_killed_run_leaves_no_orphan(tmp_path: Path, start: Any, sandbox: str, command: str) -> None:
    """SIGKILL gives a run no time to end its command; it ends all the same, and what it started too."""
    os.mkfifo(tmp_path / "held")
    text = (
        f"name: shell\nconfig: {{provider: mock, model: m{sandbox}}}\nsteps:\n  - id: wait\n    type: tool\n"
        f"    tool_name: shell_command\n    tool_args: {{command: '{command}', timeout: 0}}\n"
    )
    child = start("run", flow(tmp_path, text), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with (tmp_path / "held").open("wb") as held:  # returns once the command has it open
        child.kill()
        child.communicate()
        end = poll()
        end.register(held, 0)
        assert end.poll(30_000)  # nobody reads it any more


def test_nohup_keeps_a_run_going(tmp_path: Path, start: Any) -> None:
    """A run that was told to ignore SIGHUP is not stopped by it."""
    os.mkfifo(tmp_path / "ready")
    os.mkfifo(tmp_path / "go")
    text = (
        "name: shell\nconfig: {provider: mock, model: m}\nsteps:\n  - id: wait\n    type: tool\n    tool_name: shell_command\n"
        "    tool_args: {command: 'echo > ready; read x < go', timeout: 0}\n"
    )
    child = start(
        "run", flow(tmp_path, text), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    (tmp_path / "ready").read_text(encoding="utf-8")
    child.send_signal(signal.SIGHUP)
    (tmp_path / "go").write_text("on\n", encoding="utf-8")
    _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (0, b"")


def is_running(pid: int) -> bool:
    """Tell whether a process is there and not merely waiting to be counted out."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
