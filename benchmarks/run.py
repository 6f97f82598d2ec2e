"""Print the figures that matter to users, in one run, beside bare Python and beside agentloom 0.4.0 from PyPI.

Figures only: nothing here fails because a machine is slow. The bound in the last column is what the project holds itself to on two
cores. What is compared runs in turns, so a busy machine slows both alike; times are medians.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import generate
import peer
from client import Client, edit_times
from load import load
from measure import Measured, measure

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
LOOM = str(Path(sys.executable).with_name("agentloom"))
# As a user's shell has it: colours off, nothing of ours set, and compiled modules kept, as an installation has them.
ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if not k.startswith("AGENTLOOM_") and k != "PYTHONDONTWRITEBYTECODE"},
    "NO_COLOR": "1",
}


def row(what: str, ours: str, beside: str = "", ratio: str = "", bound: str = "") -> None:
    """Print one line of the table."""
    print(f"{what:<56} {ours:>9}  {beside:<22} {ratio:>7}  {bound}".rstrip(), flush=True)


def ms(seconds: float) -> str:
    """Return a time for the table."""
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def times(one: Measured, other: Measured) -> str:
    """Return how many times as long one thing took as another."""
    return f"{one.seconds / other.seconds:.2f}x"


def compared(ours: list[str], theirs: list[str], folder: Path, runs: int) -> tuple[Measured, Measured]:
    """Measure our own program and the peer's in turns."""
    first, second = measure([[LOOM, *ours], theirs], folder, runs, ENVIRONMENT)
    return first, second


def memory_row(ours: Measured, theirs: Measured) -> None:
    """Print peak memories side by side."""
    ratio = f"{ours.memory / theirs.memory:.2f}x"
    row("  peak memory", f"{ours.memory:.0f} MiB", f"0.4.0: {theirs.memory:.0f} MiB", ratio)


def compile_modules() -> None:
    """Compile our modules, as `pip install` does: a checkout that was just changed would pay for it in the first call."""
    folders = [str(ROOT / "agentloom"), str(ROOT / "lsp")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], env=ENVIRONMENT, check=True)


def start_up(folder: Path, peer_bin: Path) -> None:
    """Cold starts: nothing is kept between two calls."""
    small = folder / "small.loom.yaml"
    small.write_text(generate.lines(40), encoding="utf-8")
    bare, version, check, theirs = measure(
        [
            [sys.executable, "-c", "pass"],
            [LOOM, "--version"],
            [LOOM, "validate", small.name],
            [str(peer_bin / "agentloom"), "validate", small.name],
        ],
        folder,
        15,
        ENVIRONMENT,
    )
    row("python -c pass", ms(bare.seconds))
    row("agentloom --version", ms(version.seconds), "bare Python", times(version, bare))
    row("validate, one small file", ms(check.seconds), "bare Python", times(check, bare), "<= 12x")
    row("", "", f"0.4.0: {ms(theirs.seconds)}", times(check, theirs), "<= 0.7x")
    memory_row(check, theirs)


def checking(folder: Path, peer_bin: Path) -> None:
    """The check of many files and of a large one."""
    many = folder / "many"
    many.mkdir()
    for at in range(200):
        (many / f"flow_{at:03d}.loom.yaml").write_text(generate.lines(700, f"flow-{at}"), encoding="utf-8")
    (done,) = measure([[LOOM, "validate", "many"]], folder, 5, ENVIRONMENT)
    row("validate, 200 files x 700 lines", ms(done.seconds), bound="<= 4 s")
    row("  peak memory of a process", f"{done.memory:.0f} MiB")
    (folder / "large.loom.yaml").write_text(generate.lines(14_000), encoding="utf-8")
    check = ["validate", "large.loom.yaml"]
    done, theirs = compared(check, [str(peer_bin / "agentloom"), *check], folder, 5)
    row("validate, one file of 14,000 lines", ms(done.seconds), f"0.4.0: {ms(theirs.seconds)}", times(done, theirs))
    memory_row(done, theirs)


def editing(folder: Path) -> None:
    """From a keystroke to its diagnostics, through the real server over stdio: without its debounce, and as users have it."""
    bounds = {700: ("<= 60 ms", "<= 150 ms"), 14_000: ("<= 250 ms", "<= 400 ms")}
    for at, (label, options) in enumerate((("no debounce", {"debounce": 0}), ("as installed", {}))):
        with Client(folder, options, ENVIRONMENT) as client:
            if at == 0:
                row("server: start to initialize result", ms(client.seconds_to_initialize), bound="<= 400 ms")
            for count, bound in bounds.items():
                text = generate.lines(count)
                opened, times = edit_times(client, folder / f"edit-{count}.loom.yaml", text, 20)
                what = f"server: {count:,} lines, {label}"
                row(f"{what}, open to diagnostics", ms(opened))
                row(f"{what}, one edit", ms(statistics.median(times)), f"slowest {ms(max(times))}", "", bound[at])


def running(folder: Path, peer_bin: Path) -> None:
    """Runs with the mock provider: a small one as a user sees it, large ones by the engine's own clock."""
    (folder / "driver.py").write_text(peer.DRIVER, encoding="utf-8")
    flows = {
        "3": (3, "chained"),
        "1000c": (1000, "chained"),
        "1000w": (1000, "wide"),
        "3000c": (3000, "chained"),
        "3000w": (3000, "wide"),
    }
    for name, (count, shape) in flows.items():
        (folder / f"run-{name}.loom.yaml").write_text(generate.steps(count, shape), encoding="utf-8")  # type: ignore[arg-type]
    run = ["run", "run-3.loom.yaml"]
    small, theirs = compared(run, [str(peer_bin / "agentloom"), "run", "--lite", "run-3.loom.yaml"], folder, 11)
    row(
        "run, 3 steps, whole command",
        ms(small.seconds),
        f"0.4.0: {ms(theirs.seconds)}",
        times(small, theirs),
        "<= 0.8x",
    )
    memory_row(small, theirs)
    for letter, shape in (("c", "chained"), ("w", "wide")):
        thousand, three, theirs = measure(
            [
                [LOOM, "run", "--json", f"run-1000{letter}.loom.yaml"],
                [LOOM, "run", "--json", f"run-3000{letter}.loom.yaml"],
                [str(peer_bin / "python"), "driver.py", f"run-1000{letter}.loom.yaml"],
            ],
            folder,
            5,
            ENVIRONMENT,
        )
        ours, more = (statistics.median(map(engine_ms, done.outputs)) for done in (thousand, three))
        beside = statistics.median(float(output.split()[-1]) for output in theirs.outputs)
        row(
            f"run, 1,000 {shape}, engine",
            f"{ours:.0f} ms",
            f"0.4.0: {beside:.0f} ms",
            f"{ours / beside:.3f}x",
            "<= 0.1x",
        )
        memory_row(thousand, theirs)
        row(f"run, 3,000 {shape}, engine", f"{more:.0f} ms", "ours, 1,000", f"{more / ours:.2f}x", "<= 3.5x")


def keeping(folder: Path) -> None:
    """What a journal, a checkpoint and the protections of providers cost."""
    for letter, shape in (("c", "chained"), ("w", "wide")):
        run = [LOOM, "run", "--json", f"run-1000{letter}.loom.yaml"]
        kept = ["--checkpoint", "--checkpoint-dir", "kept"]
        off, on = (
            statistics.median(map(engine_ms, done.outputs))
            for done in measure([run, [*run, *kept]], folder, 9, ENVIRONMENT)
        )
        row(f"run, 1,000 {shape}, journal on", f"{on:.0f} ms", f"off: {off:.0f} ms", f"{on / off:.2f}x", "<= 1.5x")
    script = Path(__file__).with_name("durable.py")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    what = f"checkpoint, 1,000 steps, {found['file_mb']:.1f} MB"
    row(f"{what}, save", ms(found["save"]))
    row(f"{what}, load", ms(found["load"]))
    straight, free, limited = (found[f"call_{name}"] * 1e6 for name in ("straight", "free", "limited"))
    row("gateway with circuit breaker, per call", f"{free:.1f} us", f"straight: {straight:.1f} us")
    row("gateway with breaker and rate limits, per call", f"{limited:.1f} us", f"straight: {straight:.1f} us")


def engine_ms(output: str) -> float:
    """Return the run's own duration, as `run --json` gives it."""
    return float(json.loads(output)["total_duration_ms"])


def main() -> None:
    """Measure everything once, in one table."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(
        f"agentloom at {commit.stdout.strip() or 'an unknown commit'}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        "modules compiled beforehand\n"
    )
    compile_modules()
    row("what", "ours", "beside", "ratio", "bound")
    peer_bin = peer.install(CACHE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_up(folder, peer_bin)
        checking(folder, peer_bin)
        editing(folder)
        running(folder, peer_bin)
        keeping(folder)
    load(row)


if __name__ == "__main__":
    main()
